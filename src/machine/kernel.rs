//! What this kernel is and can: each reason why it takes no scheduler, as one sentence with
//! the way out.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail};
use memchr::memmem;
use scx_utils::compat::{self, ROOT_PREFIX};

/// sched_ext in sysfs; missing where the kernel has none.
pub const SCHED_EXT: &str = "/sys/kernel/sched_ext";
/// The kernel's types.
pub const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Whether this is a `PREEMPT_RT` kernel, in which BPF programs have no timers. Its version, as
/// `uname -v` shows it, says so (`init/Makefile`, `scripts/mkcompile_h` of the kernel).
pub fn is_preempt_rt() -> bool {
    let version = fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    version.split_whitespace().any(|word| word == "PREEMPT_RT")
}

/// Whether root runs this.
pub fn is_root() -> bool {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Fails for anyone but root.
pub fn check_root(what: &str) -> Result<()> {
    if !is_root() {
        bail!("{what} needs root: run it with sudo");
    }
    Ok(())
}

/// From one tick of a busy CPU to the next (ns), 1 s / HZ: the resolution of the clocks that
/// the kernel advances at ticks (`KTIME_LOW_RES`, as `CLOCK_MONOTONIC_COARSE`).
pub fn tick_ns() -> Result<u32> {
    let mut res = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a struct of ours.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut res) } != 0 {
        return Err(io::Error::last_os_error()).context("cannot read the length of a tick");
    }
    checked_tick(res.tv_sec, res.tv_nsec)
}

/// A kernel has 24 to 10,000 ticks a second.
fn checked_tick(seconds: i64, ns: i64) -> Result<u32> {
    if seconds != 0 || !(100_000..=42_000_000).contains(&ns) {
        bail!("a tick of this kernel is {seconds} s and {ns} ns long, which cannot be");
    }
    Ok(ns as u32)
}

/// Why the BPF programs did not load, as far as the kernel's BTF shows.
pub fn explain_load_failure(err: libbpf_rs::Error) -> anyhow::Error {
    let err = anyhow::Error::from(err);
    let malformed = compat::malformed_scx_kfuncs();
    if !malformed.is_empty() {
        return old_pahole(&malformed);
    }
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if is_confidential(&lockdown) {
        return anyhow::anyhow!(
            "this kernel is locked down to confidentiality, so that no BPF program may read its memory, as \
             this scheduler does: boot with lockdown=integrity, or none"
        );
    }
    err.context("the kernel refused the scheduler (-v shows its messages)")
}

/// Whether the level of lockdown in force, in brackets among all, is the one in which BPF programs read nothing of the
/// kernel (`LOCKDOWN_BPF_READ_KERNEL`).
fn is_confidential(lockdown: &str) -> bool {
    lockdown.contains("[confidentiality]")
}

/// Why a scheduler that was loaded did not get in charge.
pub fn explain_attach_failure(err: anyhow::Error) -> anyhow::Error {
    if let Some(name) = loaded_scheduler() {
        return anyhow::anyhow!("another sched_ext scheduler was loaded meanwhile, {name}");
    }
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    match isolated.trim() {
        "" => err.context("the kernel refused to attach the scheduler"),
        cpus => anyhow::anyhow!(
            "the kernel runs no sched_ext scheduler while CPUs are isolated from scheduling \
             ({cpus}): boot without isolcpus=; nohz_full= and cpusets keep CPUs free too"
        ),
    }
}

fn old_pahole(malformed: &[String]) -> anyhow::Error {
    anyhow::anyhow!(
        "this kernel's BTF was made by a pahole older than 1.26, so that no sched_ext scheduler \
         loads ({} is malformed): boot a kernel built with a newer pahole",
        malformed[0]
    )
}

/// All names in the kernel's BTF. Parsing the types would take longer than
/// anything else at load, and libbpf does it once already.
pub struct KernelNames(Vec<u8>);

impl KernelNames {
    /// Reads the string section alone. Fails when there is no BTF, or no sense in it.
    pub fn read() -> Result<Self> {
        read_strings(KERNEL_BTF).with_context(|| format!("cannot read {KERNEL_BTF}")).map(Self)
    }

    /// Whether anything in the kernel has just this name.
    pub fn has(&self, name: &str) -> bool {
        memmem::find(&self.0, format!("\0{name}\0").as_bytes()).is_some()
    }
}

/// Whether the kernel reports cgroups to a scheduler: with `CONFIG_EXT_GROUP_SCHED`. The name is
/// only in `struct sched_ext_ops`.
pub fn reports_cgroups(names: &KernelNames) -> bool {
    names.has("cgroup_prep_move")
}

/// Whether it reports limits in `cpu.max` too: since Linux 6.17. The BPF side reads them where it
/// does not.
pub fn reports_cpu_max(names: &KernelNames) -> bool {
    reports_cgroups(names) && names.has("cgroup_set_bandwidth")
}

/// struct btf_header (`include/uapi/linux/btf.h`): magic, version, flags, hdr_len,
/// then offset and length of the types and of the strings, after the header.
fn read_strings(path: &str) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut header = [0; 24];
    file.read_exact_at(&mut header, 0)?;
    let word = |at| u32::from_ne_bytes(std::array::from_fn(|i| header[at + i]));
    let mut strings = vec![0; word(20) as usize];
    file.read_exact_at(&mut strings, u64::from(word(4)) + u64::from(word(16)))?;
    Ok(strings)
}

/// The name of the scheduler that is loaded now, if any.
pub fn loaded_scheduler() -> Option<String> {
    let state = fs::read_to_string(format!("{SCHED_EXT}/state")).ok()?;
    if state.trim() == "disabled" {
        return None;
    }
    let name = fs::read_to_string(format!("{SCHED_EXT}/root/ops")).unwrap_or_default();
    Some(if name.trim().is_empty() { "of unknown name".into() } else { name.trim().into() })
}

/// Whether a scheduler is in charge: loading and leaving are states of their own.
pub fn is_enabled() -> bool {
    fs::read_to_string(format!("{SCHED_EXT}/state")).is_ok_and(|state| state.trim() == "enabled")
}

/// How often a scheduler has been enabled since boot; unchanged by a switch.
pub fn enable_seq() -> Option<u64> {
    read_number("enable_seq").ok()
}

/// How often a CPU went or came since boot.
pub fn hotplug_seq() -> Result<u64> {
    read_number("hotplug_seq")
}

fn read_number(file: &str) -> Result<u64> {
    let path = format!("{SCHED_EXT}/{file}");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.trim().parse().with_context(|| format!("{path} holds no number"))
}

/// Whether this machine's frequencies change under the kernel's eyes.
pub fn has_cpufreq() -> bool {
    let policies = fs::read_dir(format!("{}/sys/devices/system/cpu/cpufreq", *ROOT_PREFIX));
    policies.is_ok_and(|mut policies| policies.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_as_long_as_that_of_some_kernel() {
        assert_eq!(checked_tick(0, 4_000_000).unwrap(), 4_000_000);
        assert!(checked_tick(0, 1).is_err(), "the resolution of another clock");
        assert!(checked_tick(1, 0).is_err());
        assert!(tick_ns().is_ok(), "this kernel's");
    }

    #[test]
    fn the_level_of_lockdown_in_force_is_in_brackets() {
        assert!(is_confidential("none integrity [confidentiality]\n"));
        assert!(!is_confidential("none [integrity] confidentiality\n"));
    }

    /// The only refusal that no kernel of the VM tests gives.
    #[test]
    fn an_old_pahole_is_named_in_one_sentence() {
        let text = format!("{:#}", old_pahole(&["scx_bpf_kick_cpu".into()]));
        assert!(text.contains("pahole older than 1.26") && text.contains("scx_bpf_kick_cpu"));
        assert_eq!(text.lines().count(), 1);
    }
}
