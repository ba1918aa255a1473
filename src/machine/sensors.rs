//! What this machine can report of a run beside what ran: energy, idle states, frequency.
//! What is missing is listed, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use super::power_meter::PowerMeter;
use crate::statistics;

/// Where Intel's driver shows each of them.
const UNCORE: &str = "sys/devices/system/cpu/intel_uncore_frequency";

/// Sums of a run.
pub struct Sources {
    power: PowerMeter,
    /// Those of a CPU together, the deepest last.
    idle_states: Vec<IdleState>,
    frequency_files: Vec<PathBuf>,
    frequencies_mhz: Vec<f64>,
    /// The directories of the parts that the CPUs of a package share.
    uncore: Vec<PathBuf>,
    /// What counts the changes of each clock, and what all had counted.
    change_files: Vec<PathBuf>,
    changes_before: u64,
}

/// An idle state of a CPU.
struct IdleState {
    /// Which of the CPUs, from 0 on.
    cpu: usize,
    name: String,
    /// The file with the time that was spent in it (us), and what was in that.
    time: PathBuf,
    before_us: u64,
}

impl IdleState {
    fn begin(cpu: usize, dir: &Path) -> Option<Self> {
        let name = fs::read_to_string(dir.join("name")).ok()?.trim().to_owned();
        let time = dir.join("time");
        let before_us = number(&time).unwrap_or(0);
        Some(IdleState { cpu, name, time, before_us })
    }

    /// Share of `seconds` (%).
    fn pct(&self, seconds: f64) -> f64 {
        let spent_us = number(&self.time).unwrap_or(0).saturating_sub(self.before_us);
        spent_us as f64 / 1e6 / seconds * 100.0
    }
}

/// The number in a file.
pub fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What is in a directory, in the order of names.
pub fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The last part of a path.
pub fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The directories of the CPUs of `root`'s sysfs.
pub fn cpu_dirs(root: &Path) -> Vec<PathBuf> {
    let is_cpu = |path: &PathBuf| {
        name(path).strip_prefix("cpu").is_some_and(|nr| nr.parse::<usize>().is_ok())
    };
    entries(&root.join("sys/devices/system/cpu")).into_iter().filter(is_cpu).collect()
}

impl Sources {
    /// What there is below `root` (`/` but in tests), beginning now.
    pub fn begin(root: &Path) -> Self {
        let of_cpu = |(cpu, dir): (usize, &PathBuf)| {
            let states = entries(&dir.join("cpuidle")).into_iter();
            states.filter_map(move |state| IdleState::begin(cpu, &state))
        };
        let idle_states = cpu_dirs(root).iter().enumerate().flat_map(of_cpu).collect();
        let frequency_files: Vec<_> = cpu_dirs(root)
            .iter()
            .map(|cpu| cpu.join("cpufreq/scaling_cur_freq"))
            .filter(|path| path.exists())
            .collect();
        let change_files: Vec<_> = entries(&root.join("sys/devices/system/cpu/cpufreq"))
            .iter()
            .map(|policy| policy.join("stats/total_trans"))
            .filter(|path| path.exists())
            .collect();
        let changes_before = sum(&change_files);
        Sources {
            power: PowerMeter::begin(root),
            idle_states,
            frequency_files,
            frequencies_mhz: vec![],
            uncore: entries(&root.join(UNCORE)),
            change_files,
            changes_before,
        }
    }

    /// Looks at what has to be looked at now and then: about once a second.
    pub fn look(&mut self) {
        self.power.look();
        let mhz = |path: &PathBuf| number(path).map(|khz| khz as f64 / 1e3);
        self.frequencies_mhz.extend(self.frequency_files.iter().filter_map(mhz));
    }

    /// Mean power over `seconds` (W).
    pub fn power_w(&self, seconds: f64) -> Option<f64> {
        self.power.power_w(seconds)
    }

    /// Mean over CPUs and time (MHz).
    pub fn frequency_mhz(&self) -> Option<f64> {
        mean(&self.frequencies_mhz)
    }

    /// The frequency of what the CPUs of a package share, caches and memory controllers, now: mean over the packages (MHz),
    /// where the kernel reports it (Intel). A CPU of each package is interrupted for it, so it is looked at once, last.
    pub fn uncore_mhz(&self) -> Option<f64> {
        let mhz =
            |part: &PathBuf| number(&part.join("current_freq_khz")).map(|khz| khz as f64 / 1e3);
        mean(&self.uncore.iter().filter_map(mhz).collect::<Vec<_>>())
    }

    /// How often the clocks changed their frequency, all together, in each of `seconds`; `None` where
    /// the kernel does not count it (CONFIG_CPU_FREQ_STAT).
    pub fn frequency_changes_per_s(&self, seconds: f64) -> Option<f64> {
        let changes = sum(&self.change_files).saturating_sub(self.changes_before);
        (!self.change_files.is_empty()).then(|| changes as f64 / seconds)
    }

    /// Share of `seconds` in each state, mean over the CPUs (%), also over those that have no state of that name; in the
    /// order of depth, of CPUs of one kind.
    pub fn idle_states_pct(&self, seconds: f64) -> Vec<(String, f64)> {
        let mut sums: Vec<(String, f64)> = vec![];
        for state in &self.idle_states {
            let pct = state.pct(seconds);
            match sums.iter_mut().find(|(name, _)| *name == state.name) {
                Some((_, sum)) => *sum += pct,
                None => sums.push((state.name.clone(), pct)),
            }
        }
        let nr = self.idle_cpus().count() as f64;
        sums.into_iter().map(|(name, sum)| (name, sum / nr)).collect()
    }

    /// Share of `seconds` in the deepest state that each CPU has, mean over the CPUs (%).
    pub fn deepest_idle_pct(&self, seconds: f64) -> Option<f64> {
        let deepest = self.idle_cpus().filter_map(|states| states.last());
        mean(&deepest.map(|state| state.pct(seconds)).collect::<Vec<_>>())
    }

    /// The states of each CPU that has any.
    fn idle_cpus(&self) -> impl Iterator<Item = &[IdleState]> {
        self.idle_states.chunk_by(|a, b| a.cpu == b.cpu)
    }

    /// What it cannot report, and why.
    pub fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = vec![];
        missing.extend(self.power.missing().map(|why| format!("power: {why}")));
        if self.idle_states.is_empty() {
            missing.push("idle states: this kernel has no cpuidle here".into());
        }
        if self.frequency_files.is_empty() {
            missing.push("frequency: this kernel has no cpufreq here".into());
        }
        missing
    }
}

/// Of the numbers in `files`.
fn sum(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|path| number(path)).sum()
}

/// Of none there is none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| statistics::mean(values))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A sysfs of these files.
    pub fn sysfs(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("sources-{name}-{}", std::process::id()));
        write(&root, files);
        root
    }

    /// Puts these files into it.
    pub fn write(root: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = root.join("sys").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn changes_of_all_clocks_are_counted_where_the_kernel_does() {
        let fill = |root: &Path, texts: [&str; 2]| {
            for (policy, text) in texts.into_iter().enumerate() {
                let path = format!("devices/system/cpu/cpufreq/policy{policy}/stats/total_trans");
                write(root, &[(&path, text)]);
            }
        };
        let root = sysfs("changes", &[]);
        assert_eq!(Sources::begin(&root).frequency_changes_per_s(1.0), None);
        fill(&root, ["100", "7"]);
        let sources = Sources::begin(&root);
        fill(&root, ["104", "9"]);
        assert_eq!(sources.frequency_changes_per_s(2.0), Some(3.0));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_frequency_of_what_a_package_shares_is_a_mean_too() {
        let file = |nr| {
            format!(
                "devices/system/cpu/intel_uncore_frequency/package_0{nr}_die_00/current_freq_khz"
            )
        };
        let root = sysfs("uncore", &[(&file(0), "1200000"), (&file(1), "2400000")]);
        assert_eq!(Sources::begin(&root).uncore_mhz(), Some(1800.0));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(Sources::begin(&root).uncore_mhz(), None);
    }

    #[test]
    fn each_cpu_has_a_deepest_idle_state_of_its_own() {
        let dir = |cpu, state| format!("devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
        let root = sysfs("deepest", &[]);
        // Two large cores, and two small ones with names of their own.
        for (cpu, deepest) in [(0, "C10"), (1, "C10"), (2, "C6S"), (3, "C6S")] {
            for (state, name) in [(0, "C1E"), (1, deepest)] {
                write(&root, &[(&format!("{}/name", dir(cpu, state)), name)]);
                write(&root, &[(&format!("{}/time", dir(cpu, state)), "0")]);
            }
        }
        let sources = Sources::begin(&root);
        for (cpu, us) in [(0, "1000000"), (1, "600000"), (2, "400000")] {
            write(&root, &[(&format!("{}/time", dir(cpu, 1)), us)]);
        }
        assert_eq!(sources.deepest_idle_pct(1.0), Some(50.0));
        let states = sources.idle_states_pct(1.0);
        assert_eq!(states, [("C1E".into(), 0.0), ("C10".into(), 40.0), ("C6S".into(), 10.0)]);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(Sources::begin(&root).deepest_idle_pct(1.0), None);
    }

    #[test]
    fn idle_states_and_frequencies_are_means_over_the_cpus() {
        let mut files = vec![];
        for cpu in ["cpu0", "cpu1"] {
            for (state, title) in [("state0", "POLL"), ("state1", "C6")] {
                let dir = format!("devices/system/cpu/{cpu}/cpuidle/{state}");
                files.extend([(format!("{dir}/name"), title), (format!("{dir}/time"), "500")]);
            }
        }
        files.push(("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq".into(), "1500000"));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = sysfs("idle", &files);
        let mut sources = Sources::begin(&root);
        write(&root, &[("devices/system/cpu/cpu0/cpuidle/state1/time", "1000500")]);
        sources.look();
        let states = sources.idle_states_pct(2.0);
        assert_eq!(states, [("POLL".to_owned(), 0.0), ("C6".to_owned(), 25.0)]);
        assert_eq!(sources.frequency_mhz(), Some(1500.0));
        assert_eq!(sources.missing().len(), 1);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(Sources::begin(&root).missing().len(), 3);
    }
}
