//! Machines as TOML files describe them.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cpu::Costs;
use crate::ffi::MAX_CPUS;

/// Those that come with the simulator.
const SHIPPED: [(&str, &str); 2] =
    [("vm4", include_str!("../machines/vm4.toml")), ("vm8", include_str!("../machines/vm8.toml"))];

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub name: String,
    pub about: String,
    costs: CostsSpec,
    llc: Vec<Llc>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsSpec {
    hz: u32,
    switch_us: f64,
    wake_us: f64,
}

/// CPUs that share a last-level cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Llc {
    cores: usize,
    #[serde(default = "one")]
    threads: usize,
    /// How much of its speed a thread has while its sibling runs (percent).
    #[serde(default = "all_pct")]
    smt_share_pct: u64,
    #[serde(default = "full")]
    capacity: usize,
    #[serde(default)]
    package: usize,
    #[serde(default)]
    node: usize,
}

fn one() -> usize {
    1
}

fn all_pct() -> u64 {
    100
}

fn full() -> usize {
    1024
}

/// A CPU and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    pub cpu: usize,
    pub core: usize,
    pub llc: usize,
    pub package: usize,
    pub node: usize,
    /// 1..=1024.
    pub capacity: usize,
    pub smt_share_pct: u64,
}

impl Machine {
    /// A shipped one by its name, else a file by its path.
    pub fn find(name: &str) -> Result<Self> {
        find(name, &SHIPPED, "machine").and_then(|text| Self::parse(&text).context(name.to_owned()))
    }

    /// Fails with a sentence about what is wrong in the file.
    pub fn parse(text: &str) -> Result<Self> {
        let machine: Machine = toml::from_str(text)?;
        let nr = machine.cpus().len();
        if nr == 0 || nr > MAX_CPUS {
            bail!("a machine has 1..{MAX_CPUS} CPUs, not {nr}");
        }
        for llc in &machine.llc {
            if !(1..=1024).contains(&llc.capacity) || !(1..=100).contains(&llc.smt_share_pct) {
                bail!("a capacity is 1..1024, and a share of a core 1..100 %");
            }
        }
        if !(24..=10_000).contains(&machine.costs.hz) {
            bail!("a kernel ticks 24..10000 times a second, not {}", machine.costs.hz);
        }
        Ok(machine)
    }

    /// Numbered core by core.
    pub fn cpus(&self) -> Vec<MachineCpu> {
        let mut cpus = Vec::new();
        let mut core = 0;
        for (llc, spec) in self.llc.iter().enumerate() {
            for _ in 0..spec.cores {
                for _ in 0..spec.threads {
                    cpus.push(MachineCpu {
                        cpu: cpus.len(),
                        core,
                        llc,
                        package: spec.package,
                        node: spec.node,
                        capacity: spec.capacity,
                        smt_share_pct: spec.smt_share_pct,
                    });
                }
                core += 1;
            }
        }
        cpus
    }

    pub fn costs(&self) -> Costs {
        let ns = |us: f64| (us * 1e3) as u64;
        Costs {
            tick_ns: 1_000_000_000 / u64::from(self.costs.hz),
            switch_ns: ns(self.costs.switch_us),
            wake_ns: ns(self.costs.wake_us),
        }
    }
}

/// The text of `name`: shipped, or a file.
pub fn find(name: &str, shipped: &[(&str, &str)], what: &str) -> Result<String> {
    if let Some((_, text)) = shipped.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if name.contains(['/', '.']) {
        return fs::read_to_string(name).with_context(|| format!("cannot read {name}"));
    }
    let names: Vec<&str> = shipped.iter().map(|(name, _)| *name).collect();
    bail!("there is no {what} '{name}': choose one of {}, or a file", names.join(", "))
}
