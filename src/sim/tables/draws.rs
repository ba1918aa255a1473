//! Mode `energy` on machines drawn at random around those that come with the simulator, as most of
//! their figures are estimates: beside the other modes, and in how many draws it is the best.

use std::thread;

use anyhow::{Context, Result};
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;

use super::{head, notes, row};
use crate::settings::policy::Mode;
use crate::sim::system::Named;

const LOADS: [&str; 8] =
    ["light", "tiny", "mixed", "audio", "short", "desktop", "random-20", "web-audio"];
/// How many machines, each with another seed of its load.
const DRAWS: u64 = 200;
/// As in the energy table, where loads that vary repeat their pattern (s).
const SECONDS: f64 = 5.0;
/// Of the best of the other modes' energy: within what two machines of a series differ by.
const NEAR: f64 = 1.02;
/// The fair class, whose energy is shown too; it is late more often.
const COMPARATOR: &str = "3.9";

/// Without idle states or operating points all systems are the same.
const NOTHING_TO_SAVE: [&str; 4] = ["many", "vm4", "vm8", "power7"];

/// Of one machine and load.
struct Case {
    /// By system: the logarithm of energy's energy over its own, summed over the draws.
    over: Vec<f64>,
    near: u64,
    overruns: Vec<u64>,
}

pub fn print() -> Result<()> {
    let systems = systems();
    let mut cells = vec!["machine".to_owned(), "load".into()];
    let others = || systems.iter().filter(|system| *system != Mode::Energy.name());
    cells.extend(others().map(|system| format!("over {system}")));
    cells.push(format!("within {NEAR} x the best mode"));
    cells.push(format!("overruns: {}", systems.join(", ")));
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut over, mut near, mut all) = (vec![0.0; systems.len()], 0, 0);
    for (name, _) in
        powerpack_sim::MACHINES.iter().filter(|(name, _)| !NOTHING_TO_SAVE.contains(name))
    {
        let machine = Machine::find(name)?;
        for (load, case) in LOADS.iter().zip(cases(&machine, &systems)?) {
            print_row(name, load, &systems, &case);
            over.iter_mut().zip(&case.over).for_each(|(sum, of)| *sum += of);
            near += case.near;
            all += DRAWS;
        }
    }
    let means = systems.iter().zip(&over).filter(|(system, _)| *system != Mode::Energy.name());
    let means: Vec<String> =
        means.map(|(system, sum)| format!("{:.3} x {system}", (sum / all as f64).exp())).collect();
    println!(
        "\nIn the geometric mean energy takes {}; it is within {NEAR} x the best mode in {:.0} % of the draws.",
        means.join(", "),
        near as f64 / all as f64 * 100.0
    );
    notes(&[
        "Of each machine 200 are drawn: powers, idle states and costs between 2/3 of the figures in its \
         file and 1.5 times these.",
        "Overruns are of all draws; what 3.9 saves where it has many of them it saves by being late.",
    ]);
    Ok(())
}

/// Our modes, energy last of them, and what they are compared with.
fn systems() -> Vec<String> {
    let modes = Mode::ALL.map(|mode| mode.name().to_owned());
    modes.into_iter().chain([COMPARATOR.to_owned()]).collect()
}

fn print_row(machine: &str, load: &str, systems: &[String], case: &Case) {
    let mut cells = vec![machine.to_owned(), load.to_owned()];
    let others = systems.iter().zip(&case.over).filter(|(name, _)| *name != Mode::Energy.name());
    cells.extend(others.map(|(_, sum)| format!("{:.3}", (sum / DRAWS as f64).exp())));
    cells.push(format!("{:.0} %", case.near as f64 / DRAWS as f64 * 100.0));
    cells.push(case.overruns.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    row(cells);
}

/// All loads on `machine`, a thread each.
fn cases(machine: &Machine, systems: &[String]) -> Result<Vec<Case>> {
    thread::scope(|scope| {
        let threads = LOADS
            .map(|load| scope.spawn(move || measure(machine, &Workload::find(load)?, systems)));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn measure(machine: &Machine, load: &Workload, systems: &[String]) -> Result<Case> {
    let none = || vec![0; systems.len()];
    let mut case = Case { over: vec![0.0; systems.len()], near: 0, overruns: none() };
    let energy = systems.iter().position(|system| system == Mode::Energy.name());
    let energy = energy.context("no mode energy")?;
    for seed in 1..=DRAWS {
        let machine = machine.drawn(seed);
        let outcomes = systems
            .iter()
            .map(|system| simulate(&machine, load, seed, system))
            .collect::<Result<Vec<Outcome>>>()?;
        let taken: Vec<f64> = outcomes.iter().map(|outcome| outcome.energy.total_mj()).collect();
        let best = taken[..energy].iter().copied().fold(f64::INFINITY, f64::min);
        case.near += u64::from(taken[energy] <= NEAR * best);
        for (nth, outcome) in outcomes.iter().enumerate() {
            // Not all machine files say what things need.
            let ratio = if taken[nth] > 0.0 { taken[energy] / taken[nth] } else { 1.0 };
            case.over[nth] += ratio.ln();
            case.overruns[nth] += outcome.overruns;
        }
    }
    Ok(case)
}

fn simulate(machine: &Machine, load: &Workload, seed: u64, system: &str) -> Result<Outcome> {
    let setup = Setup::new(machine, load, SECONDS, seed);
    let system: Named = format!("{system}+schedutil").parse()?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}
