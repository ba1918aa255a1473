//! Energy of our modes beside an oracle: the best static placement, each task on one
//! CPU, that a search finds, that misses no period and makes no task wait for longer
//! than packing does; and beside the kernel's own class of today.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome, Setup, System};
use powerpack_workload::Workload;

use super::means::{Means, geometric, kernel};
use super::{SEED, SETTLE_S, head, modes, notes, row};
use crate::sim::system::Named;

const LOADS: [&str; 4] = ["light", "tiny", "mixed", "audio"];
/// Long enough for the loads' pattern to repeat (s).
const SECONDS: f64 = 5.0;
/// What packing should need at most, of the oracle's.
const NEAR: f64 = 1.05;
/// What chooses the frequencies of what is placed: as in our modes, or nothing.
const STATIC: [&str; 2] = ["packing+schedutil", "packing+performance"];

/// Of which power and work for a joule are shown, in the order of the table.
const NORMALISED: [&str; 2] = ["packing", "eevdf"];

pub fn print() -> Result<()> {
    let mut cells =
        vec!["machine".to_owned(), "load".into(), "oracle, J".into(), "its CPUs".into()];
    cells.extend(modes().map(|mode| format!("{mode}, of the oracle's")));
    cells.extend(comparators().map(|system| format!("{system}, of the oracle's")));
    cells.extend(NORMALISED.iter().map(|system| format!("{system}: W, work/J")));
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    let names =
        powerpack_sim::MACHINES.iter().map(|(name, _)| *name).filter(|name| *name != "many");
    let (mut packing, mut means) = (Vec::new(), Means::new());
    for name in names {
        let machine = Machine::find(name)?;
        for load in LOADS {
            packing.extend(print_row(&machine, &Workload::find(load)?, &mut means)?);
        }
    }
    let near = packing.iter().filter(|&&ratio| ratio <= NEAR).count();
    let mean = geometric(packing.iter().map(|ratio| ratio.ln()).sum(), packing.len());
    println!(
        "\nPacking needs at most {NEAR} times the oracle's in {near} of {} cases, {:.3} in the \
         geometric mean.\n",
        packing.len(),
        mean
    );
    means.print();
    notes(&[
        "tc2-a7 cannot turn off a single CPU, and its cluster needs five times what a CPU does: \
         there several CPUs at once, and then none, is best, and packing saves nothing.",
        "hybrid-laptop: the same of its package. The oracle uses both low-power cores at once.",
        "chromebook2: tasks of 3 and 10 ms on an A7 of a quarter of the speed. Overruns are those \
         before the load is known: a task's period is not known.",
        "power7 ticks 100 times a second: a slice that ends at a tick may be 10 ms late.",
        "Energy over the oracle's is normalised by time, as W is; work/J by what was done, in seconds of the \
         fastest CPU: what is late and left out is not saved there.",
        "none: in all placements that were tried some task takes longer than under packing.",
        "Below 1: not static, and therefore better than any static placement.",
        "eas is eevdf where a kernel does not place by energy: one kind of cores, or threads.",
    ]);
    Ok(())
}

/// What else is in the table.
fn comparators() -> impl Iterator<Item = String> {
    ["3.9".to_owned()].into_iter().chain(kernel())
}

/// Packing's energy over the oracle's; `None`: no static placement is as soon.
fn print_row(machine: &Machine, workload: &Workload, means: &mut Means) -> Result<Option<f64>> {
    let packing = simulate(machine, workload, &system_of(machine, "packing+schedutil")?, &[])?;
    let oracle = search(machine, workload, longest_us(&packing))?;
    let energy_mj = oracle.as_ref().map(|(energy_mj, _)| *energy_mj);
    let mut cpus = oracle.map_or_else(Vec::new, |(_, cpus)| cpus);
    cpus.sort_unstable();
    cpus.dedup();
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let energy = energy_mj.map_or("none".to_owned(), |mj| format!("{:.3}", mj / 1e3));
    let mut cells = vec![machine.name.clone(), workload.name.clone(), energy, cpus.join(" ")];
    let run = |system: &str| {
        let system = system_of(machine, &format!("{system}+schedutil"))?;
        simulate(machine, workload, &system, &[])
    };
    means.add(machine, run)?;
    let mut normalised = Vec::new();
    for system in modes().chain(comparators()) {
        let outcome = run(&system)?;
        if NORMALISED.contains(&system.as_str()) {
            let (watts, work_per_j) = (outcome.power_mw / 1e3, outcome.work_per_j());
            normalised.push(format!("{watts:.3}, {work_per_j:.4}"));
        }
        let late = match outcome.overruns {
            0 => String::new(),
            overruns => format!(" ({overruns} overruns)"),
        };
        let over =
            energy_mj.map_or("-".to_owned(), |mj| format!("{:.3}", outcome.energy.total_mj() / mj));
        cells.push(over + &late);
    }
    cells.extend(normalised);
    row(cells);
    Ok(energy_mj.map(|mj| packing.energy.total_mj() / mj))
}

fn system_of(machine: &Machine, name: &str) -> Result<System> {
    name.parse::<Named>()?.on(machine)
}

fn simulate(
    machine: &Machine,
    workload: &Workload,
    system: &System,
    pins: &[usize],
) -> Result<Outcome> {
    let new = Setup::new(machine, workload, SECONDS, SEED);
    let setup = Setup { settle_s: SETTLE_S, pins, ..new };
    Ok(powerpack_sim::run(&setup, system)?.0)
}

fn longest_us(outcome: &Outcome) -> f64 {
    outcome.tasks.iter().map(|task| task.max_us).fold(0.0, f64::max)
}

/// The least energy (mJ) and the CPU of each task: from all tasks on one CPU, and
/// from one CPU for each, the best move of a single task until none helps. `None`: in each placement that
/// was tried some task takes more than `longest` (us).
fn search(
    machine: &Machine,
    workload: &Workload,
    longest: f64,
) -> Result<Option<(f64, Vec<usize>)>> {
    let choices = candidates(machine);
    let kinds = workload.kind_of_tasks();
    let nr = kinds.len();
    let mut best: Option<(f64, Vec<usize>)> = None;
    for name in STATIC {
        let system = system_of(machine, name)?;
        let cost = |pins: &[usize]| -> Result<f64> {
            let outcome = simulate(machine, workload, &system, pins)?;
            let slow = outcome.overruns > 0 || longest_us(&outcome) > longest;
            Ok(if slow { f64::INFINITY } else { outcome.energy.total_mj() })
        };
        let mut starts: Vec<Vec<usize>> = choices.iter().map(|&cpu| vec![cpu; nr]).collect();
        starts.push((0..nr).map(|task| choices[task % choices.len()]).collect());
        for pins in starts {
            let found = climb(cost(&pins)?, pins, &kinds, &choices, &cost)?;
            if best.as_ref().is_none_or(|(energy, _)| found.0 < *energy) {
                best = Some(found);
            }
        }
    }
    Ok(best.filter(|(energy_mj, _)| energy_mj.is_finite()))
}

/// Moves single tasks, as long as that saves anything worth the name.
fn climb(
    mut energy: f64,
    mut pins: Vec<usize>,
    kinds: &[usize],
    choices: &[usize],
    cost: &impl Fn(&[usize]) -> Result<f64>,
) -> Result<(f64, Vec<usize>)> {
    /// Moves that save less end the search.
    const WORTH: f64 = 0.999;
    loop {
        let mut next: Option<(f64, Vec<usize>)> = None;
        // Of equal tasks on one CPU it does not matter which one moves.
        let same = |task: usize| {
            (0..task).any(|other| (kinds[other], pins[other]) == (kinds[task], pins[task]))
        };
        for task in (0..pins.len()).filter(|&task| !same(task)) {
            for &cpu in choices.iter().filter(|&&cpu| cpu != pins[task]) {
                let mut moved = pins.clone();
                moved[task] = cpu;
                let moved_energy = cost(&moved)?;
                if moved_energy < energy * WORTH
                    && next.as_ref().is_none_or(|(energy, _)| moved_energy < *energy)
                {
                    next = Some((moved_energy, moved));
                }
            }
        }
        match next {
            Some(better) => (energy, pins) = better,
            None => return Ok((energy, pins)),
        }
    }
}

/// CPUs that are worth a try: of each LLC of another kind or package two cores, and
/// the sibling of the first.
fn candidates(machine: &Machine) -> Vec<usize> {
    let cpus = machine.cpus();
    let mut seen: Vec<(usize, usize)> = Vec::new();
    let mut choices = Vec::new();
    for llc in 0..machine.nr_llcs() {
        let of_llc: Vec<_> = cpus.iter().filter(|cpu| cpu.llc == llc).collect();
        let kind = (of_llc[0].capacity, of_llc[0].package.min(1));
        if seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let first = of_llc[0].core;
        let sibling = of_llc.iter().filter(|cpu| cpu.core == first).nth(1);
        let second = of_llc.iter().find(|cpu| cpu.core != first);
        choices
            .extend([Some(&of_llc[0]), sibling, second].into_iter().flatten().map(|cpu| cpu.cpu));
    }
    choices
}
