//! What happened since the scheduler was loaded.

use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;
use crate::bpf_intf as intf;

/// What happened, summed over the CPUs, since the scheduler was loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(top)]
pub struct Counters {
    #[stat(desc = "CPUs in the active set")]
    pub active_cpus: u64,
    #[stat(desc = "Capacity that tasks free to move use (1024 = one CPU)")]
    pub demand: u64,
    #[stat(desc = "Wakeups put on an idle active CPU")]
    pub wake_idle: u64,
    #[stat(desc = "Synchronous wakeups put on the waker's CPU")]
    pub wake_sync: u64,
    #[stat(desc = "Times a task waited in the queue of the active CPUs")]
    pub queued: u64,
    #[stat(desc = "Times a task was placed by its affinity")]
    pub bound: u64,
    #[stat(desc = "Times a task ran on a surplus CPU because the active ones were full")]
    pub spill: u64,
    #[stat(desc = "Running tasks preempted by a shorter one that was due earlier")]
    pub preempt: u64,
    #[stat(desc = "Tasks taken from the queue of another LLC")]
    pub steal: u64,
    #[stat(desc = "Running tasks sent back from a surplus CPU")]
    pub evacuate: u64,
    #[stat(desc = "Times the active set grew")]
    pub grow: u64,
    #[stat(desc = "Times the active set shrank")]
    pub shrink: u64,
    #[stat(desc = "Performance targets set for a CPU; only schedutil obeys them")]
    pub perf_target: u64,
    #[stat(desc = "Times a task ran on another CPU than before")]
    pub migrate: u64,
}

impl Counters {
    /// Sums the events of all CPUs.
    pub fn of(snapshot: &Snapshot) -> Self {
        let sum = |event: intf::pp_event| -> u64 {
            snapshot.cpus.iter().map(|cpu| cpu.events[event as usize]).sum()
        };
        Counters {
            active_cpus: snapshot.active.nr.into(),
            demand: snapshot.active.demand,
            wake_idle: sum(intf::pp_event_PP_EV_WAKE_IDLE),
            wake_sync: sum(intf::pp_event_PP_EV_WAKE_SYNC),
            queued: sum(intf::pp_event_PP_EV_QUEUED),
            bound: sum(intf::pp_event_PP_EV_BOUND),
            spill: sum(intf::pp_event_PP_EV_SPILL),
            preempt: sum(intf::pp_event_PP_EV_PREEMPT),
            steal: sum(intf::pp_event_PP_EV_STEAL),
            evacuate: sum(intf::pp_event_PP_EV_EVACUATE),
            grow: sum(intf::pp_event_PP_EV_GROW),
            shrink: sum(intf::pp_event_PP_EV_SHRINK),
            perf_target: sum(intf::pp_event_PP_EV_PERF_TARGET),
            migrate: sum(intf::pp_event_PP_EV_MIGRATE),
        }
    }

    /// What happened since `earlier`; sizes stay as they are now.
    pub fn since(&self, earlier: &Self) -> Self {
        Counters {
            active_cpus: self.active_cpus,
            demand: self.demand,
            wake_idle: self.wake_idle - earlier.wake_idle,
            wake_sync: self.wake_sync - earlier.wake_sync,
            queued: self.queued - earlier.queued,
            bound: self.bound - earlier.bound,
            spill: self.spill - earlier.spill,
            preempt: self.preempt - earlier.preempt,
            steal: self.steal - earlier.steal,
            evacuate: self.evacuate - earlier.evacuate,
            grow: self.grow - earlier.grow,
            shrink: self.shrink - earlier.shrink,
            perf_target: self.perf_target - earlier.perf_target,
            migrate: self.migrate - earlier.migrate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::latency::Latency;

    /// A counter that BPF writes and nobody sums would be lost in silence.
    #[test]
    fn every_event_is_reported() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        cpu.events = std::array::from_fn(|event| 1 << event);
        let snapshot = Snapshot {
            now_ns: 0,
            active: unsafe { std::mem::zeroed() },
            active_ranks: vec![],
            cpus: vec![cpu],
            has_cpufreq: false,
            waiting_of_cpu: vec![],
            waiting_of_llc: vec![],
            latency: Latency::default(),
        };
        let json = serde_json::to_value(Counters::of(&snapshot)).unwrap();
        let sum: u64 = json.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
        assert_eq!(sum, (1 << intf::pp_event_PP_NR_EVENTS) - 1);
    }
}
