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
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Machine {
        kernel: format!("Linux {}", kernel.trim()),
        model: identity::model().unwrap_or_else(|| "unknown".to_owned()),
        cpus: online.len(),
        cores: nr(online.iter().map(|cpu| (cpu.package, cpu.core)).collect()),
        llcs: nr(online.iter().map(|cpu| (cpu.package, cpu.llc)).collect()),
        packages: nr(online.iter().map(|cpu| (cpu.package, 0)).collect()),
        virtual_machine: identity::virtual_machine(),
    })
}
