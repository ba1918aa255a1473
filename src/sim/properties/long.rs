//! What must hold over a minute on any machine, at any weights: no task waits for long, and
//! tasks that compete for the same CPUs share them by their weights.

use powerpack_sim::{Kernel, Machine, State};
use proptest::prelude::*;

use super::world::{Load, WEIGHT_DEFAULT, boot, machines, plug, ranks_of, spawn};
use super::{Case, MS, config, policies};
use crate::bpf_intf as intf;
use crate::settings::policy::Mode;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
/// A turn that others wait for ends at the first tick after it (PP_SLICE_SHARED_NS).
const SLICE_NS: u64 = 3 * MS;
/// No task waits longer than this, however heavy the others are.
const WAIT_MAX_NS: u64 = 1000 * MS;

/// The kernel's weight of a nice value on the scale of `scx.weight`.
fn weight_of_nice(nice: i32) -> u32 {
    (100.0 / 1.25f64.powi(nice)).round().max(1.0) as u32
}

fn weights() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(WEIGHT_DEFAULT), 3 => (-20..=19i32).prop_map(weight_of_nice)]
}

fn cgroup_weights() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![4 => Just(None), 1 => prop_oneof![1..10u32, 10..1000u32, Just(10_000)].prop_map(Some)]
}

fn hz() -> impl Strategy<Value = u32> {
    prop_oneof![Just(100u32), Just(250), Just(1000)]
}

/// Everywhere, on some CPUs, on one.
fn cpus() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(0u32), 1 => any::<u32>(), 2 => (0..12u32).prop_map(|cpu| 1 << cpu)]
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let sleep = prop_oneof![1 => Just(0), 1 => MS..500 * MS];
    let workload = prop_oneof![8 => Just(0), 1 => 1..intf::pp_workload_PP_NR_WORKLOADS];
    let load = (MS / 20..20 * MS, sleep, weights(), cgroup_weights(), cpus(), workload);
    let load = load.prop_map(|(run_ns, sleep_ns, weight, cgroup_weight, cpus, workload)| Load {
        run_ns,
        sleep_ns,
        weight,
        cgroup_weight,
        cgroup: None,
        cpus,
        workload,
        pair: false,
    });
    (prop::collection::vec(load, 1..12), prop::bool::weighted(0.3)).prop_map(
        |(mut loads, equal)| {
            for load in loads.iter_mut().filter(|_| equal) {
                (load.weight, load.cgroup_weight) = (WEIGHT_DEFAULT, None);
            }
            loads
        },
    )
}

/// What a task's weight is, of 100, while all of its cgroup are runnable: its minimum.
fn weight_among(load: &Load, loads: &[Load]) -> f64 {
    let weight = f64::from(load.weight);
    if is_in_root(load) {
        return weight;
    }
    let is_sibling = |other: &&Load| {
        (other.cgroup_weight, other.workload) == (load.cgroup_weight, load.workload)
    };
    let all: u32 = loads.iter().filter(is_sibling).map(|other| other.weight).sum();
    f64::from(load.cgroup_weight.unwrap_or(WEIGHT_DEFAULT)) * weight / f64::from(all)
}

fn is_in_root(load: &Load) -> bool {
    load.cgroup_weight.is_none() && load.workload == 0
}

/// The minimum for any of them.
fn lightest_of(loads: &[Load]) -> f64 {
    loads.iter().map(|load| weight_among(load, loads)).fold(f64::INFINITY, f64::min)
}

/// Of a minute.
fn cases() -> impl Strategy<Value = Case> {
    let switches = prop::collection::vec(1..MINUTE_MS, 0..10);
    let plugs = prop::collection::vec((1..MINUTE_MS, 0..64usize), 0..6);
    (machines(hz()), loads(), switches, plugs).prop_map(|(machine, loads, switches, plugs)| Case {
        machine,
        loads,
        switches,
        plugs,
    })
}

/// Lets `ms` pass, with the switches and plugs of the case.
fn drive(case: &Case, ms: u64) -> Kernel {
    let machine = Machine::parse(&case.machine).unwrap();
    let ranks = ranks_of(&machine);
    let nr = ranks.cpus().len();
    let (policies, mut switched) = (policies(&ranks), 0);
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    case.loads.iter().for_each(|load| spawn(&mut kernel, load));
    let mut times: Vec<u64> = case.switches.clone();
    times.extend(case.plugs.iter().map(|plug| plug.0));
    times.sort_unstable();
    times.dedup();
    for time in times {
        kernel.run_until(time * MS);
        for _ in case.switches.iter().filter(|&&switch| switch == time) {
            kernel.apply(&policies[switched % policies.len()], nr - 1);
            switched += 1;
        }
        for &(_, cpu) in case.plugs.iter().filter(|plug| plug.0 == time) {
            plug(&mut kernel, cpu % nr);
        }
    }
    kernel.run_until(ms * MS);
    kernel
}

fn tick_ns(machine: &Machine) -> u64 {
    machine.costs().tick_ns
}

/// Of the task that has waited longest, or does: which, and for how long (ns).
fn longest_wait(kernel: &Kernel) -> (usize, u64) {
    let waits = kernel.tasks.iter().enumerate().map(|(id, task)| {
        let waits = task.state == State::Queued;
        let waited_ns = if waits { kernel.now_ns() - task.queued_since_ns } else { 0 };
        (id, waited_ns.max(task.longest_wait_ns))
    });
    waits.max_by_key(|&(_, waited_ns)| waited_ns).unwrap_or((0, 0))
}

/// An LLC that has no CPU of its own is served every eighth time (PP_STEAL_FIRST_EVERY),
/// and a task that comes back from sleep may have a second turn before those that wait.
fn turns_before(machine: &Machine) -> u64 {
    let llcs = machine.cpus().iter().map(|cpu| cpu.llc).max().unwrap_or(0) + 1;
    if llcs > 1 { 10 } else { 3 }
}

fn check_waits(case: &Case) {
    let machine = Machine::parse(&case.machine).unwrap();
    let kernel = drive(case, MINUTE_MS);
    let (turn_ns, competitors) = (SLICE_NS + tick_ns(&machine), case.loads.len() as u64);
    let (id, waited_ns) = longest_wait(&kernel);
    let turns_ns = (competitors + 1) * turn_ns * turns_before(&machine);
    let equal = case.loads.iter().all(|load| load.weight == WEIGHT_DEFAULT && is_in_root(load));
    let bound_ns = if equal { turns_ns } else { turns_ns.max(WAIT_MAX_NS) };
    assert!(waited_ns <= bound_ns, "task {id} waited for {waited_ns} of {bound_ns} ns");
    // Until its first tick or stop a task has the default weight.
    let lightest = lightest_of(&case.loads).min(100.0);
    let jump = kernel.longest_jump().unwrap();
    // Weights are whole numbers of 1/1024, and so is what a cgroup's load is made of.
    let jump_max = (turn_ns as f64 * 100.0 / (lightest - 2.0 / 1024.0)) as u64;
    assert!(jump <= jump_max + 1, "a clock has jumped by {jump} of {jump_max} ns");
}

proptest! {
    #![proptest_config(config(60))]
    #[test]
    fn nobody_waits_for_longer_than_a_second_in_a_minute(case in cases()) {
        check_waits(&case);
    }
}

/// Hogs that compete for the same CPUs, and what runs beside them.
#[derive(Clone, Debug)]
struct Rivals {
    hogs: Vec<Load>,
    /// What they share by their weights.
    case: Case,
}

/// Shares are measured over this time, once all has settled.
const SETTLED_MS: u64 = 5 * SECOND_MS;
const SHARES_MS: u64 = 10 * SECOND_MS;
/// A task that is to run less often than this is served earlier (PP_WAIT_MAX_NS), at the cost of
/// the others: the bound on waiting wins.
const PERIOD_MAX_MS: f64 = 700.0;

/// Whether the lightest of `loads` would have to wait for too long by its weight.
fn is_too_light(loads: &[Load], hz: u32) -> bool {
    let all: f64 = loads.iter().map(|load| weight_among(load, loads)).sum();
    let turn_ms = 3 + 1000 / hz;
    all * f64::from(turn_ms) > PERIOD_MAX_MS * lightest_of(loads)
}

fn hog(weight: u32, cpus: u32) -> Load {
    Load { weight, cpus, ..Load::hog() }
}

/// Hogs pinned to the first CPU of any machine, whatever else is busy there and elsewhere.
fn pinned() -> impl Strategy<Value = Rivals> {
    let weights = prop::collection::vec(10..=1000u32, 2..6);
    (hz(), weights, loads())
        .prop_flat_map(|(hz, weights, others)| {
            (machines(Just(hz)), Just(hz), Just(weights), Just(others))
        })
        .prop_map(|(machine, hz, weights, others)| {
            let hogs: Vec<Load> = weights.into_iter().map(|weight| hog(weight, 1)).collect();
            let mut loads = hogs.clone();
            for other in others {
                loads.push(other);
                if is_too_light(&loads, hz) {
                    loads.pop();
                }
            }
            (is_too_light(&loads, hz), hogs, machine, loads)
        })
        .prop_filter("the lightest would wait for too long", |(too_light, ..)| !too_light)
        .prop_map(|(_, hogs, machine, loads)| {
            let case = Case { machine, loads, switches: vec![], plugs: vec![] };
            Rivals { hogs, case }
        })
}

/// The maximum that a hog is worth of a CPU, by its weight. It gets more only if it never
/// waits for as much as a turn: at HZ=100 that is off by up to a tenth.
const WORTH_MAX_PCT: u32 = 80;

/// Hogs that may run on any of some equal CPUs, none of which is worth nearly one; `idle` CPUs
/// more are not for them.
fn hogs_on_several(idle: impl Strategy<Value = usize>) -> impl Strategy<Value = Rivals> {
    let weights = prop::collection::vec(10..=1000u32, 3..16);
    (hz(), 1..5usize, idle, weights)
        .prop_map(|(hz, cores, idle, weights)| {
            let machine = format!(
                "name='any'\nabout=''\n[costs]\nhz={hz}\nswitch_us=2\nwake_us=5\n\
                 [[llc]]\ncores={}\n",
                cores + idle
            );
            let cpus = if idle > 0 { (1 << cores) - 1 } else { 0 };
            let hogs: Vec<Load> = weights.into_iter().map(|weight| hog(weight, cpus)).collect();
            (hz, cores, machine, hogs)
        })
        .prop_filter("no shares by weight", |(hz, cores, _, hogs)| {
            let (sum, heaviest) =
                hogs.iter().fold((0, 0), |(sum, max), hog| (sum + hog.weight, max.max(hog.weight)));
            heaviest * *cores as u32 * 100 <= sum * WORTH_MAX_PCT && !is_too_light(hogs, *hz)
        })
        .prop_map(|(_, _, machine, hogs)| {
            let case = Case { machine, loads: hogs.clone(), switches: vec![], plugs: vec![] };
            Rivals { hogs, case }
        })
}

/// What each of the first `nr` tasks uses (ns) from when all has settled.
fn used(case: &Case, nr: usize) -> Vec<u64> {
    let machine = Machine::parse(&case.machine).unwrap();
    let mut kernel = boot(&machine, &ranks_of(&machine), Mode::Packing);
    case.loads.iter().for_each(|load| spawn(&mut kernel, load));
    kernel.run_until(SETTLED_MS * MS);
    let ran = |kernel: &Kernel| kernel.tasks[..nr].iter().map(|task| task.ran_ns()).collect();
    let before: Vec<u64> = ran(&kernel);
    kernel.run_until((SETTLED_MS + SHARES_MS) * MS);
    ran(&kernel).iter().zip(before).map(|(after, before)| after - before).collect()
}

fn check_shares(rivals: &Rivals) {
    let used = used(&rivals.case, rivals.hogs.len());
    let turn_ns = SLICE_NS + tick_ns(&Machine::parse(&rivals.case.machine).unwrap());
    let all: u64 = used.iter().sum();
    let weights: u32 = rivals.hogs.iter().map(|hog| hog.weight).sum();
    for (hog, &used_ns) in rivals.hogs.iter().zip(&used) {
        let fair_ns = all as f64 * f64::from(hog.weight) / f64::from(weights);
        let off_ns = (used_ns as f64 - fair_ns).abs();
        assert!(
            off_ns <= 0.05 * fair_ns + turn_ns as f64,
            "weight {} had {used_ns} of {fair_ns} ns, all {used:?}",
            hog.weight
        );
    }
}

proptest! {
    #![proptest_config(config(60))]
    #[test]
    fn the_pinned_share_their_cpu_by_their_weights(rivals in pinned()) {
        check_shares(&rivals);
    }

    #[test]
    fn the_free_share_all_cpus_by_their_weights(rivals in hogs_on_several(Just(0))) {
        check_shares(&rivals);
    }

    #[test]
    fn the_confined_share_their_cpus_by_their_weights(rivals in hogs_on_several(1..4usize)) {
        check_shares(&rivals);
    }
}
