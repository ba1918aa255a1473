//! What work costs on each CPU, by the kernel's energy model.

use std::collections::BTreeMap;
use std::sync::Arc;

use scx_utils::{EnergyModel, PerfDomain};

/// At this share of its highest performance a CPU is looked at (%): within the range of the lowest
/// clocks that save energy (power_model.rs), which differ by kind.
const WORKING_POINT_PCT: usize = 70;
/// Energies are compared as whole numbers of power x this / performance.
const SCALE: u64 = 1 << 10;

/// Energy for the same work by CPU, in some unit. Empty if there is no model.
pub fn by_cpu() -> BTreeMap<usize, u64> {
    let with_energy = |domain: Arc<PerfDomain>| energy(&domain).map(|energy| (domain, energy));
    let mut energies = BTreeMap::new();
    for (domain, energy) in domains().into_iter().filter_map(with_energy) {
        energies.extend(domain.span.iter().map(|cpu| (cpu, energy)));
    }
    energies
}

/// CPUs with the powers of their working points. None if there is no model: there is none without
/// debugfs, and on most x86.
pub fn domains() -> Vec<Arc<PerfDomain>> {
    if !EnergyModel::has_energy_model() {
        return Vec::new();
    }
    EnergyModel::new().map_or_else(|_| Vec::new(), |model| model.perf_doms.into_values().collect())
}

fn energy(domain: &PerfDomain) -> Option<u64> {
    let max = *domain.perf_table.keys().last()?;
    let (performance, state) =
        domain.perf_table.iter().find(|(perf, _)| **perf * 100 >= max * WORKING_POINT_PCT)?;
    Some(state.power as u64 * SCALE / (*performance).max(1) as u64)
}
