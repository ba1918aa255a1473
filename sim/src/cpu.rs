//! The CPUs of a machine as the kernel keeps them.

use crate::machine::{Machine, MachineCpu};

/// What things cost, and the kernel's own constants.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From one tick to the next (ns): 1 s / HZ.
    pub tick_ns: u64,
    /// Time that a CPU spends in a context switch (ns).
    pub switch_ns: u64,
    /// From an interrupt or a kick until an idle CPU schedules (ns).
    pub wake_ns: u64,
}

/// A CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    pub capacity: u64,
    pub online: bool,
    /// The others of its core.
    pub(crate) siblings: Vec<usize>,
    /// Its speed while one of them runs (percent).
    pub(crate) smt_share_pct: u64,
    pub(crate) running: Option<usize>,
    /// Changes whenever what runs does.
    pub(crate) stint: u64,
    /// Changes whenever what runs is to be done at another time.
    pub(crate) pace: u64,
    /// What ran is accounted until here (ns).
    pub(crate) accounted_ns: u64,
    pub(crate) schedule_pending: bool,
    /// Time in which it ran anything (ns).
    pub non_idle_ns: u64,
    pub switches: u64,
}

/// All idle and online.
pub fn cpus_of(machine: &Machine) -> Vec<Cpu> {
    let all = machine.cpus();
    let cpu = |cpu: &MachineCpu| {
        let core = all.iter().filter(|other| other.core == cpu.core && other.cpu != cpu.cpu);
        Cpu {
            capacity: cpu.capacity as u64,
            online: true,
            siblings: core.map(|other| other.cpu).collect(),
            smt_share_pct: cpu.smt_share_pct,
            ..Cpu::default()
        }
    };
    all.iter().map(cpu).collect()
}
