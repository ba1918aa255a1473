//! What must hold before a scheduler is loaded.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::peer::{holder, runs_already};
use crate::machine::cgroups::{self, CpuMaxLimits};
use crate::machine::kernel::{KERNEL_BTF, SCHED_EXT, check_root, loaded_scheduler};

/// Fails with the first reason why a scheduler cannot be loaded here.
pub fn check_can_load() -> Result<()> {
    check_root("loading a scheduler")?;
    ensure!(
        may_load(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
        "loading a scheduler needs the capabilities BPF and PERFMON, which this process lacks: give both to the \
         container or unit"
    );
    if !Path::new(SCHED_EXT).exists() {
        bail!(
            "this kernel has no sched_ext: boot Linux 6.12 or later built with CONFIG_SCHED_CLASS_EXT"
        );
    }
    if !Path::new(KERNEL_BTF).exists() {
        bail!("this kernel has no BTF: boot one built with CONFIG_DEBUG_INFO_BTF");
    }
    let Some(name) = loaded_scheduler() else { return Ok(()) };
    match holder() {
        // Not where the socket is ours: then it is that of an agent with another /run.
        Some(pid) if name.starts_with("powerpack") && !is_us(pid) => bail!("{}", runs_already(pid)),
        _ => bail!("another sched_ext scheduler is loaded, {name}: stop it first"),
    }
}

fn is_us(pid: i32) -> bool {
    u32::try_from(pid) == Ok(std::process::id())
}

/// Whether a process with this `/proc/PID/status` has what the kernel asks for (`include/uapi/linux/capability.h`).
fn may_load(status: &str) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON_AND_BPF: u64 = 3 << 38;
    let mut lines = status.lines().filter_map(|line| line.strip_prefix("CapEff:"));
    let effective = lines.next().and_then(|caps| u64::from_str_radix(caps.trim(), 16).ok());
    // Without such a line the kernel will say.
    effective.is_none_or(|caps| caps & SYS_ADMIN != 0 || caps & PERFMON_AND_BPF == PERFMON_AND_BPF)
}

/// Fails if cgroups have limits that would not be enforced, with what to do.
pub fn check_cpu_max() -> Result<()> {
    ensure!(!cgroups::is_cpu_v1(), "{}, or leave out --require-cpu-max", cgroups::IGNORED_V1);
    refuse_ignored(CpuMaxLimits::of_kernel()?.paths())
}

fn refuse_ignored(paths: &[String]) -> Result<()> {
    match cgroups::ignored_cpu_max(paths) {
        Some(sentence) => bail!("{sentence}: remove the limit, or leave out --require-cpu-max"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_capabilities_are_needed_or_the_one_that_has_them() {
        for (caps, may) in
            [("c000000000", true), ("200000", true), ("4000000000", false), ("0", false)]
        {
            assert_eq!(may_load(&format!("Name:\tx\nCapEff:\t{caps}\n")), may, "{caps}");
        }
        assert!(may_load(""));
    }

    #[test]
    fn a_limit_that_would_not_be_enforced_is_refused() {
        assert!(refuse_ignored(&[]).is_ok());
        let said = refuse_ignored(&["job.slice".into()]).unwrap_err().to_string();
        assert_eq!(
            said,
            "cpu.max of job.slice is not enforced while this scheduler runs: remove the limit, or \
             leave out --require-cpu-max"
        );
    }
}
