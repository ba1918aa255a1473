//! What each CPU reports of itself: its frequency, how much of its time it spends in its deepest
//! idle state, and how often it is woken and interrupted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::cpu_counts::{ByCpu, CpuCounts, per_s};
use crate::machine::sensors::{cpu_dirs, entries, number};

/// `None` is what a CPU does not report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuState {
    pub frequency_mhz: Option<f64>,
    /// The deepest idle state: its name, and its share of the time when the CPU was last
    /// seen to leave one (%).
    pub deepest_idle: Option<(String, f64)>,
    /// How often it left an idle state in a second, and its interrupts.
    pub wake_ups_per_s: Option<f64>,
    pub interrupts_per_s: Option<f64>,
}

/// The idle states of a CPU, the deepest last.
struct IdleStates {
    deepest: String,
    times: Vec<PathBuf>,
    /// As it was when they changed last: when (s), all of them, the deepest (us).
    before: (f64, u64, u64),
    pct: Option<f64>,
}

impl IdleStates {
    fn of(cpu: &Path) -> Option<Self> {
        let states = entries(&cpu.join("cpuidle"));
        let deepest = fs::read_to_string(states.last()?.join("name")).ok()?.trim().to_owned();
        let times = states.iter().map(|state| state.join("time")).collect();
        Some(IdleStates { deepest, times, before: (0.0, 0, 0), pct: None })
    }

    /// The kernel counts a stay as it ends: while nothing changes, the last share holds (of
    /// a CPU that is never idle none does, which its non-idle time shows).
    fn look(&mut self, at_s: f64) {
        let times: Vec<u64> = self.times.iter().map(|path| number(path).unwrap_or(0)).collect();
        let now = (at_s, times.iter().sum(), times.last().copied().unwrap_or(0));
        if now.1 == self.before.1 {
            return;
        }
        let seconds = now.0 - self.before.0;
        if self.before.1 > 0 && seconds > 0.0 {
            let slept_s = now.2.saturating_sub(self.before.2) as f64 / 1e6;
            self.pct = Some((slept_s / seconds * 100.0).min(100.0));
        }
        self.before = now;
    }
}

/// All CPUs that report anything.
pub struct CpuStates {
    cpus: BTreeMap<usize, (PathBuf, Option<IdleStates>)>,
    counts: CpuCounts,
    /// At the last look: when (s), wake-ups, interrupts.
    counted: (f64, ByCpu, ByCpu),
}

impl CpuStates {
    /// Those below `root` (`/` but in tests).
    pub fn begin(root: &Path) -> Self {
        let number = |dir: &Path| dir.file_name()?.to_str()?.strip_prefix("cpu")?.parse().ok();
        let cpu = |dir: PathBuf| {
            let states = IdleStates::of(&dir);
            Some((number(&dir)?, (dir.join("cpufreq/scaling_cur_freq"), states)))
        };
        CpuStates {
            cpus: cpu_dirs(root).into_iter().filter_map(cpu).collect(),
            counts: CpuCounts::find(root),
            counted: Default::default(),
        }
    }

    /// At `at_s` seconds of any clock.
    pub fn look(&mut self, at_s: f64) -> BTreeMap<usize, CpuState> {
        let (wake_ups, interrupts) = self.rates(at_s);
        let look = |(&cpu, (frequency, idle)): (&usize, &mut (PathBuf, Option<IdleStates>))| {
            let frequency_mhz = number(frequency).map(|khz| khz as f64 / 1e3);
            let deepest_idle = idle.as_mut().and_then(|states| {
                states.look(at_s);
                Some((states.deepest.clone(), states.pct?))
            });
            let (wake_ups_per_s, interrupts_per_s) =
                (wake_ups.get(&cpu).copied(), interrupts.get(&cpu).copied());
            (cpu, CpuState { frequency_mhz, deepest_idle, wake_ups_per_s, interrupts_per_s })
        };
        let states = self.cpus.iter_mut().map(look);
        states.filter(|(_, state)| *state != CpuState::default()).collect()
    }

    /// Wake-ups and interrupts in a second since the last look.
    fn rates(&mut self, at_s: f64) -> (BTreeMap<usize, f64>, BTreeMap<usize, f64>) {
        let now = (at_s, self.counts.wake_ups(), self.counts.interrupts());
        let before = std::mem::replace(&mut self.counted, now);
        let (now, seconds) = (&self.counted, at_s - before.0);
        (per_s(&now.1, &before.1, seconds), per_s(&now.2, &before.2, seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_counts_when_it_ends() {
        let root = std::env::temp_dir().join(format!("cpu-states-{}", std::process::id()));
        let cpu = root.join("sys/devices/system/cpu/cpu3");
        let write = |file: &str, text: &str| {
            let path = cpu.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (state, name) in [("state0", "POLL\n"), ("state1", "C6\n")] {
            write(&format!("cpuidle/{state}/name"), name);
            write(&format!("cpuidle/{state}/time"), "1000\n");
            write(&format!("cpuidle/{state}/usage"), "100\n");
        }
        write("cpufreq/scaling_cur_freq", "1800000\n");
        let mut states = CpuStates::begin(&root);
        let mut look = |at_s| states.look(at_s)[&3].clone();
        let first = CpuState { frequency_mhz: Some(1800.0), ..CpuState::default() };
        assert_eq!(look(1.0), first);
        let deepest = |pct| Some(("C6".to_owned(), pct));
        write("cpuidle/state1/time", "501000\n");
        write("cpuidle/state1/usage", "130\n");
        let second = look(2.0);
        assert_eq!((second.deepest_idle, second.wake_ups_per_s), (deepest(50.0), Some(30.0)));
        // It sleeps for three seconds and is seen to when it wakes.
        assert_eq!(
            [look(3.0), look(4.0)].map(|state| state.deepest_idle),
            [(); 2].map(|()| deepest(50.0))
        );
        write("cpuidle/state1/time", "3501000\n");
        assert_eq!(look(5.0).deepest_idle, deepest(100.0));
        write("cpuidle/state0/time", "2000\n");
        assert_eq!(look(6.0).deepest_idle, deepest(0.0));
        fs::remove_dir_all(&root).unwrap();
        assert!(CpuStates::begin(&root).look(1.0).is_empty());
    }
}
