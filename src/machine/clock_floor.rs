//! The lowest clock of each CPU that saves energy. Slower than that, what is awake because the
//! CPU is, is awake for longer, and takes more than the lower voltage saves.

use std::collections::BTreeMap;

use scx_utils::{EnergyModel, PerfDomain};

/// What is assumed where nothing says what a CPU takes (% of its capacity): seven tenths of its
/// highest frequency, with what schedutil adds. Measured in the simulator, where it is within a few
/// percent of the best for most machines: docs/simulator-tables.md.
pub const DEFAULT_PCT: u32 = 55;
/// schedutil adds a quarter to what is asked for (map_util_perf()).
const SCHEDUTIL_FACTOR: f64 = 1.25;
/// Of the power of the slowest working point: what is awake around a CPU, which the kernel's
/// energy model does not have. An estimate.
const KEPT_AWAKE_SHARE: f64 = 0.5;

/// A working point of a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Of the CPU's highest, above 0 and up to 1.
    pub speed: f64,
    /// In any unit that is the same for all points, beyond what the idle CPU takes.
    pub power: f64,
}

/// What the clocks of a machine do.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// Whether they change, and can be asked for a performance.
    pub change: bool,
    /// By CPU: the lowest target that saves energy (% of the CPU's capacity).
    pub floor_pct: BTreeMap<usize, u32>,
}

/// The lowest target that saves energy (% of the capacity) of a CPU with these working points,
/// where `kept_awake` more is awake because it is.
pub fn floor_pct(points: &[Point], kept_awake: f64) -> u32 {
    let cost = |point: &&Point| (point.power + kept_awake) / point.speed;
    let best = points.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    // Rounded down: a little more, and schedutil chooses the next higher frequency.
    best.map_or(DEFAULT_PCT, |best| (best.speed / SCHEDUTIL_FACTOR * 100.0) as u32)
}

/// This machine's, by the kernel's energy model; without one there is a default for all.
pub fn of_this_machine(change: bool) -> Clocks {
    let domains = match EnergyModel::new() {
        Ok(model) if EnergyModel::has_energy_model() => model.perf_doms,
        _ => BTreeMap::new(),
    };
    let floor_pct = domains.values().flat_map(|domain| {
        let floor = floor_of(domain);
        domain.span.iter().map(move |cpu| (cpu, floor)).collect::<Vec<_>>()
    });
    Clocks { change, floor_pct: floor_pct.collect() }
}

fn floor_of(domain: &PerfDomain) -> u32 {
    let max = domain.perf_table.keys().last().copied().unwrap_or(0).max(1) as f64;
    let points: Vec<Point> = domain
        .perf_table
        .iter()
        .filter(|(performance, _)| **performance > 0)
        .map(|(performance, state)| Point {
            speed: *performance as f64 / max,
            power: state.power as f64,
        })
        .collect();
    let slowest = points.first().map_or(0.0, |point| point.power);
    floor_pct(&points, slowest * KEPT_AWAKE_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(powers: &[(u32, f64)]) -> Vec<Point> {
        let highest = f64::from(powers.last().unwrap().0);
        powers
            .iter()
            .map(|&(mhz, power)| Point { speed: f64::from(mhz) / highest, power })
            .collect()
    }

    /// An A7 of chromebook2: 0.12 mW a MHz at 500 MHz, 0.118 at 600, 0.165 at 1300.
    #[test]
    fn the_more_is_kept_awake_the_faster_is_best() {
        let a7 = points(&[(500, 60.0), (600, 71.0), (900, 115.0), (1300, 214.0)]);
        assert_eq!(floor_pct(&a7, 0.0), 36, "600 of 1300 MHz, and a quarter is added");
        assert_eq!(floor_pct(&a7, 36.0), 55, "900 MHz");
        assert_eq!(floor_pct(&a7, 1000.0), 80, "all there is");
    }

    #[test]
    fn without_working_points_there_is_a_default() {
        assert_eq!(floor_pct(&[], 10.0), DEFAULT_PCT);
    }
}
