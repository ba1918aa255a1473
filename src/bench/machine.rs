//! Where it is measured.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;

use super::results::Machine;
use crate::machine::identity;
use crate::machine::topology::Ranks;

/// This machine. Fails when its topology cannot be read.
pub fn describe() -> Result<Machine> {
    let ranks = Ranks::read()?;
    let online: Vec<_> = ranks.cpus().iter().filter(|cpu| cpu.online).collect();
    let nr = |keys: BTreeSet<(usize, usize)>| keys.len();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Machine {
        kernel: format!("Linux {}", kernel.trim()),
        model: identity::model().unwrap_or_else(|| "unknown".to_owned()),
        cpus: online.len(),
        cores: nr(online.iter().map(|cpu| (cpu.package, cpu.core)).collect()),
        llcs: nr(online.iter().map(|cpu| (cpu.package, cpu.llc)).collect()),
        packages: nr(online.iter().map(|cpu| (cpu.package, 0)).collect()),
        virtual_machine: virtual_machine(&cpuinfo),
    })
}

/// What it says it is, if it says that it is no hardware: x86 by a flag of its CPUs, arm64 by the
/// machine that hypervisors offer.
fn virtual_machine(cpuinfo: &str) -> Option<String> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "hypervisor")
        && !identity::device_tree("compatible").iter().any(|machine| machine == "linux,dummy-virt")
    {
        return None;
    }
    let name = fs::read_to_string("/sys/class/dmi/id/product_name").unwrap_or_default();
    Some(match name.trim() {
        "" => identity::device_tree("model").pop().unwrap_or_else(|| "of unknown make".to_owned()),
        name => name.to_owned(),
    })
}
