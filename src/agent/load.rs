//! How loaded the machine is, as `auto` wants to know it, and whether limits of cgroups hold tasks back.

use std::collections::HashMap;

use crate::bpf_intf::pp_limit;
use crate::scheduler::snapshot::{Snapshot, busy_ns, util_now};

/// Over less than this the mean is of what runs at that moment, as utilization is.
const SHORTEST_NS: u64 = 100_000_000;

/// Measures from look to look. Utilization alone is of the last tens of milliseconds:
/// what runs at that moment, as the program that asks for the mode, would stand for all the time.
#[derive(Default)]
pub struct LoadMeter {
    /// When it was looked last (ns), and how long each CPU had been busy by then (ns).
    last: Option<(u64, Vec<u64>)>,
}

impl LoadMeter {
    /// Capacity in use since the last look, of that of the online CPUs (%). The first time,
    /// and right after a look, there is only their utilization to go by.
    pub fn pct(&mut self, now: &Snapshot) -> f64 {
        let busy: Vec<u64> = now.cpus.iter().map(|cpu| busy_ns(cpu, now.now_ns)).collect();
        let last = self.last.replace((now.now_ns, busy.clone()));
        let online = || now.cpus.iter().enumerate().filter(|(_, cpu)| cpu.online != 0);
        let capacity: f64 = online().map(|(_, cpu)| f64::from(cpu.capacity)).sum();
        let used: f64 = match last {
            Some((then_ns, was)) if then_ns + SHORTEST_NS <= now.now_ns => online()
                .map(|(nr, cpu)| {
                    let ran = busy[nr].saturating_sub(was.get(nr).copied().unwrap_or(0));
                    f64::from(cpu.capacity) * ran as f64 / (now.now_ns - then_ns) as f64
                })
                .sum(),
            _ => online().map(|(_, cpu)| util_now(cpu, now.now_ns)).sum(),
        };
        if capacity == 0.0 { 0.0 } else { used / capacity * 100.0 }
    }
}

/// So many looks after a cgroup was held to its limit the pressure is of that still: an average over ten seconds, it
/// has fallen to a seventh after four times five.
const THROTTLE_LOOKS: u32 = 4;

/// Remembers whether cgroups are held to their `cpu.max`.
#[derive(Default)]
pub struct ThrottleMeter {
    /// By the cgroup's number, periods in which it was, at the last look.
    nr_throttled: HashMap<u64, u64>,
    looks_left: u32,
}

impl ThrottleMeter {
    /// Of a cgroup that was not there at the last look it is not known when it was held.
    pub fn look(&mut self, limits: &[pp_limit]) {
        let now = limits.iter().map(|limit| (limit.cgroup_id, limit.nr_throttled)).collect();
        let before = std::mem::replace(&mut self.nr_throttled, now);
        let is_held = |limit: &pp_limit| {
            let was = before.get(&limit.cgroup_id);
            limit.nr_held > 0 || was.is_some_and(|was| limit.nr_throttled > *was)
        };
        self.looks_left = if limits.iter().any(is_held) {
            THROTTLE_LOOKS
        } else {
            self.looks_left.saturating_sub(1)
        };
    }

    /// Whether one was held lately.
    pub fn is_recent(&self) -> bool {
        self.looks_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf_intf as intf;
    use crate::scheduler::latency::Latency;

    /// Two CPUs, the second half as fast, and how long they have been busy.
    fn snapshot(now_s: u64, busy_ms: [u64; 2]) -> Snapshot {
        let (now_ns, busy_ns) = (now_s * 1_000_000_000, busy_ms.map(|ms| ms * 1_000_000));
        let cpu = |nr: usize| {
            // SAFETY: plain numbers.
            let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
            (cpu.online, cpu.capacity, cpu.busy_ns) = (1, [1024, 512][nr], busy_ns[nr]);
            (cpu.util_fp, cpu.updated_ns) = (300 << 20, now_ns);
            cpu
        };
        // SAFETY: plain numbers.
        let active = unsafe { std::mem::zeroed() };
        Snapshot {
            now_ns,
            active,
            active_ranks: vec![],
            cpus: vec![cpu(0), cpu(1)],
            has_cpufreq: false,
            waiting_of_cpu: vec![],
            waiting_of_llc: vec![],
            latency: Latency::default(),
        }
    }

    #[test]
    fn it_is_the_mean_since_the_last_look() {
        let mut meter = LoadMeter::default();
        assert_eq!(meter.pct(&snapshot(1, [500, 0])).round(), 39.0, "utilization: 600 of 1536");
        assert_eq!(meter.pct(&snapshot(2, [600, 100])).round(), 10.0);
        assert_eq!(meter.pct(&snapshot(3, [1600, 100])).round(), 67.0);
        assert_eq!(meter.pct(&snapshot(4, [1600, 100])), 0.0);
        let soon = Snapshot { now_ns: 4_000_001_000, ..snapshot(4, [1600, 101]) };
        assert_eq!(meter.pct(&soon).round(), 39.0, "too soon for a mean");
    }

    #[test]
    fn a_cpu_that_is_offline_has_no_part_in_it() {
        let mut meter = LoadMeter::default();
        meter.pct(&snapshot(1, [0, 0]));
        let mut now = snapshot(2, [500, 700]);
        now.cpus[1].online = 0;
        assert_eq!(meter.pct(&now), 50.0);
    }

    #[test]
    fn a_cgroup_was_held_lately_until_the_pressure_has_gone() {
        // SAFETY: plain numbers.
        let mut limit: pp_limit = unsafe { std::mem::zeroed() };
        let mut meter = ThrottleMeter::default();
        let mut look = |limits: &[pp_limit]| {
            meter.look(limits);
            meter.is_recent()
        };
        assert!(!look(&[]) && !look(&[limit]));
        limit.nr_throttled = 1;
        let looks: Vec<bool> = (0..6).map(|_| look(&[limit])).collect();
        assert_eq!(looks, [true, true, true, true, false, false]);
        assert!(!look(&[]) && !look(&[limit]), "it has gone, and come");
        limit.nr_held = 1;
        assert!(look(&[limit]), "it waits for its first period");
    }
}
