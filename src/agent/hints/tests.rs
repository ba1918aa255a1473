//! With made-up trees.

mod irqs;
mod preferences;

use std::fs;
use std::mem;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;

/// Four CPUs with two policies; gone at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("hints-{name}-{}", std::process::id()));
        let tree = Tree(root);
        for cpu in 0..4 {
            tree.put(&latency(cpu), "0");
        }
        for policy in 0..2 {
            tree.put(&epp(policy), "balance_performance");
            let available = "default performance balance_performance balance_power power ";
            let dir = format!("cpufreq/policy{policy}");
            tree.put(&format!("{dir}/energy_performance_available_preferences"), available);
        }
        tree
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join("sys/devices/system/cpu").join(file)
    }

    fn put(&self, file: &str, value: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{value}\n")).unwrap();
    }

    fn get(&self, file: &str) -> String {
        record::read(&self.path(file)).unwrap()
    }

    fn latencies(&self) -> [String; 4] {
        std::array::from_fn(|cpu| self.get(&latency(cpu)))
    }

    fn epps(&self) -> [String; 2] {
        std::array::from_fn(|policy| self.get(&epp(policy)))
    }

    fn battery(&self, status: &str) {
        self.put("../../../class/power_supply/BAT0/type", "Battery");
        self.put("../../../class/power_supply/BAT0/status", status);
    }

    fn record(&self) -> PathBuf {
        self.0.join("run/hints.json")
    }

    fn hints(&self, text: &str) -> InForce {
        InForce::new(parse(text), &self.0, &self.record()).unwrap()
    }

    fn is_untouched(&self) -> bool {
        self.latencies() == ["0"; 4] && self.epps() == ["balance_performance"; 2]
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn latency(cpu: usize) -> String {
    format!("cpu{cpu}/power/{LATENCY_FILE}")
}

fn epp(policy: usize) -> String {
    format!("cpufreq/policy{policy}/{EPP_FILE}")
}

fn parse(text: &str) -> Hints {
    toml::from_str(text).unwrap()
}

const BOTH: &str =
    "idle_latency_us = 200\nepp.packing = \"balance_power\"\nepp.spread = \"performance\"";

#[test]
fn the_table_is_read_and_a_mistake_named() {
    let hints = parse(BOTH);
    assert_eq!(hints.idle_latency_us, Some(IdleLatency::AtMostUs(200)));
    assert_eq!(hints.epp.of(Mode::Spread), Some("performance"));
    assert_eq!(hints.epp.of(Mode::Balance), None);
    assert_eq!(parse("idle_latency_us = \"any\"").idle_latency_us, Some(IdleLatency::Any));
    assert_eq!(parse(""), Hints::default());
    for (bad, said) in [
        ("idle_latency_us = 0", "'0' is no idle latency: 1..100000 (microseconds), or 'any'"),
        ("idle_latency_us = 100001", "'100001' is no idle latency"),
        ("idle_latency_us = -1", "'-1' is no idle latency"),
        ("idle_latency_us = 1.5", "expected a number of microseconds"),
        ("idle_latency_us = \"few\"", "'few' is no idle latency"),
        ("epp.turbo = \"power\"", "unknown field `turbo`"),
        ("latency = 5", "unknown field `latency`"),
    ] {
        let text = format!("{:#}", crate::settings::config::parse_toml::<Hints>(bad).unwrap_err());
        assert!(text.starts_with("line 1: ") && text.contains(said), "{text}");
    }
}

#[test]
fn what_is_wrong_is_refused_and_what_the_machine_has_not_is_said() {
    let tree = Tree::new("lacks");
    let lacks = |text: &str, root: &Path| parse(text).lacks(root, &root.join("run"));
    let none = Vec::<String>::new();
    assert_eq!(lacks(BOTH, &tree.0).unwrap(), none);
    let empty = tree.0.join("empty");
    for root in [&tree.0, &empty] {
        let text = lacks("epp.balance = \"turbo\"", root).unwrap_err().to_string();
        assert!(text.contains("epp.balance 'turbo'") && text.contains("default, performance"));
        assert_eq!(text.lines().count(), 1);
    }
    let both = lacks(BOTH, &empty).unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].ends_with("leave epp out") && both[1].ends_with("leave idle_latency_us out"));
    assert_eq!(lacks("idle_latency_us = \"any\"\nepp.packing = \"keep\"", &empty).unwrap(), none);
}

#[test]
fn the_rest_is_in_force_where_something_is_lacking() {
    let tree = Tree::new("rest");
    let policies: Vec<PathBuf> = entries(&tree.0, "policy");
    policies.iter().for_each(|policy| fs::remove_dir_all(policy).unwrap());
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0]).unwrap();
    assert_eq!(tree.latencies(), ["200", "0", "0", "0"]);
    // Another driver comes.
    tree.put(&epp(0), "balance_performance");
    hints.apply(Mode::Packing, &[0]).unwrap();
    assert_eq!(tree.get(&epp(0)), "balance_power");
    drop(hints);
    assert_eq!(
        (tree.latencies(), tree.get(&epp(0))),
        (["0"; 4].map(String::from), "balance_performance".into())
    );
}

#[test]
fn the_modes_change_what_is_written_and_the_end_undoes_it() {
    let tree = Tree::new("modes");
    let mut hints = tree.hints(BOTH);
    assert!(tree.is_untouched() && !tree.record().exists());
    hints.apply(Mode::Packing, &[0, 1]).unwrap();
    assert_eq!(tree.latencies(), ["200", "200", "0", "0"]);
    assert_eq!(tree.epps(), ["balance_power"; 2]);
    assert!(tree.record().exists());
    hints.apply(Mode::Spread, &[1, 2]).unwrap();
    assert_eq!(tree.latencies(), ["0", "200", "200", "0"]);
    assert_eq!(tree.epps(), ["performance"; 2]);
    // No preference for this mode, and no CPU to keep awake.
    hints.apply(Mode::Balance, &[]).unwrap();
    assert!(tree.is_untouched() && !tree.record().exists());
    hints.apply(Mode::Packing, &[3]).unwrap();
    drop(hints);
    assert!(tree.is_untouched() && !tree.record().exists());
}

#[test]
fn it_is_restored_once_and_may_be_applied_again() {
    let tree = Tree::new("restore");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0]).unwrap();
    assert_eq!(hints.restore().restored, 3);
    assert!(tree.is_untouched() && !tree.record().exists());
    tree.put(&epp(0), "balance_power");
    assert_eq!(hints.restore().restored, 0);
    hints.apply(Mode::Spread, &[]).unwrap();
    drop(hints);
    assert_eq!(tree.epps(), ["balance_power", "balance_performance"]);
}

#[test]
fn a_killed_one_is_undone_by_the_next() {
    let tree = Tree::new("killed");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0, 1]).unwrap();
    hints.apply(Mode::Spread, &[1]).unwrap();
    mem::forget(hints);
    tree.put(&epp(1), "power");
    let done = recover(&tree.record());
    // CPU 0 was put back already.
    assert_eq!((done.restored, done.foreign.len(), done.failed.len()), (2, 1, 0));
    assert_eq!(done.foreign[0], (tree.path(&epp(1)), "power".to_owned()));
    assert_eq!(tree.latencies(), ["0"; 4]);
    assert_eq!(tree.epps(), ["balance_performance", "power"]);
    assert!(!tree.record().exists());
    assert_eq!(recover(&tree.record()).restored, 0);
}

/// The record comes first, and with every value that the file may hold: at whatever write
/// it is killed, nothing of ours is taken for somebody else's.
#[test]
fn killed_between_the_record_and_a_write() {
    let tree = Tree::new("between");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[]).unwrap();
    // The mode changes: the first policy is written, the second one is not yet.
    hints.apply(Mode::Spread, &[]).unwrap();
    mem::forget(hints);
    tree.put(&epp(1), "balance_power");
    let done = recover(&tree.record());
    assert_eq!((done.restored, done.foreign.len()), (2, 0));
    assert!(tree.is_untouched());
}

#[test]
fn nothing_is_written_that_cannot_be_recorded() {
    let tree = Tree::new("unrecorded");
    // Neither root nor anybody else writes a file over a directory.
    fs::create_dir_all(tree.0.join("run/hints.json.new")).unwrap();
    let mut hints = tree.hints(BOTH);
    let text = format!("{:#}", hints.apply(Mode::Packing, &[0]).unwrap_err());
    assert!(text.starts_with("cannot record in ") && text.lines().count() == 1, "{text}");
    assert!(tree.is_untouched() && !tree.record().exists());
    // What was in force for the mode before is over.
    fs::remove_dir(tree.0.join("run/hints.json.new")).unwrap();
    hints.apply(Mode::Packing, &[0]).unwrap();
    fs::create_dir_all(tree.0.join("run/hints.json.new")).unwrap();
    hints.apply(Mode::Spread, &[1]).unwrap_err();
    assert!(tree.is_untouched() && tree.record().exists());
    fs::remove_dir(tree.0.join("run/hints.json.new")).unwrap();
    hints.apply(Mode::Spread, &[1]).unwrap();
    assert_eq!(tree.latencies(), ["0", "200", "0", "0"]);
    fs::create_dir_all(tree.0.join("run/hints.json.new")).unwrap();
    // It needs no room to be removed.
    drop(hints);
    assert!(tree.is_untouched() && !tree.record().exists());
}

#[test]
fn a_record_without_sense_is_moved_aside() {
    let tree = Tree::new("bad");
    fs::create_dir_all(tree.0.join("run")).unwrap();
    tree.put("other", "old");
    let entry = json!({"original": "new", "ours": ["old"]});
    let elsewhere = json!({tree.path("other").to_str().unwrap(): entry}).to_string();
    for bad in ["", "{\"a\":", "[1, 2]", "\u{1}", &elsewhere] {
        fs::write(tree.record(), bad).unwrap();
        assert_eq!(recover(&tree.record()).restored, 0);
        assert!(!tree.record().exists());
        assert_eq!(fs::read_to_string(tree.0.join("run/hints.json.bad")).unwrap(), bad);
    }
    assert_eq!(tree.get("other"), "old");
    tree.hints(BOTH).apply(Mode::Packing, &[0]).unwrap();
    assert!(tree.is_untouched());
}

#[test]
fn what_is_offline_or_gone_is_passed_over() {
    let tree = Tree::new("offline");
    tree.put("cpu1/online", "0");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0, 1, 2, 77]).unwrap();
    assert_eq!(tree.latencies(), ["200", "0", "200", "0"]);
    tree.put("cpu1/online", "1");
    hints.apply(Mode::Packing, &[0, 1, 2]).unwrap();
    assert_eq!(tree.latencies(), ["200", "200", "200", "0"]);
    fs::remove_dir_all(tree.path("cpu2")).unwrap();
    // Offline, but it can come back: with what it had.
    tree.put("cpu1/online", "0");
    let done = hints.restore();
    assert_eq!((done.restored, done.foreign.len(), done.failed.len()), (4, 0, 0));
    assert_eq!((tree.get(&latency(1)), tree.get(&latency(0))), ("0".into(), "0".into()));
    assert!(!tree.path("cpu2").exists() && !tree.record().exists());
}

#[test]
fn whoever_wants_less_latency_keeps_it() {
    let tree = Tree::new("stricter");
    for (cpu, value) in ["n/a", "50", "1000", "0"].into_iter().enumerate() {
        tree.put(&latency(cpu), value);
    }
    let mut hints = tree.hints("idle_latency_us = 200");
    hints.apply(Mode::Packing, &[0, 1, 2, 3]).unwrap();
    assert_eq!(tree.latencies(), ["n/a", "50", "200", "200"]);
    drop(hints);
    assert_eq!(tree.latencies(), ["n/a", "50", "1000", "0"]);
}

#[test]
fn somebody_elses_change_is_not_undone() {
    let tree = Tree::new("foreign");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0]).unwrap();
    tree.put(&epp(0), "power");
    // The same is wanted as before: the one that came later has the last word.
    hints.apply(Mode::Packing, &[0, 1]).unwrap();
    assert_eq!(tree.epps(), ["power", "balance_power"]);
    // Another mode has its own preference, and then theirs is what is put back.
    hints.apply(Mode::Spread, &[0, 1]).unwrap();
    assert_eq!(tree.epps(), ["performance", "performance"]);
    tree.put(&latency(0), "10");
    let done = hints.restore();
    assert_eq!((done.restored, done.foreign.len()), (3, 1));
    assert_eq!(tree.epps(), ["power", "balance_performance"]);
    assert_eq!(tree.latencies(), ["10", "0", "0", "0"]);
}

#[test]
fn other_hints_after_a_reload() {
    let tree = Tree::new("reload");
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[0]).unwrap();
    hints.set(parse("epp.packing = \"turbo\"")).unwrap_err();
    hints.set(parse("idle_latency_us = 50")).unwrap();
    hints.apply(Mode::Packing, &[0]).unwrap();
    assert_eq!(
        (tree.get(&latency(0)), tree.get(&epp(0))),
        ("50".into(), "balance_performance".into())
    );
    drop(hints);
    assert!(tree.is_untouched());
}

#[test]
fn a_file_that_refuses_is_named_and_the_others_are_written() {
    let tree = Tree::new("refuses");
    fs::remove_file(tree.path(&epp(0))).unwrap();
    symlink("/proc/version", tree.path(&epp(0))).unwrap();
    let mut hints = tree.hints(BOTH);
    let text = format!("{:#}", hints.apply(Mode::Packing, &[0]).unwrap_err());
    assert!(
        text.starts_with("cannot write balance_power to ") && text.contains("policy0"),
        "{text}"
    );
    assert_eq!((tree.get(&latency(0)), tree.get(&epp(1))), ("200".into(), "balance_power".into()));
    assert_eq!(hints.restore().failed.len(), 0);
    assert!(!tree.record().exists());
}

/// As a policy's file while all of its CPUs are offline.
#[test]
fn what_cannot_be_put_back_now_stays_recorded() {
    let tree = Tree::new("later");
    let mut hints = tree.hints("epp.packing = \"power\"");
    hints.apply(Mode::Packing, &[]).unwrap();
    let (file, away) = (tree.path(&epp(1)), tree.path("away"));
    fs::rename(&file, &away).unwrap();
    fs::create_dir(&file).unwrap();
    let done = hints.restore();
    assert_eq!((done.restored, done.failed.len()), (1, 1));
    mem::forget(hints);
    assert!(tree.record().exists());
    assert_eq!(recover(&tree.record()).failed.len(), 1);
    let mut hints = tree.hints("epp.packing = \"performance\"");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.get(&epp(0)), "performance");
    fs::remove_dir(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    drop(hints);
    assert!(tree.is_untouched() && !tree.record().exists());
}
