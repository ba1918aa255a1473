//! What is told of a running scheduler: the status, and the same over scx_stats.

use std::time::Duration;

use anyhow::Result;
use scx_stats::prelude::*;
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use crate::bpf::intf;
use crate::policy::{Pack, Policy};
use crate::scheduler::Snapshot;
use crate::topology::Ranks;

/// One CPU, as `status` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CpuStatus {
    pub cpu: usize,
    pub rank: usize,
    pub active: bool,
    pub online: bool,
    pub capacity: u32,
    /// Utilization now, 0..1024.
    pub util: u32,
    /// Share of the time since the last call in which it ran a task (%).
    pub non_idle_pct: f64,
}

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
}

/// All that `scx_powerpack status` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub mode: String,
    /// Why the agent chose it, if it did.
    pub reason: Option<String>,
    pub max_cores: usize,
    pub pack: Pack,
    pub fill_pct: u32,
    pub latency_budget_ms: u64,
    /// How many cgroups the table of workloads names.
    pub workloads: usize,
    /// CPU numbers in rank order.
    pub ranks: Vec<usize>,
    /// Since the scheduler was loaded (s).
    pub uptime_s: f64,
    /// Since the last call, the time that `non_idle_pct` is of (s).
    pub interval_s: f64,
    pub enable_seq: Option<u64>,
    pub cpus: Vec<CpuStatus>,
    pub counters: Counters,
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
        }
    }

    /// What happened since `earlier`; sizes stay as they are now.
    fn since(&self, earlier: &Self) -> Self {
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

/// What a status tells that neither the snapshot nor the policy knows.
pub struct Told {
    pub reason: Option<String>,
    pub workloads: usize,
    pub enable_seq: Option<u64>,
}

/// Turns snapshots into statuses; remembers the last one for `non_idle_pct`.
pub struct StatusClock {
    started_ns: u64,
    last: Snapshot,
}

impl StatusClock {
    /// The scheduler has just been loaded.
    pub fn new(snapshot: Snapshot) -> Self {
        StatusClock { started_ns: snapshot.now_ns, last: snapshot }
    }

    /// The status at `now`, over the time since the last call.
    pub fn status(&mut self, now: Snapshot, ranks: &Ranks, policy: Policy, told: Told) -> Status {
        let interval_ns = now.now_ns.saturating_sub(self.last.now_ns);
        let cpus = ranks.cpus().iter().enumerate();
        let status = Status {
            version: env!("CARGO_PKG_VERSION").into(),
            mode: policy.mode.to_string(),
            reason: told.reason,
            max_cores: policy.max_cores.unwrap_or(ranks.nr_cores()),
            pack: policy.pack,
            fill_pct: policy.fill_pct,
            latency_budget_ms: policy.latency_budget.as_millis() as u64,
            workloads: told.workloads,
            ranks: ranks.cpus().iter().map(|cpu| cpu.cpu).collect(),
            uptime_s: seconds(now.now_ns.saturating_sub(self.started_ns)),
            interval_s: seconds(interval_ns),
            enable_seq: told.enable_seq,
            cpus: cpus
                .map(|(rank, cpu)| {
                    let (was, is) = (&self.last.cpus[cpu.cpu], &now.cpus[cpu.cpu]);
                    let busy =
                        busy_ns(is, now.now_ns).saturating_sub(busy_ns(was, self.last.now_ns));
                    cpu_status(
                        cpu.cpu,
                        rank,
                        is,
                        now.now_ns,
                        now.is_active(rank),
                        share_pct(busy, interval_ns),
                    )
                })
                .collect(),
            counters: Counters::of(&now),
        };
        self.last = now;
        status
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn share_pct(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 100.0).min(100.0) }
}

/// Time not idle until `now_ns`, with what is running: a task of ours, or a real-time one.
pub fn busy_ns(cpu: &intf::pp_cpu, now_ns: u64) -> u64 {
    let since = [cpu.running_since_ns, cpu.other_since_ns].into_iter().find(|&since| since > 0);
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

fn cpu_status(
    cpu: usize,
    rank: usize,
    state: &intf::pp_cpu,
    now_ns: u64,
    active: bool,
    non_idle_pct: f64,
) -> CpuStatus {
    CpuStatus {
        cpu,
        rank,
        active,
        online: state.online != 0,
        capacity: state.capacity,
        util: util_now(state, now_ns).round() as u32,
        non_idle_pct,
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
        };
        let json = serde_json::to_value(Counters::of(&snapshot)).unwrap();
        let sum: u64 = json.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
        assert_eq!(sum, (1 << intf::pp_event_PP_NR_EVENTS) - 1);
    }

    #[test]
    fn an_idle_cpu_forgets() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        (cpu.util_fp, cpu.updated_ns) = (1000 << 20, 5);
        let half_life = 32 << 20;
        assert_eq!(util_now(&cpu, 5), 1000.0);
        assert!((util_now(&cpu, 5 + half_life) - 500.0).abs() < 0.1);
        assert!(util_now(&cpu, 5 + 40 * half_life) < 0.1);
        cpu.running_since_ns = 5;
        assert_eq!(util_now(&cpu, 5 + half_life), 1000.0, "it is told at its next tick");
    }

    #[test]
    fn what_runs_now_counts_as_busy() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        cpu.busy_ns = 5;
        assert_eq!(busy_ns(&cpu, 100), 5);
        cpu.running_since_ns = 90;
        assert_eq!(busy_ns(&cpu, 100), 15);
        (cpu.running_since_ns, cpu.other_since_ns) = (0, 98);
        assert_eq!(busy_ns(&cpu, 100), 7);
        assert_eq!(share_pct(1, 0), 0.0);
        assert_eq!(share_pct(1, 4), 25.0);
    }
}
