//! What sets frequencies, idle states and energy, and what measures power.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use powerpack_workload::parse_cpu_list;

use super::mask::Mask;
use super::part::{Part, cpu_list};
use crate::machine::power_meter::PowerMeter;
use crate::machine::sensors::{cpu_dirs, entries, name, number};
use crate::machine::{energy_model, kernel};

const CPUS: &str = "sys/devices/system/cpu";
/// Of a policy of cpufreq, where they are there.
const POLICY_FILES: [&str; 8] = [
    "scaling_driver",
    "scaling_governor",
    "energy_performance_preference",
    "energy_performance_available_preferences",
    "scaling_min_freq",
    "scaling_max_freq",
    "cpuinfo_min_freq",
    "cpuinfo_max_freq",
];
/// What the drivers of frequencies say of themselves.
const DRIVER_FILES: [&str; 5] = [
    "intel_pstate/status",
    "intel_pstate/no_turbo",
    "intel_pstate/hwp_dynamic_boost",
    "amd_pstate/status",
    "cpufreq/boost",
];

/// CPUs by what is said of them: those that are alike share a line.
type Alike = BTreeMap<String, Vec<usize>>;

fn add_alike(part: &mut Part, alike: Alike) {
    let mut lines: Vec<_> = alike
        .into_iter()
        .map(|(text, mut cpus)| {
            cpus.sort_unstable();
            (cpus, text)
        })
        .collect();
    lines.sort();
    for (cpus, text) in lines {
        part.add(format!("CPUs {}: {text}", cpu_list(&cpus)));
    }
}

/// cpufreq.
pub fn frequencies(root: &Path, mask: &Mask) -> Part {
    let mut part = Part::new("Frequencies (cpufreq)");
    for file in DRIVER_FILES {
        if let Some(text) = part.read(&root.join(CPUS).join(file)) {
            part.add(format!("{file}: {}", mask.text(&text)));
        }
    }
    let mut alike = Alike::new();
    let mut policies = entries(&root.join(CPUS).join("cpufreq"));
    policies.retain(|policy| name(policy).starts_with("policy"));
    for policy in &policies {
        let found = POLICY_FILES.iter().filter_map(|file| {
            // Those of CPUs that are offline cannot be read.
            let text = fs::read_to_string(policy.join(file)).ok()?;
            Some(format!("{file} {}", mask.text(text.trim())))
        });
        let text = found.collect::<Vec<_>>().join(", ");
        let cpus = fs::read_to_string(policy.join("related_cpus")).unwrap_or_default();
        // Separated by spaces there.
        let cpus = cpus.split_whitespace().filter_map(|cpu| parse_cpu_list(cpu).ok()).flatten();
        alike.entry(text).or_default().extend(cpus);
    }
    if alike.is_empty() {
        part.add("no cpufreq: frequencies are not the kernel's to set");
    }
    add_alike(&mut part, alike);
    part
}

/// cpuidle.
pub fn idle_states(root: &Path, mask: &Mask) -> Part {
    let mut part = Part::new("Idle states (cpuidle)");
    for file in ["current_driver", "current_governor_ro"] {
        if let Some(text) = part.read(&root.join(CPUS).join("cpuidle").join(file)) {
            part.add(format!("{file}: {}", mask.text(&text)));
        }
    }
    let mut alike = Alike::new();
    for dir in cpu_dirs(root) {
        let states: Vec<String> = entries(&dir.join("cpuidle"))
            .iter()
            .filter_map(|state| idle_state(state, mask))
            .collect();
        if let (Ok(cpu), false) = (name(&dir)[3..].parse(), states.is_empty()) {
            alike.entry(states.join(", ")).or_default().push(cpu);
        }
    }
    if alike.is_empty() {
        part.add("no cpuidle: a CPU has one idle state");
    }
    add_alike(&mut part, alike);
    part
}

/// A state's name, how long it takes to leave it, how long it must last to pay, and whether it is off.
fn idle_state(dir: &Path, mask: &Mask) -> Option<String> {
    let title = fs::read_to_string(dir.join("name")).ok()?;
    let us = |file| number(&dir.join(file)).map_or("?".to_owned(), |us| us.to_string());
    let off = if number(&dir.join("disable")).is_some_and(|off| off != 0) { " off" } else { "" };
    Some(format!("{} {}/{} us{off}", mask.text(title.trim()), us("latency"), us("residency")))
}

/// The energy model, and meters.
pub fn energy(root: &Path) -> Part {
    let mut part = Part::new("Energy model and power meters");
    let debugfs = root.join("sys/kernel/debug");
    match fs::read_dir(&debugfs) {
        Err(err) if !kernel::is_root() => part.miss(debugfs.display(), super::part::reason(&err)),
        _ => match energy_model::domains() {
            domains if domains.is_empty() => part.add("no energy model of the kernel's"),
            domains => domains.iter().for_each(|domain| {
                let cpus: Vec<usize> = domain.span.iter().collect();
                let states = domain.perf_table.len();
                part.add(format!("energy model: CPUs {}, {states} states", cpu_list(&cpus)));
            }),
        },
    }
    let meter = PowerMeter::begin(root);
    match meter.missing() {
        None => part.add(format!("power is measured by {}", meter.title())),
        Some(why) if kernel::is_root() => part.add(format!("power: {why}")),
        // Only root reads RAPL.
        Some(_) => part.miss("power meters", "root may read them: run the report with sudo"),
    }
    let zones = entries(&root.join("sys/class/powercap"));
    let zones = zones.iter().filter(|zone| name(zone).contains(':'));
    for zone in zones {
        let title = fs::read_to_string(zone.join("name")).unwrap_or_default();
        part.add(format!("{}: {}", name(zone), title.trim()));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::report::part;
    use crate::machine::sensors::tests::sysfs;

    #[test]
    fn cpus_that_are_alike_share_a_line() {
        let mut files =
            vec![("devices/system/cpu/intel_pstate/status".to_owned(), "active".to_owned())];
        for cpu in 0..4 {
            let policy = format!("devices/system/cpu/cpufreq/policy{cpu}");
            let governor = if cpu == 3 { "performance" } else { "powersave" };
            files.push((format!("{policy}/scaling_governor"), governor.into()));
            files.push((format!("{policy}/related_cpus"), cpu.to_string()));
            let state = format!("devices/system/cpu/cpu{cpu}/cpuidle/state1");
            for (file, value) in
                [("name", "C6"), ("latency", "133"), ("residency", "600"), ("disable", "1")]
            {
                files.push((format!("{state}/{file}"), value.into()));
            }
        }
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let root = sysfs("report-power", &files);
        let mask = Mask::default();
        let text = part::text("", &[frequencies(&root, &mask), idle_states(&root, &mask)]);
        for line in [
            "intel_pstate/status: active\nCPUs 0-2: scaling_governor powersave\nCPUs 3: scaling_governor performance\n",
            "\nCPUs 0-3: C6 133/600 us off\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        fs::remove_dir_all(&root).unwrap();
        let text = part::text("", &[frequencies(&root, &mask), idle_states(&root, &mask)]);
        assert!(text.contains("no cpufreq") && text.contains("no cpuidle"), "{text}");
    }
}
