//! What must hold of the model of the kernel's own class, with energy-aware placement and without:
//! else what ours is compared with is not what its users run.

use powerpack_sim::{Kernel, Machine, Scheduler, State, System};
use proptest::prelude::*;

use super::checks::check_tasks;
use super::world::{Load, WEIGHT_DEFAULT, loads, machines, spawn};
use super::{MS, ONE_CPU, config};

/// A request of 2.8 ms on eight CPUs ends at a tick of 4 ms, or at the one after it.
const TURN_NS: u64 = 8 * MS;
/// Sleepers come back with what they are owed, and so before those that wait: as many turns.
const TURNS: u64 = 4;
/// A CPU that runs several tasks wakes an idle one at each tick, which takes one of them; what has
/// just run, or is too much at a time, is moved after some failures. With energy in mind none is
/// taken before a CPU is overutilized, which is noticed when its average has risen.
const BESIDE_IDLE_MAX_NS: u64 = 250 * MS;
/// Nice -5 beside nice 0 (sched_prio_to_weight: 3121 to 1024), as `scx.weight` has it.
const WEIGHT_NICE_5: u32 = 305;

fn boot(machine: &Machine, energy_aware: bool) -> Kernel {
    let scheduler = Scheduler::Eevdf { energy_aware };
    Kernel::boot(machine, &System { scheduler, governor: None })
}

fn longest_wait_ns(kernel: &Kernel, id: usize) -> u64 {
    let task = &kernel.tasks[id];
    let waits = task.state == State::Queued;
    let waited_ns = if waits { kernel.now_ns() - task.queued_since_ns } else { 0 };
    waited_ns.max(task.longest_wait_ns)
}

/// Runs it for a second, and looks each millisecond.
fn drive(machine: &str, loads: &[Load], energy_aware: bool) {
    let machine = Machine::parse(machine).unwrap();
    let mut kernel = boot(&machine, energy_aware);
    let nr = kernel.cpus.len();
    loads.iter().for_each(|load| spawn(&mut kernel, load));
    let equal = loads.iter().all(|load| load.weight == WEIGHT_DEFAULT);
    let free = loads.iter().all(|load| load.cpus == 0);
    for ms in 1..=1000 {
        kernel.run_until(ms * MS);
        check_tasks(&kernel);
        let left_alone = |cpu: usize| kernel.is_idle(cpu) && kernel.waiting_on(cpu) > 0;
        assert!(!(0..nr).any(left_alone), "a CPU idles over its queue");
        if !equal || !free || !(0..nr).any(|cpu| kernel.is_idle(cpu)) {
            continue;
        }
        for (id, task) in kernel.tasks.iter().enumerate() {
            let waited_ns = kernel.now_ns() - task.queued_since_ns;
            let waits = task.state == State::Queued && waited_ns > BESIDE_IDLE_MAX_NS;
            assert!(!waits, "task {id} waits for {waited_ns} ns although a CPU is idle");
        }
    }
    if !equal {
        return;
    }
    let bound_ns = (kernel.tasks.len() as u64 + 1) * TURN_NS * TURNS;
    for id in 0..kernel.tasks.len() {
        let waited_ns = longest_wait_ns(&kernel, id);
        assert!(waited_ns <= bound_ns, "task {id} waited for {waited_ns} of {bound_ns} ns");
    }
}

/// How many machines, each with energy-aware placement and without.
const CASES: u32 = 500;

proptest! {
    #![proptest_config(config(CASES))]
    #[test]
    fn the_kernels_own_class_loses_no_task(
        machine in machines(Just(250)),
        loads in loads(),
        energy_aware in any::<bool>(),
    ) {
        drive(&machine, &loads, energy_aware);
    }

    #[test]
    fn nor_does_it_with_energy_in_mind(loads in loads(), machine in 0..2_usize) {
        let name = ["chromebook2", "phone"][machine];
        let (_, text) = powerpack_sim::MACHINES.iter().find(|(known, _)| *known == name).unwrap();
        drive(text, &loads, true);
    }
}

/// Time that hogs of these weights get on one CPU in ten seconds (ms).
fn shared(weights: &[u32]) -> Vec<u64> {
    let mut kernel = boot(&Machine::parse(ONE_CPU).unwrap(), false);
    weights.iter().for_each(|&weight| spawn(&mut kernel, &Load { weight, ..Load::hog() }));
    kernel.run_until(10_000 * MS);
    kernel.tasks.iter().map(|task| task.ran_ns() / MS).collect()
}

#[test]
fn two_nice_levels_share_a_cpu_by_weight() {
    let ran = shared(&[WEIGHT_NICE_5, WEIGHT_DEFAULT]);
    let share = ran[0] as f64 / ran[1] as f64;
    assert!((share / 3.05 - 1.0).abs() < 0.02, "{ran:?}");
    assert!(shared(&[100; 4]).iter().all(|ms| (2480..2520).contains(ms)));
}

#[test]
fn a_sleeper_gets_its_share_beside_a_hog_and_not_more() {
    let mut kernel = boot(&Machine::parse(ONE_CPU).unwrap(), false);
    spawn(&mut kernel, &Load::hog());
    // Half of the time if it never waited, and so a little less.
    spawn(&mut kernel, &Load { run_ns: 5 * MS, sleep_ns: 5 * MS, ..Load::hog() });
    kernel.run_until(10_000 * MS);
    let ran: Vec<u64> = kernel.tasks.iter().map(|task| task.ran_ns() / MS).collect();
    assert!((3000..5050).contains(&ran[1]), "{ran:?}");
}

/// Time that the large cores of chromebook2, CPUs 4 to 7, ran in a second (ms), after half a second
/// of these loads.
fn on_large_ms(energy_aware: bool, loads: &[Load]) -> u64 {
    let mut kernel = boot(&Machine::find("chromebook2").unwrap(), energy_aware);
    loads.iter().for_each(|load| spawn(&mut kernel, load));
    kernel.run_until(500 * MS);
    let busy = |kernel: &Kernel| kernel.cpus[4..].iter().map(|cpu| cpu.non_idle_ns).sum::<u64>();
    let before = busy(&kernel);
    kernel.run_until(1500 * MS);
    (busy(&kernel) - before) / MS
}

#[test]
fn what_is_too_large_for_a_small_core_leaves_it() {
    for energy_aware in [false, true] {
        assert!(on_large_ms(energy_aware, &[Load::hog()]) > 990, "{energy_aware}");
    }
}

#[test]
fn with_energy_in_mind_a_small_task_leaves_a_large_core() {
    // It begins there, as the small cores are busy, for a while.
    let bound =
        |cpu: u32| Load { cpus: 1 << cpu, run_ns: 20 * MS, sleep_ns: 9000 * MS, ..Load::hog() };
    let small = Load { run_ns: MS / 2, sleep_ns: 19 * MS, ..Load::hog() };
    let loads = [bound(0), bound(1), bound(2), bound(3), small];
    assert!(on_large_ms(false, &loads) > 10);
    assert_eq!(on_large_ms(true, &loads), 0);
}

/// On two CPUs, of which the second one runs out of work while a task waits for the first one.
#[test]
fn a_cpu_that_has_run_out_of_work_takes_what_waits() {
    let two = ONE_CPU.replace("cores=1", "cores=2");
    let mut kernel = boot(&Machine::parse(&two).unwrap(), false);
    spawn(&mut kernel, &Load { cpus: 0b01, ..Load::hog() });
    // Not at a tick, and long after the waiting one has last run.
    let ends_ns = 9 * MS + MS / 4;
    spawn(&mut kernel, &Load { cpus: 0b10, run_ns: ends_ns, sleep_ns: 9000 * MS, ..Load::hog() });
    spawn(&mut kernel, &Load::hog());
    kernel.run_until(9 * MS);
    assert_eq!((kernel.waiting_on(0), kernel.tasks[2].state), (1, State::Queued));
    kernel.run_until(10 * MS);
    assert_eq!((kernel.waiting_on(0), kernel.tasks[2].cpu()), (0, 1));
}
