//! What this machine can report of a run beside what ran: energy, idle states, frequency.
//! What is missing is listed, with the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// No counter of energy changes more often.
const STEP_MIN: Duration = Duration::from_millis(1);

/// Where energy is counted: each package's counter (uJ), and where it begins again.
struct Rapl {
    counter: PathBuf,
    range_uj: u64,
    last_uj: u64,
    used_uj: u64,
}

/// Sums of a run.
pub struct Sources {
    rapl: Vec<Rapl>,
    battery: Option<PathBuf>,
    battery_w: Vec<f64>,
    idle_files: Vec<(String, PathBuf)>,
    idle_before: Vec<u64>,
    frequency_files: Vec<PathBuf>,
    frequencies_mhz: Vec<f64>,
    /// What counts the changes of each clock, and what all had counted.
    change_files: Vec<PathBuf>,
    changes_before: u64,
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

fn name(path: &Path) -> &str {
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
        let idle_files: Vec<_> = cpu_dirs(root)
            .iter()
            .flat_map(|cpu| entries(&cpu.join("cpuidle")))
            .filter_map(|state| {
                let name = fs::read_to_string(state.join("name")).ok()?;
                Some((name.trim().to_owned(), state.join("time")))
            })
            .collect();
        let idle_before = idle_files.iter().map(|(_, path)| number(path).unwrap_or(0)).collect();
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
            idle_files,
            idle_before,
            frequency_files,
            change_files,
            changes_before,
            ..Sources::of_power(root)
        }
    }

    /// Those that report power.
    pub fn of_power(root: &Path) -> Self {
        Sources {
            rapl: rapl(root),
            battery: battery(root),
            battery_w: vec![],
            idle_files: vec![],
            idle_before: vec![],
            frequency_files: vec![],
            frequencies_mhz: vec![],
            change_files: vec![],
            changes_before: 0,
        }
    }

    /// Looks at what has to be looked at now and then: about once a second.
    pub fn look(&mut self) {
        for package in &mut self.rapl {
            let now = number(&package.counter).unwrap_or(package.last_uj);
            let wrapped = if now < package.last_uj { package.range_uj } else { 0 };
            package.used_uj += now + wrapped - package.last_uj;
            package.last_uj = now;
        }
        self.battery_w.extend(self.battery.as_deref().and_then(discharge_w));
        let mhz = |path: &PathBuf| number(path).map(|khz| khz as f64 / 1e3);
        self.frequencies_mhz.extend(self.frequency_files.iter().filter_map(mhz));
    }

    /// How long it takes from one change of what the meter of power says to the next, at most `max`.
    pub fn step(&mut self, max: Duration) -> Duration {
        let begin = Instant::now();
        let mut changes = vec![];
        let mut last = self.reading();
        while changes.len() < 2 && begin.elapsed() < max {
            thread::sleep(STEP_MIN);
            self.look();
            let now = self.reading();
            if now != last {
                changes.push(Instant::now());
                last = now;
            }
        }
        match changes[..] {
            [first, second] => second - first,
            _ => max,
        }
    }

    /// What the meter of power says last.
    fn reading(&self) -> (Vec<u64>, Option<f64>) {
        let counters = self.rapl.iter().map(|package| package.last_uj).collect();
        (counters, self.battery_w.last().copied())
    }

    /// Which meter of power counts, for the user.
    pub fn meter(&self) -> &'static str {
        if self.rapl.is_empty() { "the battery" } else { "RAPL counters of packages" }
    }

    /// Forgets the sums: begins now.
    pub fn reset(&mut self) {
        self.rapl.iter_mut().for_each(|package| package.used_uj = 0);
        self.battery_w.clear();
        self.frequencies_mhz.clear();
        self.changes_before = sum(&self.change_files);
        for ((_, path), before) in self.idle_files.iter().zip(&mut self.idle_before) {
            *before = number(path).unwrap_or(*before);
        }
    }

    /// Mean power over `seconds` (W).
    pub fn power_w(&self, seconds: f64) -> Option<f64> {
        if !self.rapl.is_empty() {
            let used_uj: u64 = self.rapl.iter().map(|package| package.used_uj).sum();
            return Some(used_uj as f64 / 1e6 / seconds);
        }
        mean(&self.battery_w)
    }

    /// Mean over CPUs and time (MHz).
    pub fn frequency_mhz(&self) -> Option<f64> {
        mean(&self.frequencies_mhz)
    }

    /// How often the clocks changed their frequency, all together, in each of `seconds`; `None` where
    /// the kernel does not count it (CONFIG_CPU_FREQ_STAT).
    pub fn frequency_changes_per_s(&self, seconds: f64) -> Option<f64> {
        let changes = sum(&self.change_files).saturating_sub(self.changes_before);
        (!self.change_files.is_empty()).then(|| changes as f64 / seconds)
    }

    /// Share of `seconds` in each state, mean over the CPUs (%), in the order of depth.
    pub fn idle_states_pct(&self, seconds: f64) -> Vec<(String, f64)> {
        let mut order: Vec<String> = vec![];
        let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
        for ((name, path), before) in self.idle_files.iter().zip(&self.idle_before) {
            let spent_us = number(path).unwrap_or(*before).saturating_sub(*before);
            let sum = sums.entry(name).or_default();
            sum.0 += spent_us as f64 / 1e6;
            sum.1 += 1;
            if !order.contains(name) {
                order.push(name.clone());
            }
        }
        let share = |name: String| {
            let (spent_s, cpus) = sums[name.as_str()];
            let pct = spent_s / seconds / cpus as f64 * 100.0;
            (name, pct)
        };
        order.into_iter().map(share).collect()
    }

    /// What it cannot report, and why.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = vec![];
        if self.rapl.is_empty() && self.battery.as_deref().and_then(discharge_w).is_none() {
            missing.push(match self.battery {
                Some(_) => "power: no RAPL counters in /sys/class/powercap, and not on battery",
                None => "power: no RAPL counters in /sys/class/powercap, and no battery",
            });
        }
        if self.idle_files.is_empty() {
            missing.push("idle states: this kernel has no cpuidle here");
        }
        if self.frequency_files.is_empty() {
            missing.push("frequency: this kernel has no cpufreq here");
        }
        missing.into_iter().map(str::to_owned).collect()
    }
}

/// Of the numbers in `files`.
fn sum(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|path| number(path)).sum()
}

/// Of none there is none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// `intel-rapl:N` are packages, `intel-rapl:N:M` parts of them; AMD's have the same names.
fn rapl(root: &Path) -> Vec<Rapl> {
    let is_package = |path: &PathBuf| {
        let title = fs::read_to_string(path.join("name")).unwrap_or_default();
        name(path).matches(':').count() == 1 && title.starts_with("package")
    };
    let counter = |path: PathBuf| {
        let counter = path.join("energy_uj");
        let last_uj = number(&counter)?;
        let range_uj = number(&path.join("max_energy_range_uj")).unwrap_or(0);
        Some(Rapl { counter, range_uj, last_uj, used_uj: 0 })
    };
    let dirs = entries(&root.join("sys/class/powercap"));
    dirs.into_iter().filter(is_package).filter_map(counter).collect()
}

fn battery(root: &Path) -> Option<PathBuf> {
    let is_battery = |path: &PathBuf| {
        fs::read_to_string(path.join("type")).is_ok_and(|kind| kind.trim() == "Battery")
            && !fs::read_to_string(path.join("scope")).is_ok_and(|scope| scope.trim() == "Device")
    };
    entries(&root.join("sys/class/power_supply")).into_iter().find(is_battery)
}

/// What the battery supplies (W); nothing if it is not discharged.
fn discharge_w(battery: &Path) -> Option<f64> {
    let status = fs::read_to_string(battery.join("status")).ok()?;
    if status.trim() != "Discharging" {
        return None;
    }
    if let Some(uw) = number(&battery.join("power_now")) {
        return Some(uw as f64 / 1e6);
    }
    let of = |file| number(&battery.join(file)).map(|micro| micro as f64 / 1e6);
    Some(of("current_now")? * of("voltage_now")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs of these files.
    fn sysfs(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("sources-{name}-{}", std::process::id()));
        write(&root, files);
        root
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = root.join("sys").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn counters_that_begin_again_are_followed() {
        let counter = "class/powercap/intel-rapl:0/energy_uj";
        let root = sysfs(
            "rapl",
            &[
                ("class/powercap/intel-rapl:0/name", "package-0"),
                (counter, "9000000"),
                ("class/powercap/intel-rapl:0/max_energy_range_uj", "10000000"),
                // A part of it, and the whole laptop: not counted twice.
                ("class/powercap/intel-rapl:0:0/name", "core"),
                ("class/powercap/intel-rapl:0:0/energy_uj", "1"),
                ("class/powercap/intel-rapl:1/name", "psys"),
                ("class/powercap/intel-rapl:1/energy_uj", "1"),
            ],
        );
        let mut sources = Sources::begin(&root);
        write(&root, &[(counter, "1000000")]);
        sources.look();
        write(&root, &[(counter, "3000000")]);
        sources.look();
        assert_eq!(sources.power_w(2.0), Some(2.0));
        sources.reset();
        assert_eq!(sources.power_w(2.0), Some(0.0));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_battery_reports_only_while_it_is_discharged() {
        let of = |status| {
            let root = sysfs(
                status,
                &[
                    ("class/power_supply/BAT0/type", "Battery"),
                    ("class/power_supply/BAT0/status", status),
                    ("class/power_supply/BAT0/current_now", "1500000"),
                    ("class/power_supply/BAT0/voltage_now", "12000000"),
                ],
            );
            let mut sources = Sources::begin(&root);
            sources.look();
            let found = (sources.power_w(1.0), sources.missing());
            fs::remove_dir_all(root).unwrap();
            found
        };
        assert_eq!(of("Discharging").0, Some(18.0));
        let (power_w, missing) = of("Charging");
        assert_eq!(power_w, None);
        assert!(missing[0].contains("not on battery"), "{missing:?}");
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
        let mut sources = Sources::begin(&root);
        fill(&root, ["104", "9"]);
        assert_eq!(sources.frequency_changes_per_s(2.0), Some(3.0));
        sources.reset();
        assert_eq!(sources.frequency_changes_per_s(2.0), Some(0.0));
        fs::remove_dir_all(root).unwrap();
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
        sources.reset();
        assert_eq!(sources.idle_states_pct(2.0)[1].1, 0.0);
        assert_eq!(sources.frequency_mhz(), None);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(Sources::begin(&root).missing().len(), 3);
    }
}
