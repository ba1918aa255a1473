//! What a cpufreq policy leaves to the hardware.

use std::fs;
use std::path::Path;

/// The drivers that do, in their active modes; in others they have other names.
const HARDWARE_DRIVERS: [&str; 2] = ["intel_pstate", "amd-pstate-epp"];

/// Whether the hardware chooses the frequency of the CPUs of `policy` (a directory
/// `cpufreq/policyN`): it does not hear what a scheduler asks for, and `powersave` is not the lowest.
pub fn hardware_chooses(policy: &Path) -> bool {
    HARDWARE_DRIVERS.contains(&read(policy, "scaling_driver").trim())
}

/// Whether all that the hardware hears is the energy/performance preference, and may be given another.
pub fn hears_preference(policy: &Path) -> bool {
    hardware_chooses(policy) && !is_for_performance(policy)
}

/// Whether the governor fixes the preference for the moment: these drivers take no other with
/// `performance`, and amd_pstate does not list another either.
pub fn fixes_preference(policy: &Path) -> bool {
    hardware_chooses(policy) && is_for_performance(policy)
}

fn is_for_performance(policy: &Path) -> bool {
    read(policy, "scaling_governor").trim() == "performance"
}

fn read(policy: &Path, file: &str) -> String {
    fs::read_to_string(policy.join(file)).unwrap_or_default()
}
