//! `--machine here`: this machine as sysfs describes it, as a machine file. What sysfs
//! does not say is assumed, and listed.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;
use scx_utils::compat::ROOT_PREFIX;

use crate::machine::kernel;
use crate::machine::layout::{self, Group};
use crate::machine::topology::Ranks;

/// What is assumed of any machine, but for its ticks.
const COSTS: &str = "\
switch_us = 2
wake_us = 4
migrate_us = 10
migrate_far_us = 40
irq_us = 3
";
/// How fast each thread is while 1, 2, .. of a core's run (%).
const SMT_SPEED_PCT: [u64; 8] = [100, 62, 48, 40, 34, 30, 27, 25];
/// Of a kernel that does not say how long a tick is.
const HZ_DEFAULT: u32 = 250;
/// Power of the fastest core at its highest frequency (mW).
const CORE_MW: f64 = 4000.0;
/// Its share that does not depend on the frequency; the rest goes with its cube, as
/// the voltage goes with it.
const CORE_STATIC_SHARE: f64 = 0.15;
/// What a package needs beside its cores while one is awake, and asleep (mW for each
/// core).
const PACKAGE_MW: (f64, f64) = (500.0, 250.0);
/// How many operating points between the lowest and the highest frequency.
const OPPS: u32 = 6;
/// Without cpufreq (MHz).
const MHZ_DEFAULT: (u32, u32) = (1000, 3000);

/// A machine file, and the assumptions in it, a line each. Fails when sysfs cannot be
/// read.
pub fn describe() -> Result<(String, Vec<String>)> {
    let ranks = Ranks::read()?;
    let layout = layout::of(&ranks);
    let mut assumed = vec![
        format!(
            "a core needs {} W at its highest frequency, less by its capacity; a package \
             {} W for each of its cores while one is awake",
            CORE_MW / 1e3,
            PACKAGE_MW.0 / 1e3
        ),
        "two threads of a core do 1.24 times the work of one".to_owned(),
        "switches, wake-ups and migrations cost a few us, as on a server of 2020".to_owned(),
    ];
    let mut text = format!("name = \"here\"\nabout = \"this machine\"\n{}", costs());
    let mut groups = String::new();
    for (nr, group) in layout.iter().enumerate() {
        text += &core(nr, group, &mut assumed);
        let _ = write!(
            groups,
            "[[llc]]\ncore = \"kind{nr}\"\ncores = {}\npackage = {}\nnode = {}\njoined = {}\n",
            group.cores.len(),
            group.package,
            group.node,
            layout::is_joined(&layout, nr)
        );
    }
    let (awake, asleep) = PACKAGE_MW;
    let cpus = layout.iter().flat_map(Group::cpus).count() as f64;
    let cores = cpus / layout::nr_packages(&layout) as f64;
    let _ = write!(
        text,
        "[package]\nactive_mw = {}\nidle = [{{ name = \"idle\", residency_us = 1000, exit_us = 100, mw = {} }}]\n",
        awake * cores,
        asleep * cores
    );
    assumed.dedup();
    Ok((text + &groups, assumed))
}

/// The table of what the kernel does, and how long that takes: assumed, but for the length of a tick.
pub fn costs() -> String {
    let hz = kernel::tick_ns().map_or(HZ_DEFAULT, |ns| 1_000_000_000 / ns);
    format!("[costs]\nhz = {hz}\n{COSTS}")
}

/// How fast each of so many threads of a core is, as a machine file lists it: assumed.
pub fn smt_speed_pct(threads: usize) -> String {
    let speed: Vec<String> = SMT_SPEED_PCT.iter().take(threads).map(u64::to_string).collect();
    speed.join(", ")
}

/// A kind of core: its frequencies and idle states as far as sysfs has them.
fn core(nr: usize, group: &Group, assumed: &mut Vec<String>) -> String {
    let cpu = Path::new(&*ROOT_PREFIX)
        .join(format!("sys/devices/system/cpu/cpu{}", group.cores[0][0]))
        .to_path_buf();
    let cpu = if cpu.is_absolute() { cpu } else { Path::new("/").join(cpu) };
    let capacity = group.capacity;
    format!(
        "[core.kind{nr}]\ncapacity = {capacity}\nthreads = {}\nsmt_speed_pct = [{}]\n\
         smt_power_pct = 15\nopps = [{}]\nidle = [{}]\n",
        group.threads,
        smt_speed_pct(group.threads),
        opps(&cpu, capacity, assumed),
        idle_states(&cpu, capacity, assumed),
    )
}

fn number(path: &Path) -> Option<f64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn opps(cpu: &Path, capacity: usize, assumed: &mut Vec<String>) -> String {
    let khz = |name: &str| number(&cpu.join("cpufreq").join(name));
    let range = khz("cpuinfo_min_freq").zip(khz("cpuinfo_max_freq"));
    let known = range.map(|(low, high)| ((low / 1e3) as u32, (high / 1e3) as u32));
    let (low, high) = known.filter(|(low, high)| low < high).unwrap_or_else(|| {
        let (low, high) = MHZ_DEFAULT;
        assumed.push(format!("no cpufreq here: {low} to {high} MHz"));
        MHZ_DEFAULT
    });
    let full_mw = CORE_MW * capacity as f64 / 1024.0;
    let point = |nth: u32| {
        let mhz = low + (high - low) * nth / (OPPS - 1);
        let share = f64::from(mhz) / f64::from(high);
        let mw = full_mw * (CORE_STATIC_SHARE + (1.0 - CORE_STATIC_SHARE) * share.powi(3));
        format!("{{ mhz = {mhz}, mw = {mw:.1} }}")
    };
    (0..OPPS).map(point).collect::<Vec<_>>().join(", ")
}

/// Its states beyond polling: with power that falls from a quarter of the static
/// share's to a hundredth.
fn idle_states(cpu: &Path, capacity: usize, assumed: &mut Vec<String>) -> String {
    let static_mw = CORE_MW * CORE_STATIC_SHARE * capacity as f64 / 1024.0;
    let state = |nr: usize| {
        let dir = cpu.join("cpuidle").join(format!("state{nr}"));
        let name = fs::read_to_string(dir.join("name")).ok()?;
        let name = name.trim().to_owned();
        Some((name, number(&dir.join("residency"))?, number(&dir.join("latency"))?))
    };
    let mut states: Vec<_> = (0..16).map_while(state).filter(|(name, ..)| name != "POLL").collect();
    if states.is_empty() {
        assumed.push("no cpuidle here: two idle states, of 2 and 600 us".to_owned());
        states = vec![("C1".into(), 2.0, 2.0), ("C6".into(), 600.0, 150.0)];
    }
    let last = states.len().max(2) as f64 - 1.0;
    let line = |(nth, (name, residency, exit)): (usize, &(String, f64, f64))| {
        let mw = static_mw * 0.5 * (0.02_f64).powf(nth as f64 / last);
        format!(
            "{{ name = \"{name}\", residency_us = {residency}, exit_us = {exit}, mw = {mw:.2} }}"
        )
    };
    states.iter().enumerate().map(line).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use powerpack_sim::Machine;

    #[test]
    fn this_machine_can_be_simulated() {
        let (text, assumed) = describe().unwrap();
        let machine = Machine::parse(&text).unwrap_or_else(|err| panic!("{err:#}\n{text}"));
        assert_eq!(
            machine.cpus().len(),
            Ranks::read().unwrap().cpus().iter().filter(|cpu| cpu.online).count()
        );
        assert!(!assumed.is_empty());
    }
}
