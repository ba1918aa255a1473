//! What work costs on each CPU, by the kernel's energy model.

use std::collections::BTreeMap;

use scx_utils::{EnergyModel, PerfDomain};

/// At this share of its highest performance a CPU is looked at (%): what our wishes come to
/// when it is not full (power_model.rs says from where on it pays).
const WORKING_POINT_PCT: usize = 70;
/// Energies are compared as whole numbers of power x this / performance.
const SCALE: u64 = 1 << 10;

/// Energy for the same work by CPU, in some unit. Empty if there is no model: there is none
/// without debugfs, and on most x86.
pub fn by_cpu() -> BTreeMap<usize, u64> {
    if !EnergyModel::has_energy_model() {
        return BTreeMap::new();
    }
    let Ok(model) = EnergyModel::new() else { return BTreeMap::new() };
    let domains = model.perf_doms.values();
    domains
        .filter_map(|domain| energy(domain).map(|energy| (domain, energy)))
        .flat_map(|(domain, energy)| domain.span.iter().map(move |cpu| (cpu, energy)))
        .collect()
}

fn energy(domain: &PerfDomain) -> Option<u64> {
    let max = *domain.perf_table.keys().last()?;
    let (performance, state) =
        domain.perf_table.iter().find(|(perf, _)| **perf * 100 >= max * WORKING_POINT_PCT)?;
    Some(state.power as u64 * SCALE / (*performance).max(1) as u64)
}
