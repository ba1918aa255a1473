//! What a suite file may say.

use clap::CommandFactory;

use super::*;
use crate::cli::Cli;

fn parse(text: &str) -> Result<Suite> {
    Suite::parse("test", text, Path::new("."), 4)
}

#[test]
fn the_shipped_ones_can_be_run() {
    for (name, text) in SHIPPED {
        let suite = Suite::parse(name, text, Path::new("."), 12).unwrap();
        assert!(
            suite.loads.iter().map(Load::seconds).sum::<f64>() > 10.0 && !suite.about.is_empty(),
            "{name}"
        );
        // Each entry says where it comes from.
        let sources = text.lines().filter(|line| line.starts_with("# ")).count();
        assert!(sources >= 3, "{name}");
    }
    let seeds = Suite::find("seeds", 2).unwrap();
    assert_eq!(seeds.loads.iter().filter(|load| load.overhead).count(), 16);
    assert_eq!(seeds.loads.iter().filter(|load| load.info.max_cores.is_some()).count(), 2);
}

#[test]
fn a_mistake_is_named_by_line_and_field() {
    let head = "about = \"a\"\n[[run]]\n";
    for (text, said) in [
        ("workload = \"light\"\nsecond = 3\n", "line 4: unknown field `second`"),
        ("workload = \"light\"\n", "[[run]] number 1: seconds: how long"),
        ("workload = \"lihgt\"\nseconds = 3\n", "[[run]] number 1: there is no workload 'lihgt'"),
        ("workload = \"light\"\nseconds = 0\n", "[[run]] number 1: seconds is 0.1 to 3600, not 0"),
        ("program = \"light\"\nworkload = \"light\"\n", "[[run]] number 1: it is either"),
        ("program = \"x '\"\n", "[[run]] number 1: program: "),
        ("workload = \"light\"\nseconds = 3\ngroup = \"x\"\n", "[[run]] number 1: group and"),
        (
            "workload = \"light\"\nseconds = 3\nlimits = [{ figure = \"power_w\", of = [] }]\n",
            "[[run]] number 1: a limit is `of` one or more systems",
        ),
        (
            "workload = \"light\"\nseconds = 3\n[[run]]\nworkload = \"light\"\nseconds = 4\n",
            "'light' is in it twice",
        ),
    ] {
        let text = format!("{:#}", parse(&format!("{head}{text}")).unwrap_err());
        assert!(text.starts_with(said), "{text}");
    }
    let text = format!("{:#}", Suite::find("nonsense", 1).unwrap_err());
    assert!(text.contains("choose one of quick, seeds"), "{text}");
}

#[test]
fn a_mistake_in_cgroups_or_limits_is_named_too() {
    let head = "about = \"a\"\n[[run]]\n";
    for (text, said) in [
        (
            "program = \"x\"\n[[run.cgroups]]\npath = \"a\"\ncpu.max = \"1\"\n",
            "line 6: unknown field `cpu`",
        ),
        ("program = \"x\"\ncgroups = [{ path = \"..\" }]\n", "[[run]] number 1: cgroup '..': "),
        ("program = \"x\"\neach_ceiling = true\nmax_cores = 1\n", "[[run]] number 1: max_cores"),
        (
            "program = \"x\"\nlimits = [{ figure = \"power_w\", of = [\"x\"], at_most = 1, times_load = \"y\" }]\n",
            "a limit of 'x' is of a load that",
        ),
    ] {
        let text = format!("{:#}", parse(&format!("{head}{text}")).unwrap_err());
        assert!(text.starts_with(said), "{text}");
    }
}

#[test]
fn what_runs_beside_a_load_is_needed_too() {
    let text = "about = 'a'\n[[run]]\nprogram = 'gzip x'\nname = 'n'\nbeside = ['chrt 1 x']\n\
        [[run.cgroups]]\npath = 'c'\nbeside = ['nice x']\n";
    let load = &parse(text).unwrap().loads[0];
    assert_eq!((load.info.name.as_str(), load.info.about.as_str()), ("n", "`gzip x`"));
    assert_eq!(load.programs().collect::<Vec<_>>(), ["gzip", "chrt", "nice"]);
    let cgroups: Vec<_> = load.beside.iter().map(|beside| beside.cgroup.as_deref()).collect();
    assert_eq!(cgroups, [None, Some("c")]);
}

#[test]
fn a_workload_is_a_suite_of_its_own() {
    let text = "name = \"w\"\nabout = \"a\"\n[[task]]\nhog = true\n";
    let suite = parse(text).unwrap();
    assert_eq!((suite.loads.len(), suite.loads[0].seconds()), (1, ALONE_S.0 + ALONE_S.1));
    let text = text.replace("hog", "hgo");
    let text = format!("{:#}", parse(&text).unwrap_err());
    assert!(text.starts_with("line 4: unknown field `hgo`"), "{text}");
}

#[test]
fn ceilings_go_from_one_to_all() {
    assert_eq!(ceilings(4), [1, 2, 3, 4]);
    assert_eq!(ceilings(128), [16, 32, 48, 64, 80, 96, 112, 128]);
    assert_eq!(ceilings(12), [2, 3, 5, 6, 8, 9, 11, 12]);
}

#[test]
fn the_help_names_all_suites() {
    let command = Cli::command();
    let bench = command.find_subcommand("bench").unwrap();
    let suite = bench.get_arguments().find(|argument| argument.get_id() == "suite").unwrap();
    let help = suite.get_help().unwrap().to_string();
    let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
    assert!(help.contains(&format!(": {}, or a TOML file", names.join(", "))), "{help}");
}
