//! What happened since the scheduler was loaded, and the same over scx_stats.

use std::time::Duration;

use anyhow::Result;
use scx_stats::prelude::*;
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use crate::bpf::intf;
use crate::scheduler::Snapshot;

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
    #[stat(desc = "Times a CPU's frequency was asked for; heard by schedutil alone")]
    pub wish: u64,
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
            wish: sum(intf::pp_event_PP_EV_WISH),
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
            wish: self.wish - earlier.wish,
            migrate: self.migrate - earlier.migrate,
        }
    }

    fn print(&self) -> Result<()> {
        println!(
            "active {:>3}  demand {:>6.1}%  idle {:<6} sync {:<6} queued {:<6} spill {:<4} \
             preempt {:<4} steal {:<4} grow {:<3} shrink {:<3}",
            self.active_cpus,
            self.demand as f64 / intf::pp_limits_PP_CAPACITY_MAX as f64 * 100.0,
            self.wake_idle,
            self.wake_sync,
            self.queued,
            self.spill,
            self.preempt,
            self.steal,
            self.grow,
            self.shrink
        );
        Ok(())
    }
}

/// The scx_stats server's description of what it serves.
pub fn server_data() -> StatsServerData<(), Counters> {
    let open: Box<dyn StatsOpener<(), Counters>> = Box::new(|(request, response)| {
        request.send(())?;
        let mut last = response.recv()?;
        let read: Box<dyn StatsReader<(), Counters>> =
            Box::new(move |_args, (request, response)| {
                request.send(())?;
                let now = response.recv()?;
                let delta = now.since(&last);
                last = now;
                delta.to_json()
            });
        Ok(read)
    });
    StatsServerData::new().add_meta(Counters::meta()).add_ops("top", StatsOps { open, close: None })
}

/// `--help-stats`.
pub fn describe() -> Result<()> {
    server_data().describe_meta(&mut std::io::stdout(), None)
}

/// `--monitor` and `--stats`: print what happened in each interval, until the
/// process ends.
pub fn monitor(interval: Option<Duration>) -> Result<()> {
    let Some(interval) = interval else { return Ok(()) };
    scx_utils::monitor_stats::<Counters>(&[], interval, || false, |counters| counters.print())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Latency;

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
            waiting_of_cpu: vec![],
            waiting_of_llc: vec![],
            latency: Latency::default(),
        };
        let json = serde_json::to_value(Counters::of(&snapshot)).unwrap();
        let sum: u64 = json.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
        assert_eq!(sum, (1 << intf::pp_event_PP_NR_EVENTS) - 1);
    }
}
