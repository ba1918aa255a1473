//! What the BPF side knows at one instant.

use super::latency::Latency;
use crate::bpf_intf as intf;
use crate::machine::bpf_topology::WORD_BITS;

/// All that the BPF side reports, at one instant.
pub struct Snapshot {
    /// The instant, on the clock of all other times (ns).
    pub now_ns: u64,
    pub active: intf::pp_active,
    /// The ranks that are active, as bits.
    pub active_ranks: Vec<u64>,
    /// By CPU number.
    pub cpus: Vec<intf::pp_cpu>,
    /// The CPUs' frequencies change, and can be requested.
    pub has_cpufreq: bool,
    /// Tasks that wait for one CPU alone, by its number.
    pub waiting_of_cpu: Vec<u32>,
    /// Tasks that wait for the active CPUs of an LLC.
    pub waiting_of_llc: Vec<u32>,
    /// Of all CPUs.
    pub latency: Latency,
}

impl Snapshot {
    /// How many CPUs there are online.
    pub fn nr_online(&self) -> usize {
        self.online().count()
    }

    /// What all CPUs have done since the scheduler was loaded, as the time that the fastest one would take (ns).
    pub fn work_ns(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.work_ns).sum()
    }

    /// What those that are online can do, in that of the fastest one.
    pub fn capacity(&self) -> f64 {
        let all: f64 = self.online().map(|cpu| f64::from(cpu.capacity)).sum();
        all / f64::from(intf::pp_limits_PP_CAPACITY_MAX)
    }

    fn online(&self) -> impl Iterator<Item = &intf::pp_cpu> {
        self.cpus.iter().filter(|cpu| cpu.online != 0)
    }

    /// Whether the CPU of that rank is active.
    pub fn is_active(&self, rank: usize) -> bool {
        let word = self.active_ranks.get(rank / WORD_BITS);
        word.is_some_and(|bits| bits >> (rank % WORD_BITS) & 1 == 1)
    }
}

/// Time not idle until `now_ns`, with what is running: a task of ours, or a real-time one.
pub fn busy_ns(cpu: &intf::pp_cpu, now_ns: u64) -> u64 {
    let since = [cpu.running_since_ns, cpu.rt_since_ns].into_iter().find(|&since| since > 0);
    cpu.busy_ns + since.map_or(0, |since| now_ns.saturating_sub(since))
}

/// Utilization at `now_ns`, 0..=1024. What BPF keeps stands for the CPU's last change of
/// task: an idle CPU has forgotten of it since (src/bpf/signal.h).
pub fn util_now(cpu: &intf::pp_cpu, now_ns: u64) -> f64 {
    const HALF_LIFE_NS: f64 = 32.0 * (1 << 20) as f64;
    let kept = f64::from(cpu.util_fp) / f64::from(1 << 20);
    let idle_ns = now_ns.saturating_sub(cpu.updated_ns) as f64;
    if cpu.running_since_ns == 0 { kept * (-idle_ns / HALF_LIFE_NS).exp2() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_cpu_forgets() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        (cpu.util_fp, cpu.updated_ns) = (1000 << 20, 5);
        let half_life = 32 << 20;
        assert_eq!(util_now(&cpu, 5), 1000.0);
        assert!((util_now(&cpu, 5 + half_life) - 500.0).abs() < 0.1);
        assert!(util_now(&cpu, 5 + 40 * half_life) < 0.1);
        cpu.running_since_ns = 5;
        assert_eq!(util_now(&cpu, 5 + half_life), 1000.0, "its next tick updates it");
    }

    #[test]
    fn what_runs_now_counts_as_busy() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        cpu.busy_ns = 5;
        assert_eq!(busy_ns(&cpu, 100), 5);
        cpu.running_since_ns = 90;
        assert_eq!(busy_ns(&cpu, 100), 15);
        (cpu.running_since_ns, cpu.rt_since_ns) = (0, 98);
        assert_eq!(busy_ns(&cpu, 100), 7);
    }
}
