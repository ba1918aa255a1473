//! Kinds of cores: their speed, operating points and idle states.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::Deserialize;

/// A kind of core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// 1..=1024, of the fastest CPU of the machine.
    #[serde(default = "full")]
    pub capacity: usize,
    /// SMT siblings.
    #[serde(default = "super::one")]
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

/// The cores of a machine whose file lists no kinds.
pub(super) fn plain_cores() -> BTreeMap<String, Core> {
    let core = Core {
        capacity: full(),
        threads: super::one(),
        smt_speed_pct: Vec::new(),
        smt_power_pct: 0.0,
        opps: Vec::new(),
        idle: Vec::new(),
    };
    BTreeMap::from([(super::plain(), core)])
}

fn full() -> usize {
    1024
}

impl Core {
    pub(super) fn check(&self) -> Result<()> {
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
