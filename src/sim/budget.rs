//! No task waits for longer than the latency budget, whenever programs begin, and what people
//! look at comes in time.

use powerpack_load::schedstat::FILL_PCT;
use powerpack_sim::{Machine, Outcome, Setup};
use powerpack_workload::Workload;
use proptest::prelude::*;

use super::Named;
use super::properties::config;

/// `latency_budget_ns` of packing, and the longest tick of the machines here (us).
const BUDGET_US: f64 = 5000.0;
const TICK_US: f64 = 4000.0;
/// A CPU that does less than this has not been needed (percent).
const USED_PCT: f64 = 2.0;

fn run(machine: &str, workload: &Workload, system: &str) -> Outcome {
    let machine = Machine::find(machine).unwrap();
    let system = system.parse::<Named>().unwrap().on(&machine).unwrap();
    powerpack_sim::run(&Setup::new(&machine, workload, 20.0, 1), &system).unwrap().0
}

/// How many CPUs were used, and how many the load needs.
fn used_and_needed(outcome: &Outcome) -> (usize, usize) {
    let used = outcome.non_idle_pct.iter().filter(|&&pct| pct >= USED_PCT).count();
    let load_pct: f64 = outcome.non_idle_pct.iter().sum();
    (used, (load_pct / FILL_PCT).ceil() as usize)
}

#[test]
fn the_budget_holds_at_random_phases() {
    for load in [5, 10, 20, 40, 60, 80] {
        let workload = Workload::find(&format!("random-{load}")).unwrap();
        let packing = run("vm8", &workload, "packing");
        for task in &packing.tasks {
            assert!(task.max_delay_us <= BUDGET_US + TICK_US, "at {load} %: {packing:?}");
        }
        let (used, needed) = used_and_needed(&packing);
        assert!(used <= needed + 1, "{used} CPUs at {load} %, not {needed}: {packing:?}");
    }
}

/// The kinds of tasks of the desktop in its order.
const APPS: usize = 0;
const VIDEO: usize = 1;
const SYNC: usize = 3;
const FRAME_US: f64 = 16_667.0;

#[test]
fn frames_come_in_time_and_bursts_are_not_missed() {
    let desktop = Workload::find("desktop").unwrap();
    for machine in ["vm4", "vm8", "hybrid-laptop", "chromebook2"] {
        let (packing, before) = (run(machine, &desktop, "packing"), run(machine, &desktop, "3.9"));
        let p99_us = |of: &Outcome, kind: usize| of.tasks[kind].p99_us;
        assert!(
            p99_us(&packing, VIDEO) < FRAME_US || p99_us(&before, VIDEO) > FRAME_US,
            "frames on {machine}: {packing:?}"
        );
        assert!(
            p99_us(&packing, APPS) <= p99_us(&before, APPS) + BUDGET_US,
            "applications on {machine}: {packing:?}"
        );
        let bursts = |of: &Outcome| of.tasks[SYNC].activations as f64;
        assert!(bursts(&packing) >= bursts(&before) * 0.99, "bursts on {machine}: {packing:?}");
    }
}

/// The small cores of this machine are slow, and share a frequency with each other alone.
#[test]
fn a_large_task_is_in_time_on_a_slow_core_of_its_own() {
    let mixed = Workload::find("mixed").unwrap();
    let packing = run("chromebook2", &mixed, "packing");
    assert!(packing.overruns <= 5, "{packing:?}");
}

/// How many machines; `PROPTEST_CASES` overrides it.
const CASES: u32 = 100;
/// Longer runs are preempted by short ones after they have begun, which is no wait.
const RUN_MAX_US: u32 = 2000;

/// Periodic tasks at random phases that need `load_pct` of eight CPUs at most.
fn programs() -> impl Strategy<Value = String> {
    let task = (100..RUN_MAX_US, 8_u32..100, 1_usize..12);
    (prop::collection::vec(task, 1..6), 5_u32..80).prop_map(|(tasks, load_pct)| {
        let mut text = "name = \"programs\"\nabout = \"\"\nphases = \"random\"\n".to_owned();
        let mut left_pct = f64::from(load_pct * 8);
        for (nth, (run_us, period_ms, count)) in tasks.into_iter().enumerate() {
            let each_pct = f64::from(run_us) / f64::from(period_ms) / 10.0;
            let count = count.min((left_pct / each_pct) as usize);
            left_pct -= each_pct * count as f64;
            if count > 0 {
                let run_ms = f64::from(run_us) / 1000.0;
                text += &format!(
                    "[[task]]\nname = \"{nth}\"\ncount = {count}\n\
                     periodic = {{ run_ms = {run_ms}, period_ms = {period_ms} }}\n"
                );
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn the_budget_holds_for_random_programs(text in programs()) {
        prop_assume!(text.contains("[[task]]"));
        let workload = Workload::parse(&text).unwrap();
        let packing = run("vm8", &workload, "packing");
        for task in &packing.tasks {
            prop_assert!(task.max_delay_us <= BUDGET_US + TICK_US, "{packing:?}");
        }
    }
}
