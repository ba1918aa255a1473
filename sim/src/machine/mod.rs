//! Machines as TOML files describe them.

mod cores;
mod costs;
mod draw;
mod lab;
mod points;
mod ranges;
mod shipped;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use powerpack_workload::find_text;
use serde::Deserialize;

use crate::cpu::Costs;
use crate::ext::MAX_CPUS;
use crate::power::Governor;
use cores::plain_cores;
pub use cores::{Core, IdleState, Opp};
use costs::CostsSpec;
use ranges::Ranges;
pub use shipped::SHIPPED;

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub name: String,
    pub about: String,
    costs: CostsSpec,
    /// Of a register: some rules of the earlier systems come to another result in 32 bits.
    #[serde(default = "word_bits")]
    pub word_bits: u32,
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
    /// Interrupts that wake no task.
    #[serde(default)]
    pub interrupt: Vec<Interrupt>,
    /// How far figures may be from what they are in the file.
    #[serde(default)]
    ranges: Ranges,
}

/// Interrupts of a device that are no task's: at random times, as many a second in the mean.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    pub name: String,
    /// The CPU that they come to, or the first one that is online.
    pub cpu: usize,
    pub per_s: f64,
    /// How long each keeps the CPU busy, whatever its frequency (us).
    pub busy_us: f64,
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

/// CPUs that share a last-level cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Llc {
    /// So many of these, one after the other, in the same package and node.
    #[serde(default = "one")]
    count: usize,
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

fn word_bits() -> u32 {
    64
}

fn plain() -> String {
    "plain".into()
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
        let mut machine: Machine = toml::from_str(text)?;
        let each = |llc: Llc| std::iter::repeat_n(Llc { count: 1, ..llc.clone() }, llc.count);
        machine.llc = machine.llc.into_iter().flat_map(each).collect();
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
        machine.costs.check()?;
        machine.ranges.check()?;
        ensure!(
            machine.interrupt.iter().all(|of| of.cpu < nr && of.per_s > 0.0 && of.busy_us > 0.0),
            "an interrupt has a CPU of the machine, and comes and takes time"
        );
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
        self.costs.in_ns()
    }
}
