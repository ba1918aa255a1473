//! The options in the manual are made from the definition of the command line. The rest of the
//! manual pages, the example of the configuration and the packaging are written by hand: these
//! tests see that they name all there is.

use std::ops::RangeInclusive;

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;
use crate::scheduler::counters::EVENTS;
use crate::settings::config::{Config, parse_toml};
use crate::settings::policy::{BUDGET_MS_RANGE, FILL_PCT_RANGE, Mode, Policy};

const PROGRAM: &str = include_str!("../../packaging/scx_powerpack.8");
const CONFIG: &str = include_str!("../../packaging/scx_powerpack-config.5");
const EXAMPLE: &str = include_str!("../../packaging/config.toml");
const HOW_IT_DECIDES: &str = include_str!("../../docs/how-it-decides.md");
const CONFIGMAP: &str = include_str!("../../packaging/kubernetes/configmap.yaml");
const MESON: &str = include_str!("../../meson.build");
const KUSTOMIZATION: &str = include_str!("../../packaging/kubernetes/kustomization.yaml");
const CHANGELOG: &str = include_str!("../../packaging/debian/changelog");

/// A page as it reads, roughly: without its requests for fonts, with plain dashes.
fn text(page: &str) -> String {
    let fonts = [".BI ", ".BR ", ".IR ", ".RB ", ".RI ", ".B ", ".I "];
    page.lines()
        .map(|line| fonts.iter().find_map(|font| line.strip_prefix(font)).unwrap_or(line))
        .map(|line| {
            line.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace('\\', "")
                + "\n"
        })
        .collect()
}

/// Whether `word` is there, and not as a part of another one.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(part) && !after.starts_with(part)
    })
}

/// What of `command` and below it a page does not name.
fn missing(page: &str, path: &str, command: &Command) -> Vec<String> {
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
    let flags = flags.map(|long| format!("--{long}"));
    let mut wanted: Vec<String> = flags.chain([path.to_owned()]).collect();
    wanted.retain(|word| !names(page, word));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        wanted.extend(missing(page, &format!("{path} {}", sub.get_name()), sub));
    }
    wanted
}

#[test]
fn the_manual_names_each_flag_and_subcommand() {
    let page = text(PROGRAM);
    assert_eq!(missing(&page, "scx_powerpack", &Cli::command()), Vec::<String>::new());
    let unknown = Command::new("x").arg(Arg::new("no-such").long("no-such"));
    assert_eq!(missing(&page, "scx_powerpack", &unknown), ["--no-such"]);
}

#[test]
fn the_manual_explains_each_counter() {
    let page = text(PROGRAM);
    for event in EVENTS {
        let entry = format!(".TP\n{}\n{}.\n", event.name, event.help);
        assert!(page.contains(&entry), "scx_powerpack.8 lacks: {entry}");
    }
}

/// The keys of `[table]`, or of the top: serde lists them when given a wrong one.
fn keys(table: &str) -> Vec<String> {
    let message = parse_toml::<Config>(&format!("{table}\nno_such_key = 1\n")).unwrap_err();
    let message = message.to_string();
    // Names are in backquotes; the first is the wrong one.
    message.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect()
}

#[test]
fn the_manual_and_the_example_have_each_key_of_the_configuration() {
    let page = text(CONFIG);
    let mut all = keys("");
    for table in all.clone().iter().filter(|key| !["mode", "metrics"].contains(&key.as_str())) {
        let table = format!("[{table}]");
        assert!(page.contains(&table) && EXAMPLE.contains(&table), "{table}");
        all.extend(keys(&table));
    }
    assert!(all.len() >= 10, "{all:?}");
    for key in &all {
        assert!(names(&page, key), "{key} is not in scx_powerpack-config.5");
        assert!(names(EXAMPLE, key), "{key} is not in config.toml");
    }
}

/// Set to have the section written again, not compared.
const UPDATE: &str = "UPDATE_MANUAL";
const BEGIN: &str = ".\\\" Made from src/cli.rs: UPDATE_MANUAL=1 cargo test the_options_of\n";
const END: &str = ".\\\" End of what is made from src/cli.rs.\n";

/// The options of `command`, in the language of manual pages.
fn list(command: Command) -> String {
    let mut section = Vec::new();
    clap_mangen::Man::new(command).render_options_section(&mut section).unwrap();
    let section = String::from_utf8(section).unwrap();
    // Before the heading is a preamble for a whole page, which defines Aq.
    let (_, list) = section.split_once(".SH OPTIONS\n").unwrap_or_default();
    // Two breaks around an empty line are a warning of mandoc's.
    list.replace("\\*(Aq", "\\(aq").replace(".br\n\n.br\n", ".sp\n")
}

/// Those of the subcommands of `command`, each under a heading.
fn lists_below(path: &str, command: &Command) -> String {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let below = subs.map(|sub| {
        let (path, own) =
            (format!("{path} {}", sub.get_name()), sub.clone().disable_help_flag(true));
        let has_any = sub.get_arguments().any(|argument| !argument.is_hide_set());
        let about = sub.get_about().map(|about| format!("{about}.\n")).unwrap_or_default();
        let own = if has_any { format!(".SS {path}\n{about}{}", list(own)) } else { String::new() };
        own + &lists_below(&path, sub)
    });
    below.collect()
}

#[test]
fn the_options_of_the_manual_are_those_of_the_command_line() {
    let (before, rest) = PROGRAM.split_once(BEGIN).expect("where it begins");
    let (found, after) = rest.split_once(END).expect("where it ends");
    let command = Cli::command();
    let made = list(command.clone()) + &lists_below("scx_powerpack", &command);
    if std::env::var_os(UPDATE).is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/scx_powerpack.8");
        std::fs::write(file, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, made, "run UPDATE_MANUAL=1 cargo test the_options_of");
    }
}

/// Their text and where it stands: what is said of a knob with this default and range.
fn knob_texts(
    key: &str,
    default: u128,
    range: &RangeInclusive<u32>,
) -> [(String, &'static str); 6] {
    let (flag, range) = (key.replace('_', "-"), format!("{}..{}", range.start(), range.end()));
    [
        (format!("({range}) [default: {default}]"), PROGRAM),
        (format!("{range}. Default:\n.BR {default} .\n"), CONFIG),
        (format!("({range}"), EXAMPLE),
        (format!("#: {key} = {default}\n"), EXAMPLE),
        (format!("`--{flag}`, {default})"), HOW_IT_DECIDES),
        (format!("{key} = {default}\n"), CONFIGMAP),
    ]
}

#[test]
fn all_say_the_same_default_and_range_of_a_knob() {
    let policy = Policy::of(Mode::Packing);
    let budget_ms = policy.latency_budget.as_millis();
    let fill = knob_texts("fill_pct", policy.fill_pct.into(), &FILL_PCT_RANGE);
    let budget = knob_texts("latency_budget_ms", budget_ms, &BUDGET_MS_RANGE);
    for (text, page) in fill.iter().chain(&budget) {
        let title = page.lines().next().unwrap_or_default();
        assert!(page.contains(text), "'{text}' is not in the page that begins with '{title}'");
    }
}

#[test]
fn all_say_the_same_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (page, file) in [(PROGRAM, "scx_powerpack.8"), (CONFIG, "scx_powerpack-config.5")] {
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(title.contains(&format!("\"scx_powerpack {version}\"")), "{file}: {title}");
    }
    assert!(MESON.contains(&format!("version: '{version}'")), "meson.build");
    assert!(CHANGELOG.starts_with(&format!("scx-powerpack ({version})")), "debian/changelog");
    assert!(KUSTOMIZATION.contains(&format!("newTag: {version}\n")), "kustomization.yaml");
}
