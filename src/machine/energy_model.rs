//! What work costs on each CPU, by the kernel's energy model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use scx_utils::compat::ROOT_PREFIX;
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

/// Where debugfs shows the model, below the root.
const DIR: &str = "sys/kernel/debug/energy_model";
/// EM_PERF_DOMAIN_ARTIFICIAL of include/linux/energy_model.h, in a domain's file `flags`: its driver knows no powers.
/// intel_pstate gives every state of a hybrid processor the same one, cppc_cpufreq a cost by the size of the CPU.
const ARTIFICIAL: u64 = 1 << 2;

/// CPUs with the powers of their working points. None if there is no model of powers: there is none without
/// debugfs, and on most x86.
pub fn domains() -> Vec<Arc<PerfDomain>> {
    if !EnergyModel::has_energy_model()
        || is_artificial(Path::new(&format!("{}/{DIR}", *ROOT_PREFIX)))
    {
        return Vec::new();
    }
    EnergyModel::new().map_or_else(|_| Vec::new(), |model| model.perf_doms.into_values().collect())
}

/// Whether any domain in `dir` says that its powers are none.
fn is_artificial(dir: &Path) -> bool {
    let flags = |domain: &Path| {
        let text = fs::read_to_string(domain.join("flags")).ok()?;
        u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    let domains = fs::read_dir(dir).into_iter().flatten().flatten();
    domains
        .into_iter()
        .any(|domain| flags(&domain.path()).is_some_and(|flags| flags & ARTIFICIAL != 0))
}

fn energy(domain: &PerfDomain) -> Option<u64> {
    let max = *domain.perf_table.keys().last()?;
    let (performance, state) =
        domain.perf_table.iter().find(|(perf, _)| **perf * 100 >= max * WORKING_POINT_PCT)?;
    Some(state.power as u64 * SCALE / (*performance).max(1) as u64)
}
