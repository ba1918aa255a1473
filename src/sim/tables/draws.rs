//! Mode `energy` on machines drawn at random around those that come with the simulator, as most of
//! their figures are estimates: beside the other modes, and in how many draws it is the best.

use std::thread;

use anyhow::Result;
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

/// Machines on which all systems take the same.
const NOTHING_TO_SAVE: [&str; 4] = ["many", "vm4", "vm8", "power7"];

/// Of one machine and load.
struct Case {
    /// By system that energy is compared with: the logarithm of energy's energy over its own, summed
    /// over the draws.
    over: Vec<f64>,
    near: u64,
    /// Of those, then of energy.
    overruns: Vec<u64>,
}

pub fn print() -> Result<()> {
    let others = others();
    let mut cells = vec!["machine".to_owned(), "load".into()];
    cells.extend(others.iter().map(|system| format!("over {system}")));
    cells.push(format!("within {NEAR} x the best mode"));
    cells.push(format!("overruns: {}, {}", others.join(", "), Mode::Energy));
    head(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut over, mut near, mut all) = (vec![0.0; others.len()], 0, 0);
    for (name, _) in powerpack_sim::MACHINES {
        if NOTHING_TO_SAVE.contains(name) {
            continue;
        }
        for (load, case) in LOADS.iter().zip(cases(&Machine::find(name)?, &others)?) {
            print_row(name, load, &case);
            over.iter_mut().zip(&case.over).for_each(|(sum, of)| *sum += of);
            near += case.near;
            all += DRAWS;
        }
    }
    let mean = |(system, sum): (&String, &f64)| format!("{} x {system}", mean(*sum, all));
    let means: Vec<String> = others.iter().zip(&over).map(mean).collect();
    println!(
        "\nIn the geometric mean energy takes {}; it is within {NEAR} x the best mode in {} of the draws.",
        means.join(", "),
        share(near, all)
    );
    notes(&[
        &format!(
            "Of each machine {DRAWS} are drawn: powers, idle states and costs between 2/3 of the \
             figures in its file and 1.5 times these."
        ),
        "Overruns are of all draws; what 3.9 saves where it has many of them it saves by being late.",
    ]);
    Ok(())
}

/// What energy is compared with, our modes first.
fn others() -> Vec<String> {
    let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Energy);
    modes.map(|mode| mode.name().to_owned()).chain([COMPARATOR.to_owned()]).collect()
}

/// The geometric mean of ratios whose logarithms have the sum `sum`.
fn mean(sum: f64, nr: u64) -> String {
    format!("{:.3}", (sum / nr as f64).exp())
}

fn share(part: u64, all: u64) -> String {
    format!("{:.0} %", part as f64 / all as f64 * 100.0)
}

fn print_row(machine: &str, load: &str, case: &Case) {
    let mut cells = vec![machine.to_owned(), load.to_owned()];
    cells.extend(case.over.iter().map(|sum| mean(*sum, DRAWS)));
    cells.push(share(case.near, DRAWS));
    cells.push(case.overruns.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    row(cells);
}

/// All loads on `machine`, a thread each.
fn cases(machine: &Machine, others: &[String]) -> Result<Vec<Case>> {
    thread::scope(|scope| {
        let measure = |load| scope.spawn(move || measure(machine, &Workload::find(load)?, others));
        let threads = LOADS.map(measure);
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn measure(machine: &Machine, load: &Workload, others: &[String]) -> Result<Case> {
    let nr = others.len();
    let mut case = Case { over: vec![0.0; nr], near: 0, overruns: vec![0; nr + 1] };
    for seed in 1..=DRAWS {
        let machine = machine.drawn(seed);
        let energy = simulate(&machine, load, seed, Mode::Energy.name())?;
        let taken_mj = energy.energy.total_mj();
        let mut best_mj = f64::INFINITY;
        for (nth, system) in others.iter().enumerate() {
            let outcome = simulate(&machine, load, seed, system)?;
            let mj = outcome.energy.total_mj();
            case.over[nth] += (taken_mj / mj).ln();
            case.overruns[nth] += outcome.overruns;
            if system != COMPARATOR {
                best_mj = best_mj.min(mj);
            }
        }
        case.near += u64::from(taken_mj <= NEAR * best_mj);
        case.overruns[nr] += energy.overruns;
    }
    Ok(case)
}

fn simulate(machine: &Machine, load: &Workload, seed: u64, system: &str) -> Result<Outcome> {
    let setup = Setup::new(machine, load, SECONDS, seed);
    let system: Named = format!("{system}+schedutil").parse()?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}
