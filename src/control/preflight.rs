//! What must hold before a scheduler is loaded.

use std::path::Path;

use anyhow::{Result, bail};

use super::peer::holder;
use crate::machine::cgroups::{self, CpuMaxLimits};
use crate::machine::kernel::{KERNEL_BTF, SCHED_EXT, check_root, loaded_scheduler};

/// Fails with the first reason why a scheduler cannot be loaded here.
pub fn check_can_load() -> Result<()> {
    check_root("loading a scheduler")?;
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
        Some(pid) if name.starts_with("powerpack") => bail!(
            "scx_powerpack runs already, process {pid}: stop it first, or switch it with \
             'scx_powerpack mode'"
        ),
        _ => bail!("another sched_ext scheduler is loaded, {name}: stop it first"),
    }
}

/// Fails if a cgroup has a limit that would not be enforced, with what to do.
pub fn check_cpu_max() -> Result<()> {
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
