//! How uncertain the figures of a machine are.

use anyhow::{Result, ensure};
use serde::Deserialize;

/// What a figure of a file that does not say it may be beside it: this factor and its inverse. Powers
/// of idle states and latencies that are published for one part differ by as much between parts of
/// one series.
const FACTOR: f64 = 1.5;

/// The table `[ranges]`: factors, by group of figures. A figure is between itself over the factor and
/// itself times it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Ranges {
    /// Powers of operating points.
    pub core_mw: f64,
    /// Powers of LLCs and packages that are awake.
    pub uncore_mw: f64,
    /// Powers of idle states, and the energy of entering them.
    pub idle_mw: f64,
    /// Residencies and exit latencies.
    pub idle_us: f64,
    /// All of `[costs]`, and how long interrupts are.
    pub costs: f64,
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            core_mw: FACTOR,
            uncore_mw: FACTOR,
            idle_mw: FACTOR,
            idle_us: FACTOR,
            costs: FACTOR,
        }
    }
}

impl Ranges {
    pub fn check(&self) -> Result<()> {
        let Ranges { core_mw, uncore_mw, idle_mw, idle_us, costs } = self;
        let fits = [core_mw, uncore_mw, idle_mw, idle_us, costs].iter().all(|&&of| of >= 1.0);
        ensure!(fits, "ranges are factors of 1 and more");
        Ok(())
    }
}
