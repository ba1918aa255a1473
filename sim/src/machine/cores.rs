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
    /// What it may run at while few cores of its package are awake, fewest first; none: at any point.
    #[serde(default)]
    pub turbo: Vec<Turbo>,
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

/// A limit of the frequency by how many cores are awake.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Turbo {
    /// Up to so many of the package's cores; the last limit is for more too.
    pub cores: usize,
    /// The highest frequency then.
    pub mhz: u32,
}

/// An idle state of a core, an LLC or a package.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    pub name: String,
    /// Shorter is not worth it (us).
    pub residency_us: f64,
    /// From the interrupt to the first instruction (us), with the power of what is awake.
    pub exit_us: f64,
    pub mw: f64,
    /// What entering and leaving it takes beyond that: state that is saved, caches that are written back
    /// and filled again (uJ).
    #[serde(default)]
    pub enter_uj: f64,
}

/// The cores of a machine whose file lists no kinds.
pub(super) fn plain_cores() -> BTreeMap<String, Core> {
    let core = Core {
        capacity: full(),
        threads: super::one(),
        smt_speed_pct: Vec::new(),
        smt_power_pct: 0.0,
        opps: Vec::new(),
        turbo: Vec::new(),
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
            self.turbo.is_sorted_by(|a, b| a.cores < b.cores && a.mhz >= b.mhz)
                && self.turbo.iter().all(|limit| self.opps.iter().any(|opp| opp.mhz == limit.mhz)),
            "turbo is listed fewest cores first, slower for more, each at an operating point"
        );
        ensure!(
            self.idle.is_sorted_by(|a, b| a.residency_us <= b.residency_us && a.mw >= b.mw),
            "idle states are listed shallowest first"
        );
        Ok(())
    }

    /// Its highest frequency while `awake` cores of its package are awake (MHz); 0 without any.
    pub fn turbo_mhz(&self, awake: usize) -> u32 {
        let limit = self.turbo.iter().find(|limit| awake <= limit.cores).or(self.turbo.last());
        limit.map(|limit| limit.mhz).or(self.opps.last().map(|opp| opp.mhz)).unwrap_or(0)
    }

    /// The speed of each thread while `running` of the core's run (percent).
    pub fn share_pct(&self, running: usize) -> u64 {
        self.smt_speed_pct.get(running.max(1) - 1).copied().unwrap_or(100)
    }
}
