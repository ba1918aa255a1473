//! Who schedules in a simulation: one of our modes or an earlier system, with the
//! machine's frequency governor or another one.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};
use powerpack_sim::{Comparator, Governor, Machine, PolicyBytes, Scheduler, System};

use crate::bpf::intf::pp_policy;
use crate::policy::{Mode, Policy};
use crate::topology::{RankedCpu, Ranks};

/// A system by the name that the user gave: `SCHEDULER[@CORES][+GOVERNOR]`, CORES as
/// --max-cores.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    mode: Option<Mode>,
    max_cores: Option<usize>,
    comparator: Option<Comparator>,
    governor: Option<Governor>,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Named {
    type Err = Error;

    /// Fails with a sentence that lists what there is.
    fn from_str(text: &str) -> Result<Self> {
        let (scheduler, governor) = match text.split_once('+') {
            Some((scheduler, governor)) => (scheduler, Some(governor.parse()?)),
            None => (text, None),
        };
        let (scheduler, max_cores) = match scheduler.split_once('@') {
            Some((scheduler, cores)) => (scheduler, Some(cores.parse()?)),
            None => (scheduler, None),
        };
        let mode: Option<Mode> = scheduler.parse().ok();
        let comparator = scheduler.parse().ok();
        if mode.is_none() && comparator.is_none() {
            bail!(
                "unknown scheduler '{scheduler}': choose one of {}, or of the earlier systems {}",
                Mode::ALL.map(Mode::name).join(", "),
                Comparator::ALL.map(|(name, _)| name).join(", ")
            );
        }
        if mode.is_none() && max_cores.is_some() {
            bail!("only our modes have a ceiling: {} is none", scheduler);
        }
        Ok(Named { name: text.to_owned(), mode, max_cores, comparator, governor })
    }
}

impl Named {
    /// The system as it would run on `machine`. Fails if that is too large.
    pub fn on(&self, machine: &Machine) -> Result<System> {
        let scheduler = match (self.mode, self.comparator) {
            (Some(mode), _) => {
                let ranks = rank(machine)?;
                let policy = Policy::new(mode, self.max_cores, &ranks)?.to_bpf(&ranks);
                Scheduler::Powerpack(for_sim(&ranks), bytes_of(policy))
            }
            (None, Some(comparator)) => Scheduler::Comparator(comparator),
            (None, None) => bail!("no scheduler"),
        };
        Ok(System { scheduler, governor: self.governor })
    }
}

/// The ranks of a simulated machine, as the agent derives them.
pub fn rank(machine: &Machine) -> Result<Ranks> {
    let cpus = machine.cpus().into_iter().map(|cpu| RankedCpu {
        cpu: cpu.cpu,
        core: cpu.core,
        llc: cpu.llc,
        package: cpu.package,
        node: cpu.node,
        capacity: cpu.capacity,
        online: true,
    });
    Ranks::of(cpus.collect())
}

/// The same as the simulator takes them.
pub fn for_sim(ranks: &Ranks) -> Vec<powerpack_sim::RankedCpu> {
    let next_is_sibling = ranks.next_is_sibling();
    let cpus = ranks.cpus().iter().enumerate();
    cpus.map(|(rank, cpu)| powerpack_sim::RankedCpu {
        cpu: cpu.cpu as u32,
        llc: cpu.llc as u32,
        capacity: cpu.capacity as u32,
        online: cpu.online,
        next_is_sibling: next_is_sibling[rank],
    })
    .collect()
}

/// As the BPF side reads it.
pub fn bytes_of(policy: pp_policy) -> PolicyBytes {
    // SAFETY: plain numbers without padding, of that size.
    PolicyBytes(unsafe { std::mem::transmute::<pp_policy, [u8; 40]>(policy) })
}
