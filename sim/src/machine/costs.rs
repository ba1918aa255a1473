//! What things cost on a machine, as its file says it.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::cpu::Costs;

/// The table `[costs]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CostsSpec {
    pub hz: u32,
    pub switch_us: f64,
    /// What the kernel does for each switch to a task (us of the fastest CPU).
    #[serde(default)]
    pub switch_work_us: f64,
    pub wake_us: f64,
    /// Time lost to cold caches by a task that comes from another core, or another LLC.
    #[serde(default)]
    pub migrate_us: f64,
    #[serde(default)]
    pub migrate_far_us: f64,
    /// The same by the size of what it has in its caches, if it comes from another LLC (us for each MiB).
    #[serde(default)]
    pub refill_us_per_mib: f64,
    /// Time around each idle period that is neither idle nor a task's.
    #[serde(default)]
    pub idle_us: f64,
    /// The same for a kick by another CPU: until the interrupt is there.
    #[serde(default)]
    pub ipi_us: f64,
    /// A CPU's timer interrupt is late by up to so much.
    #[serde(default)]
    pub timer_jitter_us: f64,
    /// Time in which an interrupt keeps a CPU awake.
    #[serde(default)]
    pub irq_us: f64,
    /// The speed of threads that share data across packages (percent).
    #[serde(default = "all_pct")]
    pub far_data_pct: u64,
    /// Time in which all CPUs of a clock stop as its frequency changes.
    #[serde(default)]
    pub freq_change_us: f64,
    /// From the choice of a higher frequency until the voltage for it is there.
    #[serde(default)]
    pub freq_ramp_us: f64,
    /// Energy of a change of frequency, beyond the power before and after it (uJ).
    #[serde(default)]
    pub freq_change_uj: f64,
}

fn all_pct() -> u64 {
    100
}

impl CostsSpec {
    pub fn check(&self) -> Result<()> {
        ensure!(
            (24..=10_000).contains(&self.hz),
            "a kernel ticks 24..10000 times a second, not {}",
            self.hz
        );
        ensure!((1..=100).contains(&self.far_data_pct), "far_data_pct is 1..100");
        ensure!(
            [self.freq_change_us, self.freq_ramp_us, self.freq_change_uj]
                .iter()
                .all(|&of| of >= 0.0),
            "a change of frequency costs 0 or more"
        );
        Ok(())
    }

    /// Whether a change of frequency costs anything.
    pub fn costs_to_change_freq(&self) -> bool {
        [self.freq_change_us, self.freq_ramp_us, self.freq_change_uj].iter().any(|&of| of > 0.0)
    }

    /// Those that differ from machine to machine of a kind.
    pub fn drawn(&mut self) -> [&mut f64; 10] {
        [
            &mut self.switch_us,
            &mut self.wake_us,
            &mut self.migrate_us,
            &mut self.migrate_far_us,
            &mut self.idle_us,
            &mut self.irq_us,
            &mut self.freq_change_us,
            &mut self.freq_ramp_us,
            &mut self.freq_change_uj,
            &mut self.refill_us_per_mib,
        ]
    }

    /// In the kernel's units.
    pub fn in_ns(&self) -> Costs {
        let ns = |us: f64| (us * 1e3) as u64;
        Costs {
            tick_ns: 1_000_000_000 / u64::from(self.hz),
            switch_ns: ns(self.switch_us),
            switch_work_ns: ns(self.switch_work_us),
            wake_ns: ns(self.wake_us),
            migrate_ns: ns(self.migrate_us),
            migrate_far_ns: ns(self.migrate_far_us),
            refill_ns_per_kib: ns(self.refill_us_per_mib / 1024.0),
            idle_ns: ns(self.idle_us),
            ipi_ns: ns(self.ipi_us),
            timer_jitter_ns: ns(self.timer_jitter_us),
            irq_ns: ns(self.irq_us),
            far_data_pct: self.far_data_pct,
            freq_stall_ns: ns(self.freq_change_us),
            freq_ramp_ns: ns(self.freq_ramp_us),
            freq_change_pj: self.freq_change_uj * 1e6,
        }
    }
}
