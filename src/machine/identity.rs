//! Which machine this is.

use std::fmt::Write;
use std::fs;

use crate::machine::topology::Ranks;

/// What the machine or its CPU says it is, if anything does.
pub fn model() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, model)| model.trim().to_owned())
        .or_else(|| device_tree("model").into_iter().next())
}

/// What it says it is, if it says that it is no hardware: x86 by a flag of its CPUs, arm64 by the
/// machine that hypervisors offer.
pub fn virtual_machine() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "hypervisor")
        && !device_tree("compatible").iter().any(|machine| machine == "linux,dummy-virt")
    {
        return None;
    }
    let name = fs::read_to_string("/sys/class/dmi/id/product_name").unwrap_or_default();
    Some(match name.trim() {
        "" => device_tree("model").pop().unwrap_or_else(|| "of unknown make".to_owned()),
        name => name.to_owned(),
    })
}

/// The strings of a property of the device tree's root; without one, none.
pub fn device_tree(property: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/device-tree/{property}")).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The same for as long as the machine has the same CPUs, online or not: what was measured of it is of use on no other.
pub fn of(ranks: &Ranks) -> String {
    let mut text = model().unwrap_or_else(|| "unknown".to_owned());
    for cpu in ranks.cpus() {
        let _ = write!(text, " {}:{}:{}:{}", cpu.cpu, cpu.core, cpu.package, cpu.capacity);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::tests::flat;

    #[test]
    fn other_cpus_are_another_machine() {
        assert_eq!(of(&flat(4, 1)), of(&flat(4, 1)));
        assert_ne!(of(&flat(4, 1)), of(&flat(2, 2)));
    }
}
