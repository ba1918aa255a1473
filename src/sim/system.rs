//! What schedules in a simulation: one of our modes or an earlier system, with the
//! machine's frequency governor or another one.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};
use powerpack_sim::{
    Comparator, Governor, Machine, PolicyBytes, Scheduler, System, TopologyBytes, epp_of,
};

use crate::bpf_intf::{pp_policy, pp_topology};
use crate::machine::bpf_topology;
use crate::machine::power_model::{CpuPower, PowerModel, Source};
use crate::machine::topology::{RankedCpu, Ranks};
use crate::settings::hints::default_epp;
use crate::settings::named::NamedMode;
use crate::settings::policy::{Choice, LATENCY_BUDGET, Mode, Policy, PolicyArgs};

/// The kernel's own class of today, by name, and whether it places tasks by energy.
pub const KERNEL: [(&str, bool); 2] = [("eevdf", false), ("eas", true)];

/// What is not ours.
#[derive(Clone, Copy, Debug)]
enum Other {
    Earlier(Comparator),
    Eevdf { energy_aware: bool },
}

impl Other {
    fn find(name: &str) -> Option<Self> {
        match KERNEL.iter().find(|(known, _)| *known == name) {
            Some((_, energy_aware)) => Some(Other::Eevdf { energy_aware: *energy_aware }),
            None => name.parse().ok().map(Other::Earlier),
        }
    }
}

/// A system by the name that the user gave: `SCHEDULER[+GOVERNOR]`, one of our modes (see
/// [`NamedMode`]), the kernel's own class ([`KERNEL`]) or an earlier system.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    mode: Option<Mode>,
    knobs: PolicyArgs,
    other: Option<Other>,
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
        let base = Named {
            name: text.to_owned(),
            mode: None,
            knobs: PolicyArgs::default(),
            other: None,
            governor,
        };
        if let Some(NamedMode { choice, knobs }) = NamedMode::parse(scheduler)? {
            let Choice::Fixed(mode) = choice else { bail!("only a fixed mode can be simulated") };
            return Ok(Named { mode: Some(mode), knobs, ..base });
        }
        if let Some(other) = Other::find(scheduler) {
            return Ok(Named { other: Some(other), ..base });
        }
        if scheduler.split_once([':', '@']).is_some_and(|(name, _)| Other::find(name).is_some()) {
            bail!("only our modes have knobs: {scheduler} is none");
        }
        bail!(
            "unknown scheduler '{scheduler}': choose one of {}, {} (the kernel's own), or of the \
             earlier systems {}",
            Mode::ALL.map(Mode::name).join(", "),
            KERNEL.map(|(name, _)| name).join(", "),
            Comparator::ALL.map(|(name, _)| name).join(", ")
        );
    }
}

impl Named {
    /// The system as it would run on `machine`. Fails if that is too large.
    pub fn on(&self, machine: &Machine) -> Result<System> {
        let scheduler = match (self.mode, self.other) {
            (Some(mode), _) => {
                let ranks = rank(machine)?;
                let policy = Policy::of(mode).with(mode, &self.knobs).checked(&ranks)?;
                let policy = policy.to_bpf(&ranks);
                powerpack(machine, &ranks, policy)
            }
            (None, Some(Other::Earlier(comparator))) => Scheduler::Comparator(comparator),
            (None, Some(Other::Eevdf { energy_aware })) => Scheduler::Eevdf { energy_aware },
            (None, None) => bail!("no scheduler"),
        };
        let governor = match self.governor.unwrap_or(machine.governor) {
            Governor::Epp(None) => Governor::Epp(self.mode.and_then(epp_in)),
            other => other,
        };
        Ok(System { scheduler, governor: Some(governor) })
    }
}

/// The energy/performance preference that the agent sets in `mode` on battery, if any.
fn epp_in(mode: Mode) -> Option<u8> {
    default_epp(mode).and_then(epp_of)
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

/// The power of a simulated machine: what the agent would know if it had been measured.
fn power_model(machine: &Machine, ranks: &Ranks) -> PowerModel {
    let cpus = machine.cpus();
    let powers = cpus.iter().map(|cpu| (cpu.cpu, CpuPower::of_file(machine, cpu))).collect();
    let worth_waking = |cpu: usize, power: &CpuPower| {
        power.worth_waking_us(machine.exit_us(&cpus[cpu]), LATENCY_BUDGET)
    };
    // One frequency is no cpufreq: as in the VMs that `vm4` and `vm8` stand for.
    let has_cpufreq = cpus.iter().any(|cpu| machine.core_of(cpu).opps.len() > 1);
    let model = PowerModel::of(ranks, &powers, has_cpufreq, worth_waking);
    PowerModel { source: Source::Simulated, ..model }
}

/// Ours on `machine`, whose ranks are given.
pub fn powerpack(machine: &Machine, ranks: &Ranks, policy: pp_policy) -> Scheduler {
    let topology =
        bpf_topology::of(ranks, machine.costs().tick_ns as u32, &power_model(machine, ranks));
    // SAFETY: plain integers; the sizes are compared by the compiler.
    let bytes =
        unsafe { std::mem::transmute::<pp_topology, [u8; size_of::<pp_topology>()]>(*topology) };
    Scheduler::Powerpack(Box::new(TopologyBytes(bytes)), bytes_of(policy))
}

/// As the BPF side reads it.
pub fn bytes_of(policy: pp_policy) -> PolicyBytes {
    // SAFETY: plain numbers without padding; the sizes are compared by the compiler.
    PolicyBytes(unsafe { std::mem::transmute::<pp_policy, [u8; size_of::<pp_policy>()]>(policy) })
}
