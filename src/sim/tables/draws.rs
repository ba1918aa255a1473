//! Mode `energy` on machines drawn at random around those that come with the simulator, as most of
//! their figures are estimates: beside the other modes, and in how many draws it is the best.

use std::thread;

use anyhow::Result;
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;

use super::means::{geometric, kernel, mj_for_work};
use super::{head, notes, row};
use crate::settings::policy::Mode;
use crate::sim::system::Named;

const LOADS: [&str; 8] =
    ["light", "tiny", "mixed", "audio", "short", "desktop", "random-20", "web-audio"];
/// How many machines, each with another seed of its load.
const DRAWS: usize = 200;
/// As in the energy table, where loads that vary repeat their pattern (s).
const SECONDS: f64 = 5.0;
/// Of the best of the other modes' energy: within what two machines of a series differ by.
const NEAR: f64 = 1.02;
/// An earlier fair class, whose energy is shown too, beside the kernel's own of today.
const EARLIER: &str = "3.9";

/// Machines on which all systems take the same.
const NOTHING_TO_SAVE: [&str; 4] = ["many", "vm4", "vm8", "power7"];

/// Of one machine and load.
struct Case {
    /// By system that energy is compared with: the logarithm of energy's energy for the same work
    /// over its own, summed over the draws.
    over: Vec<f64>,
    near: usize,
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
    print_over_kernel(&others, &over, all);
    notes(&[
        &format!(
            "Of each machine {DRAWS} are drawn: powers, idle states and costs between 2/3 of the \
             figures in its file and 1.5 times these."
        ),
        "Energy is for the same work: that of activations which are left out is not saved. Overruns are of all \
         draws.",
        "eas is eevdf where a kernel does not place by energy: one kind of cores, or threads.",
    ]);
    Ok(())
}

/// What energy is compared with, our modes first.
fn others() -> Vec<String> {
    let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Energy);
    modes.map(|mode| mode.name().to_owned()).chain([EARLIER.to_owned()]).chain(kernel()).collect()
}

/// Our modes over the kernel's own class: how energy stands to both says how they stand to each
/// other.
fn print_over_kernel(others: &[String], over: &[f64], all: usize) {
    for (kernel, of_kernel) in others.iter().zip(over).filter(|(name, _)| is_kernel(name)) {
        let ours = others.iter().zip(over).filter(|(name, _)| is_ours(name));
        let ours = ours.map(|(name, of_ours)| (name.as_str(), of_kernel - of_ours));
        let ours = ours.chain([(Mode::Energy.name(), *of_kernel)]);
        let ratios = ours.map(|(name, sum)| format!("{name} {}", mean(sum, all)));
        println!("\nOver {kernel}: {}.", ratios.collect::<Vec<_>>().join(", "));
    }
}

fn is_kernel(name: &str) -> bool {
    kernel().any(|kernel| kernel == name)
}

fn is_ours(name: &str) -> bool {
    name != EARLIER && !is_kernel(name)
}

fn mean(sum: f64, nr: usize) -> String {
    format!("{:.3}", geometric(sum, nr))
}

fn share(part: usize, all: usize) -> String {
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
    for seed in 1..=DRAWS as u64 {
        let machine = machine.drawn(seed);
        let energy = simulate(&machine, load, seed, Mode::Energy.name())?;
        let taken_mj = mj_for_work(&energy);
        let mut best_mj = f64::INFINITY;
        for (nth, system) in others.iter().enumerate() {
            let outcome = simulate(&machine, load, seed, system)?;
            let mj = mj_for_work(&outcome);
            case.over[nth] += (taken_mj / mj).ln();
            case.overruns[nth] += outcome.overruns;
            if is_ours(system) {
                best_mj = best_mj.min(mj);
            }
        }
        case.near += usize::from(taken_mj <= NEAR * best_mj);
        case.overruns[nr] += energy.overruns;
    }
    Ok(case)
}

fn simulate(machine: &Machine, load: &Workload, seed: u64, system: &str) -> Result<Outcome> {
    let setup = Setup::new(machine, load, SECONDS, seed);
    let system: Named = format!("{system}+schedutil").parse()?;
    Ok(powerpack_sim::run(&setup, &system.on(machine)?)?.0)
}
