//! The state of a running scheduler, as the agent reports it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::bpf_intf as intf;
use crate::machine::topology::{RankedCpu, Ranks};
use crate::scheduler::counters::Counters;
use crate::scheduler::latency::Latency;
use crate::scheduler::snapshot::{Snapshot, busy_ns, util_now};
use crate::settings::policy::{Pack, Policy};

/// One CPU, as `status` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CpuStatus {
    pub cpu: usize,
    pub rank: usize,
    pub active: bool,
    /// Not for tasks that may run everywhere: `nohz_full`, or in a partition of cpusets.
    #[serde(default)]
    pub isolated: bool,
    pub online: bool,
    pub capacity: u32,
    /// Utilization now, 0..1024.
    pub util: u32,
    /// The performance target that was last set for it, 0..1024 as its capacity; none where
    /// there is no cpufreq.
    pub perf_target: Option<u32>,
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

impl CpuStatus {
    /// Whether tasks that may run everywhere may run here.
    pub fn is_usable(&self) -> bool {
        self.online && !self.isolated
    }

    /// Whether it may sleep, as packing does without it.
    pub fn is_surplus(&self) -> bool {
        self.is_usable() && !self.active
    }
}

impl Status {
    /// The CPUs that may be active.
    pub fn nr_usable(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.is_usable()).count()
    }

    /// The cores of which a CPU is online and not isolated: a ceiling counts those.
    pub fn nr_cores(&self) -> usize {
        let usable = self.cpus.iter().filter(|cpu| cpu.is_usable());
        usable.map(|cpu| (cpu.package, cpu.core)).collect::<BTreeSet<_>>().len()
    }
}

/// A cgroup whose `cpu.max` is enforced, with figures as those of the kernel's `cpu.stat`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Its path from the root on.
    pub cgroup: String,
    /// CPU time in each period (us).
    pub quota_us: u64,
    pub period_us: u64,
    /// Periods that have begun since the scheduler was loaded.
    pub nr_periods: u64,
    /// Of these: some task had to wait for the next one.
    pub nr_throttled: u64,
    /// For how long some task had to, in all (us).
    pub throttled_us: u64,
    /// Tasks that wait for the next period now.
    pub waiting: u32,
}

/// All that `scx_powerpack status` reports.
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
    /// Cgroups whose `cpu.max` is not enforced; looked for only for a request of the status alone.
    #[serde(default)]
    pub ignored_cpu_max: Vec<String>,
    /// Cgroups whose `cpu.max` is enforced; as above.
    #[serde(default)]
    pub limits: Vec<LimitStatus>,
    /// Cgroups that use CPUs above the ceiling, as their cpuset has none below; as above.
    #[serde(default)]
    pub above_ceiling: Vec<String>,
    /// What `auto` has found out by comparing modes, a sentence for each kind of load; as above.
    #[serde(default)]
    pub energy_compared: Vec<String>,
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
    /// From a wake-up until the task runs, as long as that is watched.
    pub wake_latency: Latency,
    pub counters: Counters,
}

/// How often the configuration file was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloads {
    pub ok: u64,
    pub failed: u64,
    /// The last one was accepted; the first reading counts.
    pub last_ok: bool,
}

impl Reloads {
    /// One more, accepted or not.
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

/// What a status reports that neither the snapshot nor the policy knows.
pub struct AgentState {
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
    pub fn status(
        &mut self,
        now: Snapshot,
        ranks: &Ranks,
        policy: Policy,
        agent: AgentState,
    ) -> Status {
        let interval_ns = now.now_ns.saturating_sub(self.last.now_ns);
        let cpus = ranks.cpus().iter().enumerate();
        let llcs = ranks.llcs();
        let status = Status {
            version: env!("CARGO_PKG_VERSION").into(),
            mode: policy.mode.to_string(),
            auto: agent.auto,
            reason: agent.reason,
            max_cores: policy.max_cores.unwrap_or(ranks.nr_cores()),
            pack: policy.pack,
            fill_pct: policy.fill_pct,
            latency_budget_ms: policy.latency_budget.as_millis() as u64,
            workloads: agent.workloads,
            ignored_cpu_max: vec![],
            limits: vec![],
            above_ceiling: vec![],
            energy_compared: vec![],
            ranks: ranks.cpus().iter().map(|cpu| cpu.cpu).collect(),
            uptime_s: seconds(now.now_ns.saturating_sub(self.started_ns)),
            interval_s: seconds(interval_ns),
            now_ns: now.now_ns,
            enable_seq: agent.enable_seq,
            reloads: agent.reloads,
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

/// All but what takes two snapshots or the other CPUs.
fn cpu_status(now: &Snapshot, rank: usize, cpu: &RankedCpu) -> CpuStatus {
    let state = &now.cpus[cpu.cpu];
    CpuStatus {
        cpu: cpu.cpu,
        rank,
        active: now.is_active(rank),
        isolated: state.state == intf::pp_cpu_state_PP_CPU_ISOLATED,
        online: state.online != 0,
        capacity: state.capacity.into(),
        util: util_now(state, now.now_ns).round() as u32,
        perf_target: now.has_cpufreq.then_some(state.perf.into()),
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
    fn a_share_of_nothing_is_nothing() {
        assert_eq!(share_pct(1, 0), 0.0);
        assert_eq!(share_pct(1, 4), 25.0);
    }
}
