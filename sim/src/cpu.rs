//! The CPUs of a machine as the kernel keeps them.

use crate::machine::{Machine, MachineCpu};
use crate::signal::Average;

/// What things cost, and the kernel's own constants.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From one tick to the next (ns): 1 s / HZ.
    pub tick_ns: u64,
    /// Time that a CPU spends in a context switch (ns).
    pub switch_ns: u64,
    /// Work of the kernel for each switch to a task: its wake-up, its timer, its system calls (ns of the
    /// fastest CPU at its highest frequency). Slower CPUs take longer for it.
    pub switch_work_ns: u64,
    /// From an interrupt or a kick until an idle CPU schedules (ns), beside the
    /// exit latency of its idle state.
    pub wake_ns: u64,
    /// Time that a task loses to cold caches on another core of its LLC (ns).
    pub migrate_ns: u64,
    /// The same on another LLC.
    pub migrate_far_ns: u64,
    /// The same by the size of what it had in its caches (ns for each KiB).
    pub refill_ns_per_kib: u64,
    /// Time around each idle period that is neither idle nor a task's (ns).
    pub idle_ns: u64,
    /// From a kick by another CPU until its interrupt is there (ns).
    pub ipi_ns: u64,
    /// A CPU's timer interrupt is late by up to so much (ns).
    pub timer_jitter_ns: u64,
    /// Time in which an interrupt keeps a CPU awake (ns).
    pub irq_ns: u64,
    /// The speed of threads that share data across packages (percent).
    pub far_data_pct: u64,
    /// Time in which all CPUs of a clock stop as its frequency changes (ns).
    pub freq_stall_ns: u64,
    /// From the choice of a higher frequency until it is there (ns).
    pub freq_ramp_ns: u64,
    /// Energy of a change of frequency, beyond the power before and after it (pJ).
    pub freq_change_pj: f64,
}

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    pub place: MachineCpu,
    pub online: bool,
    /// The others of its core.
    pub(crate) siblings: Vec<usize>,
    pub(crate) running: Option<usize>,
    /// Changes whenever what runs does.
    pub(crate) run_seq: u64,
    /// When the tick is due that it keeps while it is idle; 0: it has not kept one since then.
    pub(crate) idle_tick_ns: u64,
    /// Changes whenever what runs is to be done at another time.
    pub(crate) pace: u64,
    /// What ran is accounted until here (ns).
    pub(crate) accounted_ns: u64,
    pub(crate) schedule_pending: bool,
    /// Utilization as a governor sees it: scaled by frequency, and not.
    pub(crate) util: Average,
    pub(crate) util_raw: Average,
    /// Time in which it ran anything (ns).
    pub non_idle_ns: u64,
    /// The same, each ns times its frequency, 1024 = the highest.
    pub(crate) busy_freq: u64,
    pub switches: u64,
}

impl Cpu {
    /// It has not been idle for `ns`, at that frequency (1..=1024).
    pub(crate) fn was_busy(&mut self, ns: u64, freq: u64) {
        self.non_idle_ns += ns;
        self.busy_freq += ns * freq;
    }
}

/// All idle and online.
pub fn cpus_of(machine: &Machine) -> Vec<Cpu> {
    let all = machine.cpus();
    let cpu = |&place: &MachineCpu| {
        let core = all.iter().filter(|other| other.core == place.core && other.cpu != place.cpu);
        Cpu {
            place,
            online: true,
            siblings: core.map(|other| other.cpu).collect(),
            running: None,
            run_seq: 0,
            idle_tick_ns: 0,
            pace: 0,
            accounted_ns: 0,
            schedule_pending: false,
            util: Average::default(),
            util_raw: Average::default(),
            non_idle_ns: 0,
            busy_freq: 0,
            switches: 0,
        }
    };
    all.iter().map(cpu).collect()
}
