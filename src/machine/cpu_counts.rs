//! How often each CPU was woken and interrupted since boot, as the kernel counts it. To read that wakes nobody: the
//! counts lie in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::sensors::{cpu_dirs, entries, name, number};

/// What cpuidle calls the state in which a CPU looks for work in a loop: it is not woken from that.
pub const POLLING: &str = "POLL";
/// Lines of `/proc/interrupts` that count no interrupts: errors, of which there is one count for all CPUs, looks of a
/// timer at the machine check banks, retries as interrupts are sent; and the interrupts of performance counters,
/// which are in the line of NMIs.
const NO_INTERRUPTS: [&str; 6] = ["ERR", "MIS", "Err", "MCP", "RTR", "PMI"];

/// Counts by CPU number.
pub type ByCpu = BTreeMap<usize, u64>;

/// Where the kernel counts.
pub struct CpuCounts {
    interrupts: PathBuf,
    /// Of each CPU: how often it was in each idle state.
    usage: Vec<(usize, Vec<PathBuf>)>,
}

impl CpuCounts {
    /// What there is below `root` (`/` but in tests).
    pub fn find(root: &Path) -> Self {
        let usage = cpu_dirs(root).into_iter().filter_map(|cpu| {
            let nr = name(&cpu).strip_prefix("cpu")?.parse().ok()?;
            let files: Vec<_> = entries(&cpu.join("cpuidle"))
                .into_iter()
                .filter(|state| !is_polling(state))
                .map(|state| state.join("usage"))
                .collect();
            (!files.is_empty()).then_some((nr, files))
        });
        CpuCounts { interrupts: root.join("proc/interrupts"), usage: usage.collect() }
    }

    /// How often each CPU left an idle state but polling; of no CPU where the kernel has no cpuidle.
    pub fn wake_ups(&self) -> ByCpu {
        let of_files = |files: &[PathBuf]| files.iter().filter_map(|path| number(path)).sum();
        self.usage.iter().map(|(cpu, files)| (*cpu, of_files(files))).collect()
    }

    /// How many interrupts of any kind each online CPU had.
    pub fn interrupts(&self) -> ByCpu {
        parse_interrupts(&fs::read_to_string(&self.interrupts).unwrap_or_default())
    }
}

fn is_polling(state: &Path) -> bool {
    fs::read_to_string(state.join("name")).is_ok_and(|name| name.trim() == POLLING)
}

/// The number of the idle state in which `cpu` polls, if one of them does that. Where there is no cpuidle it is the
/// one that the kernel then reports for that.
pub fn polling_state(root: &Path, cpu: usize) -> Option<u32> {
    let state = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state0"));
    (!state.exists() || is_polling(&state)).then_some(0)
}

/// The sums of the columns: a CPU each, as the first line says.
fn parse_interrupts(text: &str) -> ByCpu {
    let mut lines = text.lines();
    let titles = lines.next().unwrap_or_default().split_whitespace();
    let cpus: Vec<usize> =
        titles.filter_map(|title| title.strip_prefix("CPU")?.parse().ok()).collect();
    let mut sums = vec![0; cpus.len()];
    for line in lines {
        let Some((label, counts)) = line.split_once(':') else { continue };
        if NO_INTERRUPTS.contains(&label.trim()) {
            continue;
        }
        let counts = counts.split_whitespace().map_while(|count| count.parse::<u64>().ok());
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    cpus.into_iter().zip(sums).collect()
}

/// How many more there are in `now` than in `before`, in each of `seconds`; of CPUs that are in both.
pub fn per_s(now: &ByCpu, before: &ByCpu, seconds: f64) -> BTreeMap<usize, f64> {
    let of = |(cpu, now): (&usize, &u64)| {
        Some((*cpu, now.saturating_sub(*before.get(cpu)?) as f64 / seconds))
    };
    now.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::sensors::tests::{sysfs, write};

    #[test]
    fn interrupts_are_summed_by_cpu_and_what_is_none_is_left_out() {
        let x86 = "           CPU0       CPU2\n   0:         33          0   IO-APIC    2-edge      timer\n \
             LOC:        100       2000   Local timer interrupts\n RES:          1          2   Rescheduling interrupts\n \
             PMI:        500        500   Performance monitoring interrupts\n MCP:          7          7   Machine check polls\n \
             ERR:          9\n MIS:          9\n";
        assert_eq!(parse_interrupts(x86), [(0, 134), (2, 2002)].into());
        let arm64 = "      CPU0       CPU1\n 11:        10         20     GICv3  27 Level     arch_timer\n\
             IPI0:         1          2       Rescheduling interrupts\nErr:          5\n";
        assert_eq!(parse_interrupts(arm64), [(0, 11), (1, 22)].into());
        assert_eq!(parse_interrupts(""), ByCpu::new());
    }

    #[test]
    fn a_wake_up_is_an_idle_state_but_polling() {
        let state = |cpu, nr, file| format!("devices/system/cpu/cpu{cpu}/cpuidle/state{nr}/{file}");
        let mut files = vec![];
        for (cpu, nr, title, usage) in
            [(0, 0, "POLL", "900"), (0, 1, "C1", "20"), (0, 2, "C6", "3"), (11, 0, "WFI", "5")]
        {
            files.push((state(cpu, nr, "name"), title));
            files.push((state(cpu, nr, "usage"), usage));
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = sysfs("wake-ups", &files);
        let counts = CpuCounts::find(&root);
        let before = counts.wake_ups();
        assert_eq!(before, [(0, 23), (11, 5)].into());
        assert!(counts.interrupts().is_empty());
        write(&root, &[(&state(0, 2, "usage"), "13")]);
        assert_eq!(per_s(&counts.wake_ups(), &before, 2.0), [(0, 5.0), (11, 0.0)].into());
        assert_eq!([0, 11, 1].map(|cpu| polling_state(&root, cpu)), [Some(0), None, Some(0)]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn this_machine_counts_interrupts_of_each_cpu() {
        let counts = CpuCounts::find(Path::new("/")).interrupts();
        assert!(!counts.is_empty() && counts.values().sum::<u64>() > 0, "{counts:?}");
    }
}
