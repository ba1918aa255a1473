//! The agent: its configuration, its status, its unit, and the files that it keeps.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde::Serialize;
use toml::{Table, Value};

use super::command;
use super::log::line_number;
use super::mask::Mask;
use super::part::{Part, reason};
use crate::cli::Cli;
use crate::cmd::status::{ask_status, status_text};
use crate::control::peer::holder;
use crate::control::status::Status;
use crate::machine::record::Entries;
use crate::machine::topology::Ranks;
use crate::settings::config::{self, ConfigFile};
use crate::settings::policy::Choice;

const UNIT: &str = "scx_powerpack.service";
/// Of our units these, which have nothing private.
const PROPERTIES: &str = "--property=LoadState,UnitFileState,ActiveState,SubState,Result,NRestarts,\
                          ExecMainCode,ExecMainStatus,ActiveEnterTimestamp,InactiveEnterTimestamp,\
                          NeedDaemonReload,DropInPaths";
/// Others that set what we set, or load schedulers.
const OTHER_UNITS: [&str; 7] = [
    "scx.service",
    "scx_loader.service",
    "irqbalance.service",
    "power-profiles-daemon.service",
    "thermald.service",
    "tlp.service",
    "tuned.service",
];
/// The files that we keep, and where.
const KEPT: [(&str, &[&str]); 2] = [
    (
        "/run/scx_powerpack",
        &[
            "control.sock",
            "hints.json",
            "hints.json.bad",
            "calibrate.json",
            "calibrate.json.bad",
            "bench.json",
            "bench.json.bad",
        ],
    ),
    ("/var/lib/scx_powerpack", &["auto.json", "auto.json.new", "machine.toml", "machine.toml.new"]),
];

/// What it is to do: the running one's command line, and the configuration file.
pub fn configuration(mask: &mut Mask) -> Part {
    let mut part = Part::new("Configuration in effect");
    let named = match holder().map(running) {
        None => None,
        Some(Ok((cli, file))) => {
            part.add(format!("the running scheduler's command line: {}", flags(&cli)));
            file
        }
        Some(Err(why)) => {
            part.miss("the running scheduler's command line", format!("{why:#}"));
            None
        }
    };
    let named = named.as_deref();
    // Another one may be named after somebody.
    let path =
        named.map_or_else(|| config::path(None).display().to_string(), |_| "FILE".to_owned());
    let state = match (fs::exists(config::path(named)), named) {
        (Ok(false), None) => " is not there; defaults",
        (Ok(false), Some(_)) => " is not there",
        _ => "",
    };
    part.add(format!("the file {path}{state}:\n\n"));
    match settings(named, mask) {
        Ok(text) => part.add(text),
        Err(why) => part.miss("the file", why),
    }
    part
}

/// The command line of process `pid`, and the configuration file that it names. Fails if it cannot be read or
/// is none of this version.
fn running(pid: i32) -> Result<(Cli, Option<PathBuf>)> {
    let bytes = match fs::read(format!("/proc/{pid}/cmdline")) {
        Err(err) => bail!(reason(&err)),
        Ok(bytes) => bytes,
    };
    let words = bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    // What clap says of it would quote it.
    let cli = Cli::try_parse_from(words.map(|word| String::from_utf8_lossy(word).into_owned()))
        .ok()
        .context("it is of another version")?;
    // An absolute one replaces the directory.
    let file = cli.config.as_ref().map(|file| PathBuf::from(format!("/proc/{pid}/cwd")).join(file));
    Ok((cli, file))
}

/// The flags, with those values that are no names of anybody's.
fn flags(cli: &Cli) -> String {
    let policy = &cli.policy;
    let all = [
        knob("--mode", cli.mode.as_deref().and_then(|mode| mode.parse::<Choice>().ok())),
        knob("--max-cores", policy.max_cores),
        knob("--pack", policy.pack),
        knob("--fill-pct", policy.fill_pct),
        knob("--latency-budget-ms", policy.latency_budget_ms),
        knob("--idle-latency-us", cli.idle_latency_us),
        knob("--irqs", cli.irqs),
        knob("--config", cli.config.as_ref().map(|_| "FILE")),
        knob("--metrics", cli.metrics.map(Mask::address)),
        cli.require_cpu_max.then(|| "--require-cpu-max".to_owned()),
        cli.verbose.then(|| "--verbose".to_owned()),
    ];
    let said = all.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if said.is_empty() { "no flags".to_owned() } else { said }
}

fn knob(name: &str, value: Option<impl Serialize>) -> Option<String> {
    let value = serde_json::to_string(&value?).unwrap_or_default();
    Some(format!("{name} {}", value.trim_matches('"')))
}

/// All settings of the file, defaults among them, as TOML. Fails with what may be said of a file that is wrong.
fn settings(named: Option<&Path>, mask: &mut Mask) -> Result<String, String> {
    let read = || {
        let file = ConfigFile::read(named)?;
        let policy = file.policy(&Ranks::read()?)?;
        anyhow::Ok(Table::try_from(file.config.completed(policy))?)
    };
    let mut table = read().map_err(|err| what_is_wrong(&err))?;
    if let Some(Value::String(address)) = table.get_mut("metrics")
        && let Ok(parsed) = address.parse()
    {
        *address = Mask::address(parsed);
    }
    if let Some(Value::Table(workloads)) = table.get_mut("workloads") {
        for pattern in workloads.iter_mut().filter_map(|(_, list)| list.as_array_mut()).flatten() {
            *pattern = Value::String(mask.cgroup(pattern.as_str().unwrap_or_default()));
        }
    }
    toml::to_string(&table).map_err(|err| err.to_string())
}

/// Why there are no settings, without what the message quotes of the file.
fn what_is_wrong(err: &anyhow::Error) -> String {
    if let Some(err) = err.root_cause().downcast_ref::<std::io::Error>() {
        return reason(err);
    }
    match line_number(&format!("{err:#}")) {
        Some(nr) => format!("line {nr} is wrong"),
        None => "it does not fit this machine".to_owned(),
    }
}

/// What the running one says of itself, for people and for programs.
pub fn status(mask: &mut Mask) -> Part {
    let mut part = Part::new("Status");
    match ask_status() {
        Ok(mut status) => {
            mask_status(&mut status, mask);
            part.add(status_text(&status));
            match serde_json::to_string(&status) {
                Ok(json) => part.add(format!("\n{json}")),
                Err(err) => part.miss("the status as JSON", err),
            }
        }
        Err(err) => part.add(mask.text(&format!("{err:#}"))),
    }
    part
}

fn mask_status(status: &mut Status, mask: &mut Mask) {
    let limited = status.limits.iter_mut().map(|limit| &mut limit.cgroup);
    for cgroup in limited.chain(&mut status.ignored_cpu_max).chain(&mut status.above_ceiling) {
        *cgroup = mask.cgroup(cgroup);
    }
}

/// What systemd says.
pub fn units(mask: &Mask) -> Part {
    let mut part = Part::new("Units of systemd");
    if !Path::new("/run/systemd/system").exists() {
        part.add("systemd does not run here");
        return part;
    }
    for unit in [UNIT, "scx_powerpack-metrics.socket"] {
        match command::output("systemctl", &["show", unit, "--timestamp=utc", PROPERTIES]) {
            Ok(text) => {
                part.add(format!("{unit}:"));
                text.lines().filter_map(property).for_each(|line| part.add(mask.text(&line)));
            }
            Err(why) => part.miss(unit, why),
        }
    }
    let others = [&["is-active"], &OTHER_UNITS[..]].concat();
    match command::output("systemctl", &others) {
        Ok(text) => OTHER_UNITS
            .iter()
            .zip(text.lines())
            .for_each(|(unit, state)| part.add(format!("{unit}: {}", mask.text(state)))),
        Err(why) => part.miss("other units", why),
    }
    part
}

/// A line of `systemctl show`, but of files that change the unit only how many there are.
fn property(line: &str) -> Option<String> {
    match line.split_once('=')? {
        (_, "") => None,
        ("DropInPaths", paths) => {
            Some(format!("  DropInPaths={} files", paths.split_whitespace().count()))
        }
        _ => Some(format!("  {line}")),
    }
}

/// Which files it keeps, and which settings of the machine are still to be put back.
pub fn files() -> Part {
    let mut part = Part::new("Files that it keeps");
    for (dir, names) in KEPT {
        match fs::read_dir(dir) {
            Err(err) if err.kind() == ErrorKind::NotFound => part.add(format!("{dir}: not there")),
            Err(err) => part.miss(dir, reason(&err)),
            Ok(_) => part.add(format!("{dir}:")),
        }
        for path in names.iter().map(|name| Path::new(dir).join(name)) {
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            part.add(format!("  {}: {} bytes", path.display(), meta.len()));
            if dir.starts_with("/run") && path.extension().is_some_and(|end| end == "json") {
                to_put_back(&mut part, &path);
            }
        }
    }
    part
}

/// How many settings of each kind a record names.
fn to_put_back(part: &mut Part, path: &Path) {
    let Some(text) = part.read(path) else { return };
    let Ok(entries) = serde_json::from_str::<Entries>(&text) else {
        return part.miss(path.display(), "it is no record");
    };
    let mut kinds = BTreeMap::<String, usize>::new();
    for file in entries.keys().filter_map(|path| path.file_name()) {
        *kinds.entry(file.to_string_lossy().into_owned()).or_default() += 1;
    }
    for (file, nr) in kinds {
        part.add(format!("    to be put back: {nr} of {file}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::tests::made_up;
    use crate::control::status::LimitStatus;

    #[test]
    fn flags_are_shown_without_names_and_addresses() {
        let cli = Cli::try_parse_from([
            "/home/secret/scx_powerpack",
            "--mode",
            "packing",
            "--max-cores",
            "4",
            "--config",
            "/home/secret/x.toml",
            "--metrics",
            "192.0.2.7:80",
        ]);
        assert_eq!(
            flags(&cli.unwrap()),
            "--mode packing --max-cores 4 --config FILE --metrics ADDRESS:80"
        );
        assert_eq!(flags(&Cli::try_parse_from(["x"]).unwrap()), "no flags");
    }

    #[test]
    fn settings_are_shown_without_cgroups_and_addresses() {
        let path = std::env::temp_dir().join(format!("report-{}.toml", std::process::id()));
        let shown = |text: &str| {
            fs::write(&path, text).unwrap();
            settings(Some(&path), &mut Mask::default())
        };
        let text = shown(
            "# secret\nmode = \"spread\"\nmetrics = \"192.0.2.7:80\"\n[workloads]\n\
             pack = [\"secret.slice\"]\nspread = [\"secret.slice/se*ret\"]\n",
        )
        .unwrap();
        for part in
            ["mode = \"spread\"", "\"ADDRESS:80\"", "[\"cgroup-1\"]", "[\"cgroup-1/cgroup-2*\"]"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("secret") && !text.contains("192"), "{text}");
        for wrong in ["\nsecret = 1\n", "\n[workloads]\npack = [\"[secret\"]\n", "secret"] {
            let said = shown(wrong).unwrap_err();
            assert!(said.starts_with("line ") && said.ends_with(" is wrong"), "{said}");
        }
        fs::remove_file(&path).unwrap();
        let said = settings(Some(&path), &mut Mask::default()).unwrap_err();
        assert!(said.starts_with("No such file"), "{said}");
    }

    #[test]
    fn cgroups_have_the_same_names_in_the_status() {
        let mut status = made_up::status(4, 1);
        let limit = LimitStatus {
            cgroup: "secret.slice".into(),
            quota_us: 1,
            period_us: 1,
            nr_periods: 0,
            nr_throttled: 0,
            throttled_us: 0,
            waiting: 0,
        };
        status.limits = vec![limit];
        status.above_ceiling = vec!["secret.slice/a".into()];
        status.ignored_cpu_max = vec!["other".into()];
        let mut mask = Mask::default();
        assert_eq!(mask.cgroup("secret.slice"), "cgroup-1", "as in the configuration");
        mask_status(&mut status, &mut mask);
        let json = serde_json::to_string(&status).unwrap();
        assert!(!json.contains("secret") && !json.contains("other"), "{json}");
        assert!(json.contains("[\"cgroup-1/cgroup-3\"]"), "{json}");
    }

    #[test]
    fn of_files_that_change_a_unit_only_the_number_is_said() {
        assert_eq!(property("DropInPaths=/etc/secret /etc/b").unwrap(), "  DropInPaths=2 files");
        assert_eq!(property("Result=success").unwrap(), "  Result=success");
        assert_eq!(property("Result="), None);
    }
}
