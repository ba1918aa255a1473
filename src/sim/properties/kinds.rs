//! What must hold on machines of several kinds of cores: what computes without a pause gets the
//! largest ones, as far as they go, in every mode.

use powerpack_sim::{Kernel, Machine};
use proptest::prelude::*;

use super::world::{Load, all_on, boot, ranks_of, spawn};
use super::{MS, config};
use crate::settings::policy::Mode;

/// Kinds that are far enough apart to be kinds (a gap of an eighth), smallest first.
const CAPACITIES: [usize; 4] = [300, 500, 750, 1024];
/// Utilization is known by then, and what is to move has moved.
const SETTLED_MS: u64 = 500;
const MEASURED_MS: u64 = 500;
/// Of what the largest cores do: the rest goes into switches, and into moves at ticks.
const DONE: f64 = 0.97;

/// How many cores there are of each kind, and how many hogs.
fn cases() -> impl Strategy<Value = (Vec<usize>, usize)> {
    prop::collection::vec(0..4usize, CAPACITIES.len())
        .prop_filter("a machine has CPUs", |cores| cores.iter().sum::<usize>() > 0)
        .prop_flat_map(|cores| {
            let nr = cores.iter().sum::<usize>();
            (Just(cores), 1..=nr)
        })
}

/// All kinds share a cache, as on a phone.
fn machine(cores: &[usize]) -> Machine {
    let mut text = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n".to_owned();
    let kinds = CAPACITIES.iter().zip(cores).filter(|(_, cores)| **cores > 0);
    for (nth, (capacity, cores)) in kinds.enumerate() {
        text += &format!(
            "[core.of{capacity}]\ncapacity={capacity}\n[[llc]]\ncore='of{capacity}'\n\
             cores={cores}\njoined={}\n",
            nth > 0
        );
    }
    Machine::parse(&text).unwrap()
}

fn done(kernel: &Kernel) -> u64 {
    kernel.tasks.iter().map(|task| task.work_done).sum()
}

/// The work that `hogs` hogs do, of what they would on the largest cores.
fn share_done(cores: &[usize], hogs: usize, mode: Mode) -> f64 {
    let machine = machine(cores);
    let mut kernel = boot(&machine, &ranks_of(&machine), mode);
    (0..hogs).for_each(|_| spawn(&mut kernel, &Load::hog()));
    kernel.run_until(SETTLED_MS * MS);
    let before = done(&kernel);
    kernel.run_until((SETTLED_MS + MEASURED_MS) * MS);
    let mut capacities: Vec<usize> = machine.cpus().iter().map(|cpu| cpu.capacity).collect();
    capacities.sort_unstable_by(|a, b| b.cmp(a));
    let best: usize = capacities[..hogs].iter().sum();
    (done(&kernel) - before) as f64 / (best as f64 * (MEASURED_MS * MS) as f64)
}

/// Where SMT is switched off at run time a core of one thread is a whole one.
#[test]
fn hogs_run_on_the_largest_cores_without_their_second_threads() {
    for mode in Mode::ALL {
        let machine = Machine::find("hybrid-laptop").unwrap();
        let (cpus, ranks) = (machine.cpus(), ranks_of(&machine));
        let mut kernel = boot(&machine, &ranks, mode);
        let siblings = ranks.next_is_sibling();
        let firsts = ranks.cpus().iter().zip(&siblings).filter(|(_, is)| **is);
        let firsts: Vec<usize> = firsts.map(|(cpu, _)| cpu.cpu).collect();
        let seconds = ranks.cpus().iter().skip(1).zip(siblings).filter(|(_, is)| *is);
        seconds.for_each(|(cpu, _)| kernel.offline(cpu.cpu));
        (0..firsts.len()).for_each(|_| spawn(&mut kernel, &Load::hog()));
        kernel.run_until(SETTLED_MS * MS);
        let busy_ns = |kernel: &Kernel| -> u64 {
            firsts.iter().map(|&cpu| kernel.cpus[cpu].non_idle_ns).sum()
        };
        let before = busy_ns(&kernel);
        kernel.run_until((SETTLED_MS + MEASURED_MS) * MS);
        let share =
            (busy_ns(&kernel) - before) as f64 / (firsts.len() as u64 * MEASURED_MS * MS) as f64;
        assert!(firsts.len() > 1 && cpus.len() > firsts.len());
        assert!(share >= DONE, "large cores are {share:.2} busy in {mode}");
    }
}

/// A team of four whose runs are shorter than a tick, on four large cores that others wake on too:
/// who is left with a small core is fetched as soon as a large one is idle, not at the next tick.
#[test]
fn a_larger_core_that_goes_idle_fetches_whom_it_suits_better() {
    let team =
        "[[task]]\nfork_join = { workers = 4, run_ms = 3, leader_ms = 0.15, period_ms = 0 }\n";
    let clients = "[[task]]\ncount = 2\nclient = { run_ms = 3, think_ms = 3 }\n";
    let messages = "[[task]]\ncount = 2\nexchange = { tasks = 20, messages = 1, run_ms = 0.005 }\n";
    for (mode, others) in [("packing", clients), ("spread", clients), ("spread", messages)] {
        let mean_us = |system| all_on("chromebook2", system, &format!("{team}{others}"))[0].mean_us;
        let (ours, eevdf) = (mean_us(mode), mean_us("eevdf"));
        println!("a team in {mode}: {ours} us, under eevdf {eevdf}");
        assert!(ours <= 1.25 * eevdf, "a team in {mode} takes {ours} us, under eevdf {eevdf}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn hogs_run_on_the_largest_cores((cores, hogs) in cases()) {
        for mode in Mode::ALL {
            let share = share_done(&cores, hogs, mode);
            prop_assert!(share >= DONE, "{hogs} hogs in {mode}: {share:.3} of what is possible");
        }
    }
}
