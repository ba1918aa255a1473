//! VMs beside their simulation: what `scripts/measure-reality` measured on the real kernel in
//! virtual time (sim/reality.toml), and the same in the simulator.

use std::collections::BTreeMap;

use anyhow::Result;
use powerpack_sim::{Governor, Machine, Outcome, REALITY as MEASURED};
use powerpack_workload::Workload;
use serde::Deserialize;

use super::{head, notes, row, simulate, simulate_settled};

/// What the simulator's energy may be off by (%).
pub(super) const NEAR_PCT: f64 = 5.0;
/// Next to no load: what the machine needs beside what is simulated.
pub(super) const BACKGROUND: &str = "0.01/1000";
/// A CPU is used from this share of time on (%), as on the measured pages (src/bench/meter.rs).
const USED_PCT: f64 = 0.5;
/// The loads of VMs by the beginning of their names; the last are all others.
const KINDS: [&str; 3] = ["herd", "stairs", ""];
/// The kernel's own class in the laboratory, among the modes there: in a table of its own.
pub(super) const KERNEL: &str = "eas";

#[derive(Deserialize)]
struct Measured {
    run: Vec<Run>,
}

/// One run on the real kernel.
#[derive(Deserialize)]
pub(super) struct Run {
    pub machine: String,
    pub workload: String,
    /// The workload is one periodic task on these.
    pub cpus: Option<String>,
    pub mode: String,
    pub seconds: f64,
    /// By CPU.
    non_idle_pct: Vec<f64>,
    pub overruns: u64,
    /// Not of loads that do as much as they can, too.
    longest_ms: Option<f64>,
    /// Of the laboratory's machines: the mean of the model's.
    pub power_mw: Option<f64>,
    /// Of the kernel's own class there.
    pub frequency_changes_per_s: Option<f64>,
    pub overhead_pct: Option<f64>,
}

impl Run {
    /// Fails if there is no such workload.
    pub fn workload(&self) -> Result<Workload> {
        match (&self.cpus, self.workload.split_once('/')) {
            (Some(cpus), Some((run_ms, period_ms))) => {
                Workload::run_period(run_ms.parse()?, period_ms.parse()?, Some(cpus))
            }
            _ => Workload::find(&self.workload),
        }
    }
}

/// What was measured, in the laboratory or in other VMs.
pub(super) fn measured(laboratory: bool) -> Result<Vec<Run>> {
    let all: Measured = toml::from_str(MEASURED)?;
    Ok(all.run.into_iter().filter(|run| run.power_mw.is_some() == laboratory).collect())
}

fn longest_ms(outcome: &Outcome) -> f64 {
    outcome.tasks.iter().map(|task| task.max_us).fold(0.0, f64::max) / 1e3
}

/// Which CPUs ran, on machines without a model of power.
pub fn cpus() -> Result<()> {
    head(&[
        "machine",
        "load",
        "mode",
        "non-idle % of CPUs, fullest first: real",
        "simulated",
        "off by at most",
        "overruns: real",
        "simulated",
        "longest, ms: real",
        "simulated",
    ]);
    let mut offs = Vec::new();
    for run in measured(false)? {
        let outcome = simulated(&run)?;
        let (real, simulated) = (sorted(&run.non_idle_pct), sorted(&outcome.non_idle_pct));
        let off = Off::of(&run, &outcome);
        row([
            run.machine,
            run.workload,
            run.mode,
            list(&real),
            list(&simulated),
            format!("{:.1}", off.pct),
            run.overruns.to_string(),
            outcome.overruns.to_string(),
            run.longest_ms.map_or(String::new(), |ms| format!("{ms:.1}")),
            format!("{:.1}", longest_ms(&outcome)),
        ]);
        offs.push(off);
    }
    print_sums(&offs);
    notes(&[
        "Fitted: how late a timer may be, to `light` in spread on vm4, to stairs-5 on vm8: the VM's \
         CPUs are emulated in turn.",
        "herd-N: all tasks wake at once. stairs-N: the same tasks, evenly apart in their period. \
         There it depends on less than a timer's lateness whether one finds the last one's CPU \
         idle: what is done is the same, but by which CPUs, and by how many, need not be.",
        "web-audio: pages are fixed work, which takes the VM's CPUs longer the more of them compute, as they are \
         emulated in turn.",
    ]);
    Ok(())
}

/// How far a row is off.
struct Off {
    workload: String,
    mode: String,
    /// The farthest CPU of those that are as full by rank, in points.
    pct: f64,
    overruns: u64,
    longest_ms: f64,
    /// As many CPUs are used.
    same_cpus: bool,
}

impl Off {
    fn of(run: &Run, outcome: &Outcome) -> Self {
        let (real, simulated) = (sorted(&run.non_idle_pct), sorted(&outcome.non_idle_pct));
        let off = real.iter().zip(&simulated).map(|(real, simulated)| (real - simulated).abs());
        let used = |pct: &[f64]| pct.iter().filter(|&&pct| pct >= USED_PCT).count();
        Off {
            workload: run.workload.clone(),
            mode: run.mode.clone(),
            pct: off.fold(0.0, f64::max),
            overruns: run.overruns.abs_diff(outcome.overruns),
            longest_ms: run.longest_ms.map_or(0.0, |ms| (ms - longest_ms(outcome)).abs()),
            same_cpus: used(&real) == used(&simulated),
        }
    }
}

/// A table of the rows above it: what those of each kind of load and mode come to.
fn print_sums(offs: &[Off]) {
    println!();
    head(&[
        "loads",
        "mode",
        "a CPU is off by at most",
        "the longest response by, ms",
        "overruns by",
        &format!("as many CPUs are used ({USED_PCT} % or more) in"),
    ]);
    let mut sums: BTreeMap<(usize, &str), Vec<&Off>> = BTreeMap::new();
    for off in offs {
        sums.entry((kind_of(&off.workload), &off.mode)).or_default().push(off);
    }
    sums.into_iter().for_each(|((kind, mode), offs)| row(sum(kind, mode, &offs)));
}

/// Which of [`KINDS`] the load is.
fn kind_of(workload: &str) -> usize {
    KINDS.iter().position(|kind| workload.starts_with(kind)).unwrap_or(KINDS.len() - 1)
}

/// A row: what those of a kind of load and a mode come to.
fn sum(kind: usize, mode: &str, offs: &[&Off]) -> [String; 6] {
    let most = |of: fn(&Off) -> f64| offs.iter().map(|off| of(off)).fold(0.0, f64::max);
    let same = offs.iter().filter(|off| off.same_cpus).count();
    [
        Some(KINDS[kind]).filter(|name| !name.is_empty()).unwrap_or("others").to_owned(),
        mode.to_owned(),
        format!("{:.1}", most(|off| off.pct)),
        format!("{:.1}", most(|off| off.longest_ms)),
        offs.iter().map(|off| off.overruns).sum::<u64>().to_string(),
        format!("{same} of {} rows", offs.len()),
    ]
}

/// The power of the laboratory's machines.
pub fn power() -> Result<()> {
    head(&[
        "machine",
        "load",
        "mode",
        "power, mW: laboratory",
        "simulated",
        "with the background",
        "off by, %",
        "non-idle, % of a CPU: laboratory",
        "simulated",
        "overruns: laboratory",
        "simulated",
        "longest, ms: laboratory",
        "simulated",
    ]);
    let mut runs = measured(true)?;
    runs.retain(|run| run.mode != KERNEL);
    let mut off_pct = Vec::new();
    let mut pairs: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for run in &runs {
        let outcome = simulated(run)?;
        let real_mw = run.power_mw.unwrap_or(0.0);
        let with_background_mw = outcome.power_mw + background_mw(&runs, run)?;
        let off = (with_background_mw / real_mw - 1.0) * 100.0;
        if run.workload != BACKGROUND {
            off_pct.push(off.abs());
            let of_load = pairs.entry((&run.machine, &run.workload)).or_default();
            of_load.push((real_mw, with_background_mw));
        }
        row([
            run.machine.clone(),
            run.workload.clone(),
            run.mode.clone(),
            format!("{real_mw:.1}"),
            format!("{:.1}", outcome.power_mw),
            format!("{with_background_mw:.1}"),
            format!("{off:+.1}"),
            format!("{:.1}", run.non_idle_pct.iter().sum::<f64>()),
            format!("{:.1}", outcome.non_idle_pct.iter().sum::<f64>()),
            run.overruns.to_string(),
            outcome.overruns.to_string(),
            run.longest_ms.map_or(String::new(), |ms| format!("{ms:.1}")),
            format!("{:.1}", longest_ms(&outcome)),
        ]);
    }
    let near = off_pct.iter().filter(|&&off| off <= NEAR_PCT).count();
    let same = pairs.values().filter(|modes| same_order(modes)).count();
    println!(
        "\nWithin {NEAR_PCT} % in {near} of {} rows; the modes are in the same order in {same} of {} pairs of \
         machine and load (those within {NEAR_PCT} % of each other count as equal).",
        off_pct.len(),
        pairs.len()
    );
    notes(&[
        "The background is what the row with next to no load needs beside its simulation: threads of \
         the kernel, the agent. Fitted: what the kernel works for one run of a task, to tiny in \
         packing on chromebook2.",
        "What is non-idle is more in the laboratory: there it begins with the interrupt, in the \
         simulator when the CPU has woken; energy counts that time in both.",
        "balance: in the laboratory tasks leave the small cores that the simulator keeps them on; \
         why was not found. audio: there clusters sleep in gaps that are too short here.",
    ]);
    Ok(())
}

/// What the machine of `of` needs in its mode beside what is simulated, by the row with next to no load.
pub(super) fn background_mw(runs: &[Run], of: &Run) -> Result<f64> {
    let row = runs.iter().find(|run| {
        (&run.machine, &run.mode) == (&of.machine, &of.mode) && run.workload == BACKGROUND
    });
    let Some(row) = row else { return Ok(0.0) };
    Ok(row.power_mw.unwrap_or(0.0) - simulated(row)?.power_mw)
}

/// Whether what takes clearly less in the one takes no more in the other: (laboratory, simulated)
/// of each mode.
fn same_order(modes: &[(f64, f64)]) -> bool {
    let less = |a: f64, b: f64| a < b * (1.0 - NEAR_PCT / 100.0);
    modes.iter().all(|a| modes.iter().all(|b| !(less(a.0, b.0) && less(b.1, a.1))))
}

/// With schedutil where there are frequencies, as it was measured.
pub(super) fn simulated(run: &Run) -> Result<Outcome> {
    let (machine, workload) = (Machine::find(&run.machine)?, run.workload()?);
    let Some(_) = run.power_mw else {
        return simulate(&machine, &workload, run.seconds, &run.mode);
    };
    let system = format!("{}+{}", run.mode, Governor::Schedutil.name());
    simulate_settled(&machine.in_laboratory(), &workload, run.seconds, &system)
}

fn sorted(pct: &[f64]) -> Vec<f64> {
    let mut sorted = pct.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted
}

fn list(pct: &[f64]) -> String {
    pct.iter().map(|pct| format!("{pct:.1}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_in_the_same_order_unless_two_clearly_change_places() {
        assert!(same_order(&[(100.0, 90.0), (200.0, 210.0)]));
        assert!(!same_order(&[(100.0, 210.0), (200.0, 90.0)]));
        assert!(same_order(&[(100.0, 97.0), (102.0, 95.0)]), "equal in both");
        assert!(same_order(&[(100.0, 97.0), (200.0, 95.0)]), "equal in one");
    }

    #[test]
    fn a_kind_of_load_is_as_far_off_as_its_farthest_row() {
        let off = |workload: &str, mode: &str, pct, same_cpus| Off {
            workload: workload.into(),
            mode: mode.into(),
            pct,
            overruns: 1,
            longest_ms: pct,
            same_cpus,
        };
        let offs = [off("herd-5", "packing", 2.0, true), off("herd-20", "packing", 3.7, false)];
        let offs: Vec<&Off> = offs.iter().collect();
        let herd = sum(kind_of("herd-5"), "packing", &offs);
        assert_eq!(herd, ["herd", "packing", "3.7", "3.7", "2", "1 of 2 rows"]);
        assert_eq!(sum(kind_of("tiny"), "eevdf", &[])[0], "others");
    }

    #[test]
    fn a_cpu_is_compared_with_the_one_of_its_rank() {
        let run = Run {
            machine: "vm4".into(),
            workload: "light".into(),
            cpus: None,
            mode: "packing".into(),
            seconds: 1.0,
            non_idle_pct: vec![0.4, 30.0],
            overruns: 0,
            longest_ms: Some(3.0),
            power_mw: None,
            frequency_changes_per_s: None,
            overhead_pct: None,
        };
        let outcome = |non_idle_pct| Outcome { non_idle_pct, overruns: 2, ..Outcome::default() };
        let off = Off::of(&run, &outcome(vec![28.0, 0.3]));
        assert!((off.pct - 2.0).abs() < 1e-9 && off.same_cpus, "{}", off.pct);
        assert_eq!((off.overruns, off.longest_ms), (2, 3.0));
        assert!(!Off::of(&run, &outcome(vec![28.0, 0.6])).same_cpus);
    }
}
