//! The time that packages spend in low-power states of their own, as the hardware counts it: Intel's counters of
//! package C-states by perf (`cstate_pkg`), and what ACPI's table of low-power idle states (LPIT) names.
//!
//! perf reads a counter of a package on the CPU that asks, if that is in the package, and else interrupts one of the
//! package's (`__perf_event_read_cpu()` in the kernel): with one package a look wakes nobody, with several it wakes
//! the others. The counters of LPIT are read where one asks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perf_event::events::Dynamic;
use perf_event::{Builder, Counter};
use powerpack_load::clock;
use powerpack_workload::parse_cpu_list;

use super::sensors::{entries, name, number};

/// Where perf names the counters.
const COUNTERS: &str = "sys/bus/event_source/devices/cstate_pkg";
/// What follows the state in the name of a counter, as in `c6-residency`.
const COUNTER_END: &str = "-residency";
/// The files of LPIT (us), which are of the whole machine, and what they count: the package, and all around it.
const LOW_POWER: [(&str, &str); 2] = [
    ("low_power_idle_cpu_residency_us", "LPI package"),
    ("low_power_idle_system_residency_us", "LPI system"),
];
const NS_PER_S: f64 = 1e9;

/// May a look interrupt a CPU of each other package?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// It may: it is looked seldom.
    MayWake,
    /// It may not: machines of several packages report no C-states then.
    Sleep,
}

/// A state of a package, or of the machine.
struct State {
    source: Source,
    /// What the source said last.
    last: u64,
    /// For how long it was there since the start (s).
    seconds: f64,
}

enum Source {
    /// It counts as fast as the time stamp counter.
    Counter(Counter),
    /// A file in us.
    LowPower(PathBuf),
}

/// Counts from when it was last started, as it is at its beginning.
pub struct PackageStates {
    /// By name, one of each package.
    states: BTreeMap<String, Vec<State>>,
    /// When it was looked last: the time stamp counter, and ns.
    last: (u64, u64),
}

impl PackageStates {
    /// Those that there are below `root` (`/` but in tests), and that this user may read. To begin interrupts a CPU of
    /// each package.
    pub fn begin(root: &Path, others: Others) -> Self {
        let mut states = BTreeMap::new();
        for (title, counters) in counters(root, others) {
            let of = |counter| State { source: Source::Counter(counter), last: 0, seconds: 0.0 };
            states.insert(title, counters.into_iter().map(of).collect());
        }
        for (file, title) in LOW_POWER {
            let path = root.join("sys/devices/system/cpu/cpuidle").join(file);
            if let Some(last) = number(&path) {
                let state = State { source: Source::LowPower(path), last, seconds: 0.0 };
                states.insert(title.to_owned(), vec![state]);
            }
        }
        let mut begun = PackageStates { states, last: (0, 0) };
        begun.start();
        begun
    }

    /// Counts from now on.
    pub fn start(&mut self) {
        self.look();
        self.states.values_mut().flatten().for_each(|state| state.seconds = 0.0);
    }

    /// Whether there is anything to look at.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Looks: seldom enough that it does not matter whom it wakes, but often enough that no counter begins again
    /// (64 bits of them take years).
    pub fn look(&mut self) {
        let now = (time_stamp(), clock::now_ns());
        let stamps = now.0.saturating_sub(self.last.0) as f64;
        let seconds = now.1.saturating_sub(self.last.1) as f64 / NS_PER_S;
        for state in self.states.values_mut().flatten() {
            let count = state.source.read().unwrap_or(state.last);
            let more = count.saturating_sub(state.last) as f64;
            state.seconds += match state.source {
                // Both may begin again while the machine is suspended.
                Source::Counter(_) if stamps > 0.0 => (more / stamps).min(1.0) * seconds,
                Source::Counter(_) => 0.0,
                Source::LowPower(_) => more / 1e6,
            };
            state.last = count;
        }
        self.last = now;
    }

    /// How long each state lasted from the start to the last look (s), mean over the packages; the deepest last.
    pub fn seconds(&self) -> Vec<(String, f64)> {
        let mean = |states: &[State]| {
            states.iter().map(|state| state.seconds).sum::<f64>() / states.len() as f64
        };
        let mut all: Vec<_> =
            self.states.iter().map(|(title, of)| (title.clone(), mean(of))).collect();
        all.sort_by_key(|(title, _)| depth(title));
        all
    }
}

impl Source {
    fn read(&mut self) -> Option<u64> {
        match self {
            Source::Counter(counter) => counter.read().ok(),
            Source::LowPower(path) => number(path),
        }
    }
}

/// C10 is deeper than C6, and what is no C-state is deeper than those.
fn depth(title: &str) -> (u32, String) {
    let nr = title.strip_prefix('C').and_then(|nr| nr.parse().ok());
    (nr.unwrap_or(u32::MAX), title.to_owned())
}

/// Whether these are the states that exclude each other: shares of them can be added.
pub fn is_c_state(title: &str) -> bool {
    title.starts_with('C')
}

/// Of each C-state that may be read its counters, one of each package.
fn counters(root: &Path, others: Others) -> BTreeMap<String, Vec<Counter>> {
    let pmu = root.join(COUNTERS);
    let list = fs::read_to_string(pmu.join("cpumask")).unwrap_or_default();
    let cpus = parse_cpu_list(list.trim()).unwrap_or_default();
    if cpus.is_empty() || !has_time_stamps() || (others == Others::Sleep && cpus.len() > 1) {
        return BTreeMap::new();
    }
    let of = |event: PathBuf| {
        let title = name(&event).strip_suffix(COUNTER_END)?.to_uppercase();
        let counters: Option<Vec<_>> = cpus.iter().map(|&cpu| open(&pmu, &event, cpu)).collect();
        Some((title, counters?))
    };
    entries(&pmu.join("events")).into_iter().filter_map(of).collect()
}

fn open(pmu: &Path, event: &Path, cpu: usize) -> Option<Counter> {
    let event = Dynamic::builder(pmu).ok()?.event(event).ok()?.build().ok()?;
    let mut builder = Builder::new(event);
    // The hardware cannot leave anything out, and perf refuses to be asked.
    builder.any_pid().one_cpu(cpu).enabled(true).include_kernel().include_hv();
    builder.build().ok()
}

/// Whether there is a time stamp counter, which is what C-states are counted in.
fn has_time_stamps() -> bool {
    cfg!(target_arch = "x86_64")
}

fn time_stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has it, and Linux lets everyone read it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return 0;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::machine::sensors::tests::{sysfs, write};

    /// A package's counters as perf names them; they are its clock of a CPU, in ns.
    const PMU: [(&str, &str); 5] = [
        ("bus/event_source/devices/cstate_pkg/type", "1"),
        ("bus/event_source/devices/cstate_pkg/format/event", "config:0-63"),
        ("bus/event_source/devices/cstate_pkg/events/c2-residency", "event=0x00"),
        ("bus/event_source/devices/cstate_pkg/events/c10-residency", "event=0x00"),
        ("bus/event_source/devices/cstate_pkg/cpumask", "0"),
    ];

    #[test]
    fn counters_of_c_states_are_read_by_perf() {
        let root = sysfs("c-states", &PMU);
        let mut states = PackageStates::begin(&root, Others::Sleep);
        // Only who may use perf sees them.
        if !states.is_empty() {
            let begin = Instant::now();
            clock::burn(20_000_000);
            states.look();
            let (seconds, elapsed) = (states.seconds(), begin.elapsed().as_secs_f64());
            let titles: Vec<_> = seconds.iter().map(|(title, _)| title.as_str()).collect();
            assert_eq!(titles, ["C2", "C10"]);
            // How fast this machine counts time stamps is not known here: 10 GHz at most.
            let range = elapsed * 0.1..elapsed * 1.5;
            assert!(seconds.iter().all(|(_, s)| range.contains(s)), "{seconds:?} of {elapsed}");
        }
        write(&root, &[(PMU[4].0, "0,1")]);
        assert!(PackageStates::begin(&root, Others::Sleep).is_empty(), "others would be woken");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_acpi_counts_is_of_the_whole_machine_and_deepest() {
        let file = |nr: usize| format!("devices/system/cpu/cpuidle/{}", LOW_POWER[nr].0);
        let root = sysfs("lpit", &[(&file(0), "1000000"), (&file(1), "5")]);
        let mut states = PackageStates::begin(&root, Others::Sleep);
        write(&root, &[(&file(0), "2500000")]);
        states.look();
        let expected = [("LPI package".to_owned(), 1.5), ("LPI system".to_owned(), 0.0)];
        assert_eq!(states.seconds(), expected);
        assert!(!is_c_state(LOW_POWER[0].1) && depth("LPI package") > depth("C10"));
        assert!(depth("C10") > depth("C6"));
        fs::remove_dir_all(&root).unwrap();
        assert!(PackageStates::begin(&root, Others::MayWake).is_empty());
    }
}
