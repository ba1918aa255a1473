//! The state of a running scheduler, as it is told to whoever may know.

use serde::{Deserialize, Serialize};

use crate::bpf::intf;
use crate::policy::{Pack, Policy};
use crate::scheduler::Snapshot;
use crate::stats::Counters;
use crate::topology::{RankedCpu, Ranks};

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
    /// Not idle since the scheduler was loaded (ns).
    pub busy_ns: u64,
    /// Tasks that wait for this CPU alone.
    pub waiting: u32,
    pub core: usize,
    /// Of the last-level caches, numbered by rank.
    pub llc: usize,
    pub package: usize,
    pub node: usize,
}

/// All that `scx_powerpack status` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub mode: String,
    /// The agent chooses the mode.
    pub auto: bool,
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
    /// The instant all of this is of, on a clock of its own (ns).
    pub now_ns: u64,
    pub enable_seq: Option<u64>,
    pub reloads: Reloads,
    pub cpus: Vec<CpuStatus>,
    /// Tasks that wait for the active CPUs of each last-level cache.
    pub waiting: Vec<u32>,
    /// From a wake-up until the task runs, as long as somebody watches.
    pub wake_latency: Latency,
    pub counters: Counters,
}

/// How often the configuration file was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloads {
    pub ok: u64,
    pub failed: u64,
    /// The last one was taken; the first reading counts.
    pub last_ok: bool,
}

impl Reloads {
    /// One more, taken or not.
    pub fn note(&mut self, ok: bool) {
        self.last_ok = ok;
        *(if ok { &mut self.ok } else { &mut self.failed }) += 1;
    }
}

impl Default for Reloads {
    fn default() -> Self {
        Reloads { ok: 0, failed: 0, last_ok: true }
    }
}

/// Times in buckets of powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    pub sum_ns: u64,
    /// `[n]`: those up to 2^n us that are in none before; the last one: all beyond.
    pub counts: Vec<u64>,
}

impl Latency {
    /// Adds what one CPU has counted.
    pub fn add(&mut self, of: &intf::pp_latency) {
        self.sum_ns += of.sum_ns;
        self.counts.resize(of.counts.len(), 0);
        for (sum, count) in self.counts.iter_mut().zip(of.counts) {
            *sum += count;
        }
    }

    /// What has come since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let was = |n: usize| earlier.counts.get(n).copied().unwrap_or(0);
        Latency {
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            counts: self
                .counts
                .iter()
                .enumerate()
                .map(|(n, &is)| is.saturating_sub(was(n)))
                .collect(),
        }
    }

    /// The bound of the bucket in which the `pct`th percentile is (us): it is at most that,
    /// and more than half of it. `None` if there is nothing, or if it is beyond all bounds.
    pub fn percentile_us(&self, pct: f64) -> Option<u64> {
        let total: u64 = self.counts.iter().sum();
        let wanted = (total as f64 * pct / 100.0).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.counts.iter().position(|&count| {
            sum += count;
            sum >= wanted
        })?;
        (bucket + 1 < self.counts.len()).then_some(1 << bucket)
    }
}

/// A task that has run lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Of the thread.
    pub pid: u32,
    pub tgid: u32,
    /// Where it has run last.
    pub cpu: usize,
    /// Its utilization, 0..1024.
    pub util: u32,
}

/// Why a task was put where it is, or that it began to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// On the clock of [`Status::now_ns`].
    pub now_ns: u64,
    /// Of the thread.
    pub pid: u32,
    pub why: Why,
    pub cpu: usize,
    /// Where it had run before.
    pub prev_cpu: usize,
    /// The CPU is of the active set.
    pub active: bool,
    /// The task's utilization, 0..1024.
    pub util: u32,
    /// How long it would have had to wait for the active CPUs (us), when that was asked last.
    pub expected_us: u64,
    /// How long it may.
    pub budget_us: u64,
}

/// `enum pp_why`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Waker,
    Idle,
    Queued,
    Spilled,
    Bound,
    ChosenIdle,
    ChosenBusy,
    Offline,
    Runs,
}

impl Placement {
    /// What BPF has written.
    pub fn of(record: &intf::pp_why_record) -> Self {
        let why = match record.why {
            intf::pp_why_PP_WHY_WAKER => Why::Waker,
            intf::pp_why_PP_WHY_IDLE => Why::Idle,
            intf::pp_why_PP_WHY_QUEUED => Why::Queued,
            intf::pp_why_PP_WHY_SPILLED => Why::Spilled,
            intf::pp_why_PP_WHY_BOUND => Why::Bound,
            intf::pp_why_PP_WHY_CHOSEN_IDLE => Why::ChosenIdle,
            intf::pp_why_PP_WHY_CHOSEN_BUSY => Why::ChosenBusy,
            intf::pp_why_PP_WHY_OFFLINE => Why::Offline,
            _ => Why::Runs,
        };
        Placement {
            now_ns: record.now_ns,
            pid: record.pid,
            why,
            cpu: record.cpu as usize,
            prev_cpu: record.prev_cpu as usize,
            active: record.active != 0,
            util: record.util,
            expected_us: record.expected_ns / 1000,
            budget_us: record.budget_ns / 1000,
        }
    }
}

/// What a status tells that neither the snapshot nor the policy knows.
pub struct Told {
    pub auto: bool,
    pub reason: Option<String>,
    pub workloads: usize,
    pub reloads: Reloads,
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
        let llcs = ranks.llcs();
        let status = Status {
            version: env!("CARGO_PKG_VERSION").into(),
            mode: policy.mode.to_string(),
            auto: told.auto,
            reason: told.reason,
            max_cores: policy.max_cores.unwrap_or(ranks.nr_cores()),
            pack: policy.pack,
            fill_pct: policy.fill_pct,
            latency_budget_ms: policy.latency_budget.as_millis() as u64,
            workloads: told.workloads,
            ranks: ranks.cpus().iter().map(|cpu| cpu.cpu).collect(),
            uptime_s: seconds(now.now_ns.saturating_sub(self.started_ns)),
            interval_s: seconds(interval_ns),
            now_ns: now.now_ns,
            enable_seq: told.enable_seq,
            reloads: told.reloads,
            cpus: cpus
                .map(|(rank, cpu)| {
                    let was = &self.last.cpus[cpu.cpu];
                    let before_ns = busy_ns(was, self.last.now_ns);
                    let mut status = cpu_status(&now, rank, cpu);
                    status.llc = llcs.partition_point(|&(_, end)| end <= rank);
                    status.non_idle_pct =
                        share_pct(status.busy_ns.saturating_sub(before_ns), interval_ns);
                    status
                })
                .collect(),
            waiting: now.waiting_of_llc.clone(),
            wake_latency: now.latency.clone(),
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

/// All but what takes two snapshots or the other CPUs.
fn cpu_status(now: &Snapshot, rank: usize, cpu: &RankedCpu) -> CpuStatus {
    let state = &now.cpus[cpu.cpu];
    CpuStatus {
        cpu: cpu.cpu,
        rank,
        active: now.is_active(rank),
        online: state.online != 0,
        capacity: state.capacity,
        util: util_now(state, now.now_ns).round() as u32,
        non_idle_pct: 0.0,
        busy_ns: busy_ns(state, now.now_ns),
        waiting: now.waiting_of_cpu[cpu.cpu],
        core: cpu.core,
        llc: 0,
        package: cpu.package,
        node: cpu.node,
    }
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

    #[test]
    fn percentiles_are_the_bounds_of_buckets() {
        let mut latency = Latency::default();
        assert_eq!(latency.percentile_us(50.0), None);
        latency.counts = vec![50, 0, 0, 40, 0, 9, 1];
        assert_eq!(latency.percentile_us(50.0), Some(1));
        assert_eq!(latency.percentile_us(51.0), Some(8));
        assert_eq!(latency.percentile_us(99.0), Some(32));
        assert_eq!(latency.percentile_us(100.0), None, "beyond all bounds");
        let later = Latency { sum_ns: 7, counts: vec![51, 0, 0, 40, 0, 9, 3] };
        assert_eq!(later.since(&latency).counts, [1, 0, 0, 0, 0, 0, 2]);
    }
}
