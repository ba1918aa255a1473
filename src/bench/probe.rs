//! What is measured of a scheduler itself, rather than of a load under it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::query::ProgInfoIter;
use serde::Deserialize;

use super::drain;
use super::metric::Metric;
use super::programs::Figures;
use super::system::{Running, System};
use crate::control::protocol::{self, Reply, Request};
use crate::machine::cpu_counts::CpuCounts;
use crate::machine::kernel;
use crate::settings::mode::{Choice, Mode};
use crate::settings::policy::PolicyArgs;

/// Nobody does anything for this time (s),
const REST_S: f64 = 10.0;
/// which begins as late, so that what was before it is over.
const REST_AFTER_S: f64 = 1.0;
/// About how long loading takes (s); only for showing progress.
const LOAD_GUESS_S: f64 = 2.0;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// It is stopped and started again: the program is in memory then, and the kernel has read
    /// its own BTF.
    Load,
    /// An idle machine.
    Rest,
    /// A live switch from spread to packing, under a load.
    Switch,
}

impl Probe {
    /// Its name in tables, and what it does.
    pub fn texts(self) -> (&'static str, &'static str) {
        match self {
            Probe::Load => ("loading", "The scheduler is stopped, and started again"),
            Probe::Rest => ("at rest", "Nothing runs"),
            Probe::Switch => ("mode switch", "From spread to packing, while `light` runs"),
        }
    }

    /// About how long it takes (s).
    pub fn seconds(self) -> f64 {
        match self {
            Probe::Load => LOAD_GUESS_S,
            Probe::Rest => REST_AFTER_S + REST_S,
            Probe::Switch => drain::SECONDS,
        }
    }

    /// Whether `system` has what it looks at.
    pub fn applies(self, system: &System) -> bool {
        match self {
            Probe::Load => !system.is_kernels_own(),
            Probe::Rest => true,
            Probe::Switch => system.mode() == Some(Choice::Fixed(Mode::Packing)),
        }
    }

    /// Looks at `system`, which is `running`; `wait` waits for a time (s).
    pub fn run(
        self,
        system: &System,
        running: &mut Running,
        wait: impl Fn(f64) -> Result<()>,
    ) -> Result<Figures> {
        match self {
            Probe::Load => load(system, running),
            Probe::Rest => rest(running, wait),
            Probe::Switch => switch(),
        }
    }
}

fn load(system: &System, running: &mut Running) -> Result<Figures> {
    let before: BTreeSet<u32> = ProgInfoIter::default().map(|program| program.id).collect();
    let took = running.restart(system)?;
    let programs = ProgInfoIter::default().filter(|program| !before.contains(&program.id));
    let verified: u32 = programs.map(|program| program.verified_insns).sum();
    let load_ms = took.as_secs_f64() * 1e3;
    Ok([(Metric::LoadMs, load_ms), (Metric::VerifiedInsns, f64::from(verified))].into())
}

fn rest(running: &Running, wait: impl Fn(f64) -> Result<()>) -> Result<Figures> {
    let cpu_ns = || running.pid().map(cpu_ns).transpose();
    let mut counts = CpuCounts::find(Path::new("/"));
    wait(REST_AFTER_S)?;
    let before = (interrupts(&mut counts), cpu_ns()?);
    wait(REST_S)?;
    let after = (interrupts(&mut counts), cpu_ns()?);
    let per_s = |after: u64, before: u64| after.saturating_sub(before) as f64 / REST_S;
    let mut figures = Figures::from([(Metric::InterruptsPerS, per_s(after.0, before.0))]);
    if let (Some(after), Some(before), Some(pid)) = (after.1, before.1, running.pid()) {
        figures.insert(Metric::AgentPct, 100.0 * per_s(after, before) / 1e9);
        figures.insert(Metric::AgentRssMb, rss_kib(pid)? * 1024.0 / 1e6);
    }
    Ok(figures)
}

/// The scheduler has to be the same after it, and in the mode that it was in.
fn switch() -> Result<Figures> {
    let loads = || fs::read_to_string(format!("{}/enable_seq", kernel::SCHED_EXT));
    let before = loads()?;
    set(Mode::Spread)?;
    let drained = drain::run(|| set(Mode::Packing));
    set(Mode::Packing)?;
    let drained = drained?;
    ensure!(loads()? == before, "the switch loaded the scheduler again");
    let drained_ms = drained.drained_ms as f64;
    Ok([(Metric::SwitchUs, drained.switched), (Metric::DrainedMs, drained_ms)].into())
}

/// Asks for a mode; how long the scheduler took for it (us).
fn set(mode: Mode) -> Result<f64> {
    let (mode, policy) = (Some(Choice::Fixed(mode)), PolicyArgs::default());
    match protocol::ask(&Request::SetPolicy { mode, policy })? {
        Reply::Mode { took_us, .. } => Ok(took_us),
        other => bail!("the scheduler answered {other:?}"),
    }
}

/// Interrupts since `counts` was made, all CPUs.
fn interrupts(counts: &mut CpuCounts) -> u64 {
    counts.interrupts().values().sum()
}

/// CPU time of all threads of a process (ns), exact where ticks are not.
fn cpu_ns(pid: u32) -> Result<u64> {
    let mut total_ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let ran_ns = text.split_whitespace().next().context("an empty schedstat")?;
        total_ns += ran_ns.parse::<u64>()?;
    }
    Ok(total_ns)
}

fn rss_kib(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).context("no VmRSS")?;
    Ok(kib.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_time_and_memory() {
        let own = std::process::id();
        assert!(cpu_ns(own).unwrap() > 0 && rss_kib(own).unwrap() > 1000.0);
        assert!(cpu_ns(u32::MAX).is_err());
    }
}
