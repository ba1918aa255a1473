//! What schedules in a simulation: one of our modes or an earlier system, with the
//! machine's frequency governor or another one.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};
use powerpack_sim::{Comparator, Governor, Machine, PolicyBytes, Scheduler, System, TopologyBytes};

use crate::bpf_intf::{pp_policy, pp_topology};
use crate::machine::bpf_topology;
use crate::machine::topology::{RankedCpu, Ranks};
use crate::settings::policy::{Mode, Pack, Policy, PolicyArgs};

/// A system by the name that the user gave: `SCHEDULER[:small][@CORES][+GOVERNOR]`, as
/// --pack small and --max-cores.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    mode: Option<Mode>,
    knobs: PolicyArgs,
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
        let mut knobs = PolicyArgs::default();
        let scheduler = match scheduler.split_once('@') {
            Some((scheduler, cores)) => {
                knobs.max_cores = Some(cores.parse()?);
                scheduler
            }
            None => scheduler,
        };
        let scheduler = match scheduler.strip_suffix(":small") {
            Some(scheduler) => {
                knobs.pack = Some(Pack::Small);
                scheduler
            }
            None => scheduler,
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
        if mode.is_none() && knobs != PolicyArgs::default() {
            bail!("only our modes have knobs: {} is none", scheduler);
        }
        Ok(Named { name: text.to_owned(), mode, knobs, comparator, governor })
    }
}

impl Named {
    /// The system as it would run on `machine`. Fails if that is too large.
    pub fn on(&self, machine: &Machine) -> Result<System> {
        let scheduler = match (self.mode, self.comparator) {
            (Some(mode), _) => {
                let ranks = rank(machine)?;
                let policy = Policy::of(mode).with(mode, &self.knobs).checked(&ranks)?;
                let policy = policy.to_bpf(&ranks);
                powerpack(machine, &ranks, policy)
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
        isolated: false,
    });
    Ranks::of(cpus.collect())
}

/// Ours on `machine`, whose ranks are given.
pub fn powerpack(machine: &Machine, ranks: &Ranks, policy: pp_policy) -> Scheduler {
    let topology = bpf_topology::of(ranks, machine.costs().tick_ns as u32, true);
    // SAFETY: plain integers; the sizes are compared by the compiler.
    let bytes =
        unsafe { std::mem::transmute::<pp_topology, [u8; size_of::<pp_topology>()]>(*topology) };
    Scheduler::Powerpack(Box::new(TopologyBytes(bytes)), bytes_of(policy))
}

/// As the BPF side reads it.
pub fn bytes_of(policy: pp_policy) -> PolicyBytes {
    // SAFETY: plain numbers without padding, of that size.
    PolicyBytes(unsafe { std::mem::transmute::<pp_policy, [u8; 56]>(policy) })
}
