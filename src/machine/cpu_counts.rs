//! How often each CPU was woken since boot, and interrupted since that was first looked at, as the kernel counts it. To
//! read that wakes nobody: the counts lie in memory.

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
    interrupts: Interrupts,
    /// Of each CPU: how often it was in each idle state.
    usage: Vec<(usize, Vec<PathBuf>)>,
}

impl CpuCounts {
    /// What there is below `root` (`/` but in tests). Interrupts count from now on.
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
        let mut interrupts =
            Interrupts { path: root.join("proc/interrupts"), ..Interrupts::default() };
        interrupts.look();
        CpuCounts { interrupts, usage: usage.collect() }
    }

    /// How often each CPU left an idle state but polling; of no CPU where the kernel has no cpuidle.
    pub fn wake_ups(&self) -> ByCpu {
        let of_files = |files: &[PathBuf]| files.iter().filter_map(|path| number(path)).sum();
        self.usage.iter().map(|(cpu, files)| (*cpu, of_files(files))).collect()
    }

    /// How many interrupts of any kind each online CPU has had since this was made.
    pub fn interrupts(&mut self) -> ByCpu {
        self.interrupts.look()
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

/// What `/proc/interrupts` says, added up. Its numbers have 32 bits, and begin again after 4 billion: those of a timer
/// after weeks.
#[derive(Default)]
struct Interrupts {
    path: PathBuf,
    has_begun: bool,
    /// By line and CPU: what it said last.
    last: BTreeMap<String, Vec<Option<u64>>>,
    sums: ByCpu,
}

impl Interrupts {
    fn look(&mut self) -> ByCpu {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        self.take(&text)
    }

    /// The sums of the columns: a CPU each, as the first line says.
    fn take(&mut self, text: &str) -> ByCpu {
        let mut lines = text.lines();
        let titles = lines.next().unwrap_or_default().split_whitespace();
        let cpus: Vec<usize> =
            titles.filter_map(|title| title.strip_prefix("CPU")?.parse().ok()).collect();
        for (label, counts) in lines.filter_map(|line| line.split_once(':')) {
            if !NO_INTERRUPTS.contains(&label.trim()) {
                let counts = counts.split_whitespace().map_while(|count| count.parse().ok());
                self.take_line(label.trim(), cpus.iter().copied().zip(counts));
            }
        }
        self.has_begun = true;
        let sum = |cpu| (cpu, self.sums.get(&cpu).copied().unwrap_or(0));
        cpus.into_iter().map(sum).collect()
    }

    fn take_line(&mut self, label: &str, counts: impl Iterator<Item = (usize, u64)>) {
        // A line that was not there before counts from 0; a CPU that was not is one that has come, with what it
        // counted before.
        let is_new = self.has_begun && !self.last.contains_key(label);
        let last = self.last.entry(label.to_owned()).or_default();
        for (cpu, now) in counts {
            last.resize(last.len().max(cpu + 1), None);
            let before = last[cpu].replace(now);
            let more = before.map_or(if is_new { now } else { 0 }, |before| more(before, now));
            *self.sums.entry(cpu).or_default() += more;
        }
    }
}

/// By how much a count of 32 bits has grown.
fn more(before: u64, now: u64) -> u64 {
    if now >= before {
        return now - before;
    }
    let wrapped = u64::from((now as u32).wrapping_sub(before as u32));
    // More than half of all that there is: the number of the line is now of another device.
    if wrapped <= u64::from(u32::MAX / 2) { wrapped } else { now }
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
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::machine::sensors::tests::{sysfs, write};

    /// Of which all that is there from now on counts.
    fn begun() -> Interrupts {
        Interrupts { has_begun: true, ..Interrupts::default() }
    }

    #[test]
    fn interrupts_are_summed_by_cpu_and_what_is_none_is_left_out() {
        let x86 = "           CPU0       CPU2\n   0:         33          0   IO-APIC    2-edge      timer\n \
             LOC:        100       2000   Local timer interrupts\n RES:          1          2   Rescheduling interrupts\n \
             PMI:        500        500   Performance monitoring interrupts\n MCP:          7          7   Machine check polls\n \
             ERR:          9\n MIS:          9\n";
        assert_eq!(begun().take(x86), [(0, 134), (2, 2002)].into());
        let arm64 = "      CPU0       CPU1\n 11:        10         20     GICv3  27 Level     arch_timer\n\
             IPI0:         1          2       Rescheduling interrupts\nErr:          5\n";
        assert_eq!(begun().take(arm64), [(0, 11), (1, 22)].into());
        assert_eq!(begun().take(""), ByCpu::new());
    }

    #[test]
    fn counts_of_32_bits_that_wrap_go_on() {
        let mut counts = Interrupts::default();
        let mut take = |cpus: &str, lines: &str| counts.take(&format!("{cpus}\n{lines}\n"));
        let none = take("CPU0 CPU1", "LOC: 4294967290 50 timer\n24: 1000 0 disk");
        assert_eq!(none, [(0, 0), (1, 0)].into(), "from now on");
        let wrapped = take("CPU0 CPU1", "LOC: 4 60 timer\n24: 1000 1 disk");
        assert_eq!(wrapped, [(0, 10), (1, 11)].into());
        // CPU 1 goes, and comes with another one that was not there yet; 24 is another device's, and 25 is new.
        assert_eq!(take("CPU0", "LOC: 4 timer\n24: 1000 disk"), [(0, 10)].into());
        let others = take("CPU0 CPU1 CPU2", "LOC: 4 61 900 timer\n24: 7 1 0 net\n25: 0 3 2 net");
        assert_eq!(others, [(0, 17), (1, 15), (2, 2)].into());
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
        let mut counts = CpuCounts::find(&root);
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
        let mut counts = CpuCounts::find(Path::new("/"));
        let begin = Instant::now();
        while counts.interrupts().values().sum::<u64>() == 0 {
            assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", counts.interrupts());
            thread::sleep(Duration::from_millis(10));
        }
    }
}
