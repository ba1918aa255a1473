//! What must hold on any machine, under any load, at any moment: the scheduler's
//! own C code, driven by random ones in the simulator.

mod beside_eevdf;
mod bursts;
mod checks;
mod confined;
mod eevdf;
mod fair_shares;
mod hotplug;
mod kinds;
mod limits;
mod long;
mod shares;
mod waits;
mod weights;
mod world;

use powerpack_sim::{CpuMask, Machine, PolicyBytes, Sabotage, TaskSpec};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use crate::bpf_intf as intf;
use crate::machine::topology::Ranks;
use crate::settings::policy::{Mode, Pack, Policy};
use crate::sim::system::bytes_of;
use checks::Watch;
use world::{
    Load, Runner, WEIGHT_DEFAULT, boot, loads, loads_of, machines, machines_of, plug, ranks_of,
    spawn,
};

const MS: u64 = 1_000_000;
const WORKLOAD_SPREAD: u32 = intf::pp_workload_PP_WORKLOAD_SPREAD;
const WORKLOAD_EFFICIENT: u32 = intf::pp_workload_PP_WORKLOAD_EFFICIENT;

/// A machine and what happens to it.
#[derive(Clone, Debug)]
struct Case {
    machine: String,
    loads: Vec<Load>,
    /// When the policy is switched (ms).
    switches: Vec<u64>,
    /// When which CPU goes or comes (ms).
    plugs: Vec<(u64, usize)>,
}

/// Of a second.
fn cases() -> impl Strategy<Value = Case> {
    cases_of(machines(Just(250)), loads())
}

/// On machines that are sized in several steps, and where not all CPUs are looked at one by one.
fn large_cases() -> impl Strategy<Value = Case> {
    cases_of(machines_of(Just(250), 2..24, 2..9), loads_of(8..200))
}

fn cases_of(
    machines: impl Strategy<Value = String>,
    loads: impl Strategy<Value = Vec<Load>>,
) -> impl Strategy<Value = Case> {
    let switches = prop::collection::vec(1..1000u64, 0..40);
    let plugs = prop::collection::vec((1..1000u64, 0..64usize), 0..20);
    // A quarter of them is left in peace: some things hold only then.
    let peace = prop::bool::weighted(0.25);
    (machines, loads, switches, plugs, peace).prop_map(
        |(machine, loads, switches, plugs, peace)| {
            let (switches, plugs) = if peace { (vec![], vec![]) } else { (switches, plugs) };
            Case { machine, loads, switches, plugs }
        },
    )
}

/// Those that are switched between, in turn.
fn policies(ranks: &Ranks) -> [PolicyBytes; 5] {
    [
        Policy::of(Mode::Spread),
        Policy::of(Mode::Balance),
        Policy { pack: Pack::Small, ..Policy::of(Mode::Packing) },
        Policy::of(Mode::Packing),
        Policy::of(Mode::Energy),
    ]
    .map(|policy| bytes_of(policy.to_bpf(ranks)))
}

fn drive(case: &Case, sabotage: Option<Sabotage>) {
    let machine = Machine::parse(&case.machine).unwrap();
    let ranks = ranks_of(&machine);
    let policies = policies(&ranks);
    let order: Vec<usize> = ranks.cpus().iter().map(|cpu| cpu.cpu).collect();
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    if let Some(how) = sabotage {
        kernel.sabotage(how);
    }
    case.loads.iter().for_each(|load| spawn(&mut kernel, load));
    let mut policies = policies.iter().cycle();
    let everywhere = |load: &Load| load.cpus == 0 && load.workload != WORKLOAD_EFFICIENT;
    let packs_all = case.loads.iter().all(everywhere)
        && case.switches.is_empty()
        && ranks.kinds().iter().all(|&kind| kind == 0)
        && case.loads.iter().all(|load| load.workload != WORKLOAD_SPREAD);
    let mut watch = Watch::new(&ranks, packs_all);
    for ms in 1..=1000 {
        kernel.run_until(ms * MS);
        for _ in case.switches.iter().filter(|&&switch| switch == ms) {
            kernel.apply(policies.next().unwrap(), order.len() - 1);
            watch.disturbed();
        }
        for &(_, cpu) in case.plugs.iter().filter(|plug| plug.0 == ms) {
            plug(&mut kernel, cpu % order.len());
            watch.disturbed();
        }
        watch.look(&kernel);
    }
    // Those of a workload are in a cgroup, whose weight they share.
    if case.loads.iter().all(|load| load.weight == WEIGHT_DEFAULT && load.workload == 0) {
        watch.check_waits(&kernel);
    }
}

/// How many machines; `PROPTEST_CASES` overrides it.
const CASES: u32 = 2000;
/// How many large ones, of which each takes as long as ten.
const LARGE_CASES: u32 = 400;
const SEED: u64 = 1;
/// A case that fails is made smaller for some minutes at most.
const SHRINKS_MAX: u32 = 500;

/// Always the same `cases` ones, unless `PROPTEST_CASES` is set.
pub(super) fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: SHRINKS_MAX,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return default;
    }
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(SEED), ..default }
}

proptest! {
    #![proptest_config(config(CASES))]
    #[test]
    fn no_task_is_lost_and_no_active_cpu_idles_over_work(case in cases()) {
        drive(&case, None);
    }
}

proptest! {
    #![proptest_config(config(LARGE_CASES))]
    #[test]
    fn nor_is_any_on_a_large_machine(case in large_cases()) {
        drive(&case, None);
    }
}

/// Else the tests above prove nothing.
#[test]
fn a_scheduler_made_bad_on_purpose_is_found_out() {
    for how in [Sabotage::CountTasks, Sabotage::NoSpill, Sabotage::LostKick] {
        let config = Config {
            cases: CASES,
            max_shrink_iters: 0,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(SEED),
            ..Config::default()
        };
        let mut runner = TestRunner::new(config);
        let found = runner.run(&cases(), |case| {
            drive(&case, Some(how));
            Ok(())
        });
        match found {
            Err(TestError::Fail(reason, _)) => println!("{how:?} is noticed: {reason}"),
            other => panic!("{how:?} is not noticed: {other:?}"),
        }
    }
}

#[test]
fn no_task_is_lost_over_a_thousand_switches() {
    let hogs = (0..3).map(|_| Load::hog());
    let sleepers = (1..20).map(|nth| Load { sleep_ns: nth * MS, ..Load::hog() });
    let pair = Load { pair: true, run_ns: MS / 50, ..Load::hog() };
    let case = Case {
        machine:
            "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=4\n"
                .into(),
        loads: hogs.chain(sleepers).chain([pair]).collect(),
        switches: (1..=1000).collect(),
        plugs: vec![],
    };
    drive(&case, None);
}

/// As a virtual machine may say that each of its CPUs has a last-level cache.
#[test]
fn caches_may_be_as_many_as_cpus() {
    let costs = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n";
    let sleepers = (0..150).map(|nth| Load { run_ns: MS, sleep_ns: nth % 7 * MS, ..Load::hog() });
    let hogs = (0..20).map(|_| Load::hog());
    let case = Case {
        machine: costs.to_owned() + &"[[llc]]\ncores=1\n".repeat(130),
        loads: sleepers.chain(hogs).collect(),
        switches: (1..=20).collect(),
        plugs: vec![(3, 100), (10, 100), (12, 129)],
    };
    drive(&case, None);
}

const ONE_CPU: &str =
    "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=1\n";

/// Time that hogs got (ms) on `machine`: each confined to the first `cpus` CPUs,
/// one begins at each of `begins_ms`, and all end at `end_ms`.
fn hogs(machine: &Machine, cpus: usize, begins_ms: &[u64], end_ms: u64) -> Vec<u64> {
    let mut kernel = boot(machine, &ranks_of(machine), Mode::Packing);
    for begin_ms in begins_ms {
        let program = Box::new(Runner { load: Load::hog(), runs: false });
        kernel.spawn(TaskSpec::new(program, CpuMask::of(0..cpus)), begin_ms * MS);
    }
    kernel.run_until(end_ms * MS);
    kernel.tasks.iter().map(|task| task.ran_ns() / MS).collect()
}

#[test]
fn who_was_alone_need_not_make_up_for_it() {
    let ran = hogs(&Machine::parse(ONE_CPU).unwrap(), 1, &[0, 5000], 7000);
    assert!((5950..6050).contains(&ran[0]) && (950..1050).contains(&ran[1]), "{ran:?}");
}

#[test]
fn the_confined_share_their_cpus() {
    let ran = hogs(&Machine::find("vm4").unwrap(), 2, &[0; 6], 3000);
    assert!(ran.iter().all(|ran| (900..1100).contains(ran)), "{ran:?}");
}

/// On a machine of which several cores are efficient, under a ceiling of one.
#[test]
fn efficient_hogs_stay_below_the_ceiling() {
    let machine = Machine::find("hybrid-laptop").unwrap();
    let ranks = ranks_of(&machine);
    assert!(ranks.nr_efficient() > 1, "else there is nothing to see");
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    let one = Policy { max_cores: Some(1), ..Policy::of(Mode::Packing) }.to_bpf(&ranks);
    kernel.apply(&bytes_of(one), 0);
    for _ in 0..3 {
        spawn(&mut kernel, &Load { workload: WORKLOAD_EFFICIENT, ..Load::hog() });
    }
    kernel.run_until(2000 * MS);
    let busy = kernel.cpus.iter().filter(|cpu| cpu.non_idle_ns > 100 * MS).count();
    assert_eq!(busy, 1, "CPUs in use");
}
