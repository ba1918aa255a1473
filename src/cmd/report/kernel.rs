//! Which kernel this is, and what sched_ext says of itself.

use std::ffi::CStr;
use std::path::Path;

use super::mask::Mask;
use super::part::Part;
use crate::machine::identity;
use crate::machine::kernel::{
    KERNEL_BTF, KernelNames, SCHED_EXT, reports_cgroups, reports_cpu_max, tick_ns,
};

/// Of the kernel's command line these words, with what they are set to: the rest may be private.
const BOOT_WORDS: [&str; 20] = [
    "amd_pstate",
    "cpufreq.default_governor",
    "cpuidle.governor",
    "cpuidle.off",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "skew_tick",
    "threadirqs",
    "tsc",
];
/// What sched_ext has in sysfs.
const STATE: [&str; 7] =
    ["state", "root/ops", "switch_all", "enable_seq", "nr_rejected", "hotplug_seq", "root/events"];

/// The kernel, and the machine below it.
pub fn kernel(mask: &Mask) -> Part {
    let mut part = Part::new("Kernel and machine");
    part.add(format!("Linux {}", mask.text(&release())));
    if let Some(text) = part.read(Path::new("/etc/os-release")) {
        part.add(format!("distribution: {}", mask.text(pretty_name(&text))));
    }
    part.add(format!("CPU: {}", mask.text(&identity::model().unwrap_or_else(|| "unknown".into()))));
    part.add(match identity::virtual_machine() {
        Some(name) => format!("a virtual machine: {}", mask.text(&name)),
        None => "no virtual machine that says so".to_owned(),
    });
    match tick_ns() {
        Ok(ns) => part.add(format!("ticks a second: {}", 1_000_000_000 / ns)),
        Err(err) => part.miss("ticks a second", err),
    }
    match KernelNames::read() {
        Ok(names) => part.add(format!(
            "reports cgroups to a scheduler: {}; changes of cpu.max: {}",
            yes(reports_cgroups(&names)),
            yes(reports_cpu_max(&names))
        )),
        Err(err) => part.miss(KERNEL_BTF, err.root_cause()),
    }
    if let Some(us) = part.read(Path::new("/proc/sys/kernel/sched_rt_runtime_us")) {
        part.add(format!("sched_rt_runtime_us: {us}"));
    }
    if let Some(line) = part.read(Path::new("/proc/cmdline")) {
        let words = boot_words(&line);
        let said = if words.is_empty() { "none".to_owned() } else { mask.text(&words.join(" ")) };
        part.add(format!("of the options at boot, those that concern CPUs: {said}"));
    }
    part
}

/// What sched_ext says of itself.
pub fn sched_ext(mask: &Mask) -> Part {
    let mut part = Part::new("sched_ext");
    if !Path::new(SCHED_EXT).exists() {
        part.add("this kernel has no sched_ext");
    }
    for file in STATE {
        if let Some(text) = part.read(&Path::new(SCHED_EXT).join(file)) {
            for line in text.lines() {
                part.add(format!("{file}: {}", mask.text(line)));
            }
        }
    }
    part
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// Release, version and architecture; uname's name of the machine is left out.
fn release() -> String {
    // SAFETY: all zeros are a valid value, which uname() fills.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a struct of ours, and cannot fail then.
    unsafe { libc::uname(&raw mut names) };
    // SAFETY: the kernel ends each with a zero.
    let text = |field: &[libc::c_char]| {
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_string_lossy().into_owned()
    };
    [text(&names.release), text(&names.version), text(&names.machine)].join(" ")
}

fn pretty_name(os_release: &str) -> &str {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown").trim_matches('"')
}

fn boot_words(line: &str) -> Vec<&str> {
    let is_known = |word: &&str| {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        BOOT_WORDS.contains(&name)
    };
    line.split_whitespace().filter(is_known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_command_line_only_what_concerns_cpus_is_said() {
        let line =
            "BOOT_IMAGE=/vmlinuz root=UUID=1234 isolcpus=2-3 secret=x nosmt resume=/dev/sda2 quiet";
        assert_eq!(boot_words(line), ["isolcpus=2-3", "nosmt"]);
    }

    #[test]
    fn a_distribution_is_named() {
        assert_eq!(pretty_name("ID=x\nPRETTY_NAME=\"Debian 13\"\n"), "Debian 13");
        assert_eq!(pretty_name(""), "unknown");
    }
}
