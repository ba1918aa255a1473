//! Machines as TOML files describe them.

mod draw;
mod lab;
mod points;
mod shipped;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use powerpack_workload::find_text;
use serde::Deserialize;

use crate::cpu::Costs;
use crate::ext::MAX_CPUS;
use crate::power::Governor;
pub use shipped::SHIPPED;

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub name: String,
    pub about: String,
    costs: CostsSpec,
    /// What it does about frequency if nothing else is set.
    #[serde(default)]
    pub governor: Governor,
    /// How it predicts the length of idle periods.
    #[serde(default)]
    pub idle_governor: IdleGovernor,
    /// Which CPUs share a clock.
    #[serde(default)]
    pub clock: Clock,
    /// The minimum time between two changes of frequency (us).
    #[serde(default)]
    pub freq_rate_limit_us: f64,
    /// Kinds of cores, by name.
    #[serde(default = "plain_cores")]
    core: BTreeMap<String, Core>,
    llc: Vec<Llc>,
    /// What every package has beside its LLCs.
    #[serde(default)]
    pub package: Uncore,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsSpec {
    hz: u32,
    switch_us: f64,
    /// What the kernel does for each switch to a task (us of the fastest CPU).
    #[serde(default)]
    switch_work_us: f64,
    wake_us: f64,
    /// Time lost to cold caches by a task that comes from another core, or another LLC.
    #[serde(default)]
    migrate_us: f64,
    #[serde(default)]
    migrate_far_us: f64,
    /// Time around each idle period that is neither idle nor a task's.
    #[serde(default)]
    idle_us: f64,
    /// The same for a kick by another CPU: until the interrupt is there.
    #[serde(default)]
    ipi_us: f64,
    /// A CPU's timer interrupt is late by up to so much.
    #[serde(default)]
    timer_jitter_us: f64,
    /// Time in which an interrupt keeps a CPU awake.
    #[serde(default)]
    irq_us: f64,
    /// The speed of threads that share data across packages (percent).
    #[serde(default = "all_pct")]
    far_data_pct: u64,
}

/// What predicts how long a CPU will be idle (drivers/cpuidle/governors/).
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum IdleGovernor {
    Menu,
    #[default]
    Teo,
}

/// Which CPUs share a clock.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    #[default]
    Core,
    Llc,
    Package,
    /// The cores of one entry `[[llc]]`: of a kind, also where several kinds share a cache.
    Kind,
}

/// A kind of core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// 1..=1024, of the fastest CPU of the machine.
    #[serde(default = "full")]
    pub capacity: usize,
    /// SMT siblings.
    #[serde(default = "one")]
    pub threads: usize,
    /// How fast each thread is while 1, 2, .. of a core's run (percent).
    #[serde(default)]
    pub smt_speed_pct: Vec<u64>,
    /// What each further thread that runs adds to the core's power (percent).
    #[serde(default)]
    pub smt_power_pct: f64,
    /// Slowest first; none: one frequency.
    #[serde(default)]
    pub opps: Vec<Opp>,
    /// Shallowest first; none: it polls.
    #[serde(default)]
    pub idle: Vec<IdleState>,
}

/// An operating performance point.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Opp {
    pub mhz: u32,
    /// Of a core that runs at it without a pause.
    pub mw: f64,
}

/// An idle state of a core, an LLC or a package.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    pub name: String,
    /// Shorter is not worth it (us).
    pub residency_us: f64,
    /// From the interrupt to the first instruction (us).
    pub exit_us: f64,
    pub mw: f64,
}

/// CPUs that share a last-level cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Llc {
    cores: usize,
    /// Which kind.
    #[serde(default = "plain")]
    core: String,
    #[serde(default)]
    package: usize,
    #[serde(default)]
    node: usize,
    /// It shares the cache of the one before: cores of another kind.
    #[serde(default)]
    joined: bool,
    /// As Uncore's.
    #[serde(default)]
    active_mw: f64,
    #[serde(default)]
    idle: Vec<IdleState>,
}

/// What CPUs share: it is awake as long as one of them is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncore {
    #[serde(default)]
    pub active_mw: f64,
    /// Shallowest first, for when all CPUs are in their deepest one.
    #[serde(default)]
    pub idle: Vec<IdleState>,
}

fn one() -> usize {
    1
}

fn all_pct() -> u64 {
    100
}

fn full() -> usize {
    1024
}

fn plain() -> String {
    "plain".into()
}

fn plain_cores() -> BTreeMap<String, Core> {
    let core = Core {
        capacity: 1024,
        threads: 1,
        smt_speed_pct: Vec::new(),
        smt_power_pct: 0.0,
        opps: Vec::new(),
        idle: Vec::new(),
    };
    BTreeMap::from([(plain(), core)])
}

/// A CPU and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    pub cpu: usize,
    pub core: usize,
    pub llc: usize,
    pub package: usize,
    pub node: usize,
    /// 1..=1024.
    pub capacity: usize,
    /// Which entry `[[llc]]` it is of, and so which kind of core: see Machine::core_of().
    pub(crate) kind: usize,
}

impl Machine {
    /// A shipped one by its name, else a file by its path.
    pub fn find(name: &str) -> Result<Self> {
        find_text(name, SHIPPED, "machine")
            .and_then(|text| Self::parse(&text).context(name.to_owned()))
    }

    /// Fails with a sentence about what is wrong in the file.
    pub fn parse(text: &str) -> Result<Self> {
        let machine: Machine = toml::from_str(text)?;
        ensure!(!machine.llc.is_empty(), "a machine needs an [[llc]]");
        for llc in &machine.llc {
            ensure!(
                machine.core.contains_key(&llc.core),
                "there is no [core.{}], which an LLC has",
                llc.core
            );
        }
        machine.core.values().try_for_each(Core::check)?;
        let nr = machine.cpus().len();
        if nr == 0 || nr > MAX_CPUS {
            bail!("a machine has 1..{MAX_CPUS} CPUs, not {nr}");
        }
        let costs = &machine.costs;
        if !(24..=10_000).contains(&costs.hz) {
            bail!("a kernel ticks 24..10000 times a second, not {}", costs.hz);
        }
        ensure!((1..=100).contains(&costs.far_data_pct), "far_data_pct is 1..100");
        Ok(machine)
    }

    /// Numbered core by core.
    pub fn cpus(&self) -> Vec<MachineCpu> {
        let mut cpus = Vec::new();
        let mut core = 0;
        for (kind, spec) in self.llc.iter().enumerate() {
            let of = &self.core[&spec.core];
            for nth in 0..spec.cores * of.threads {
                cpus.push(MachineCpu {
                    cpu: cpus.len(),
                    core: core + nth / of.threads,
                    llc: self.llc_of(kind),
                    package: spec.package,
                    node: spec.node,
                    capacity: of.capacity,
                    kind,
                });
            }
            core += spec.cores;
        }
        cpus
    }

    /// The LLC of the nth entry: joined ones have that of the one before.
    fn llc_of(&self, entry: usize) -> usize {
        self.llc[1..=entry].iter().filter(|spec| !spec.joined).count()
    }

    /// The kind of core that a CPU is.
    pub fn core_of(&self, cpu: &MachineCpu) -> &Core {
        &self.core[&self.llc[cpu.kind].core]
    }

    /// Whether a kernel places tasks by energy there (sched_is_eas_possible()): CPUs of different
    /// capacity, no threads, and each kind of core with its operating points.
    pub fn has_energy_model(&self) -> bool {
        let cpus = self.cpus();
        let differ = cpus.iter().any(|cpu| cpu.capacity != cpus[0].capacity);
        let plain = |core: &Core| core.threads == 1 && !core.opps.is_empty();
        differ && cpus.iter().all(|cpu| plain(self.core_of(cpu)))
    }

    /// What an LLC is beside its cores.
    pub fn uncore_of_llc(&self, llc: usize) -> Uncore {
        let entry = (0..self.llc.len()).find(|&entry| self.llc_of(entry) == llc);
        let spec = &self.llc[entry.expect("there is such an LLC")];
        Uncore { active_mw: spec.active_mw, idle: spec.idle.clone() }
    }

    pub fn nr_llcs(&self) -> usize {
        self.llc_of(self.llc.len() - 1) + 1
    }

    pub fn costs(&self) -> Costs {
        let ns = |us: f64| (us * 1e3) as u64;
        let spec = &self.costs;
        Costs {
            tick_ns: 1_000_000_000 / u64::from(spec.hz),
            switch_ns: ns(spec.switch_us),
            switch_work_ns: ns(spec.switch_work_us),
            wake_ns: ns(spec.wake_us),
            migrate_ns: ns(spec.migrate_us),
            migrate_far_ns: ns(spec.migrate_far_us),
            idle_ns: ns(spec.idle_us),
            ipi_ns: ns(spec.ipi_us),
            timer_jitter_ns: ns(spec.timer_jitter_us),
            irq_ns: ns(spec.irq_us),
            far_data_pct: spec.far_data_pct,
        }
    }
}

impl Core {
    fn check(&self) -> Result<()> {
        ensure!((1..=1024).contains(&self.capacity), "capacity is out of range: 1..1024");
        ensure!((1..=8).contains(&self.threads), "threads is out of range: 1..8");
        ensure!(
            self.threads == 1 || self.smt_speed_pct.len() == self.threads,
            "smt_speed_pct has one number for each thread"
        );
        ensure!(
            self.smt_speed_pct.iter().all(|pct| (1..=100).contains(pct)),
            "a share of a core is 1..100 %"
        );
        ensure!(
            self.opps.is_sorted_by(|a, b| a.mhz < b.mhz)
                && self.opps.iter().all(|opp| opp.mhz > 0 && opp.mw >= 0.0),
            "operating points are listed slowest first"
        );
        ensure!(
            self.idle.is_sorted_by(|a, b| a.residency_us <= b.residency_us && a.mw >= b.mw),
            "idle states are listed shallowest first"
        );
        Ok(())
    }

    /// The speed of each thread while `running` of the core's run (percent).
    pub fn share_pct(&self, running: usize) -> u64 {
        self.smt_speed_pct.get(running.max(1) - 1).copied().unwrap_or(100)
    }
}
