//! What must hold on any machine, under any load, at any moment: the scheduler's
//! own C code, driven by random ones in the simulator.

mod checks;
mod world;

use powerpack_sim::{CpuMask, Machine, Sabotage, TaskSpec};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use crate::bpf::intf;
use crate::policy::{Mode, Pack, Policy};
use crate::sim::system::bytes_of;
use checks::Watch;
use world::{Load, Runner, WEIGHT_DEFAULT, boot, loads, machines, plug, ranks_of, spawn};

const MS: u64 = 1_000_000;
const WORKLOAD_SPREAD: u32 = intf::pp_workload_PP_WORKLOAD_SPREAD;
const WORKLOAD_EFFICIENT: u32 = intf::pp_workload_PP_WORKLOAD_EFFICIENT;

/// A machine and what happens to it in a second: mode switches, and CPUs that go or
/// come (ms).
#[derive(Clone, Debug)]
struct Case {
    machine: String,
    loads: Vec<Load>,
    switches: Vec<u64>,
    plugs: Vec<(u64, usize)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let switches = prop::collection::vec(1..1000u64, 0..40);
    let plugs = prop::collection::vec((1..1000u64, 0..64usize), 0..20);
    // A quarter of them is left in peace: some things hold only then.
    let peace = prop::bool::weighted(0.25);
    (machines(), loads(), switches, plugs, peace).prop_map(
        |(machine, loads, switches, plugs, peace)| {
            let (switches, plugs) = if peace { (vec![], vec![]) } else { (switches, plugs) };
            Case { machine, loads, switches, plugs }
        },
    )
}

fn drive(case: &Case, sabotage: Option<Sabotage>) {
    let machine = Machine::parse(&case.machine).unwrap();
    let ranks = ranks_of(&machine);
    let policies: Vec<_> = [
        Policy::of(Mode::Spread),
        Policy::of(Mode::Balance),
        Policy { pack: Pack::Small, ..Policy::of(Mode::Packing) },
        Policy::of(Mode::Packing),
    ]
    .map(|policy| bytes_of(policy.to_bpf(&ranks)))
    .into_iter()
    .collect();
    let order: Vec<usize> = ranks.cpus().iter().map(|cpu| cpu.cpu).collect();
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    if let Some(how) = sabotage {
        kernel.sabotage(how);
    }
    case.loads.iter().for_each(|load| spawn(&mut kernel, load));
    let mut policies = policies.iter().cycle();
    let everywhere = |load: &Load| load.cpus == 0 && load.workload != WORKLOAD_EFFICIENT;
    let can_move = case.loads.iter().all(everywhere);
    let packs_all = can_move
        && case.switches.is_empty()
        && ranks.kinds().iter().all(|&kind| kind == 0)
        && case.loads.iter().all(|load| load.workload != WORKLOAD_SPREAD);
    let mut watch = Watch::new(&ranks, can_move, packs_all);
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
    if case.loads.iter().all(|load| load.weight == WEIGHT_DEFAULT) {
        watch.check_waits(&kernel);
    }
}

/// So many machines; `PROPTEST_CASES` asks for others.
const CASES: u32 = 2000;
const SEED: u64 = 1;

/// Always the same ones, unless others are asked for.
fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return default;
    }
    ProptestConfig { cases: CASES, rng_seed: RngSeed::Fixed(SEED), ..default }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn no_task_is_lost_and_no_active_cpu_idles_over_work(case in cases()) {
        drive(&case, None);
    }
}

/// Else the test above tells nothing.
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
    kernel.tasks.iter().map(|task| task.ran_ns / MS).collect()
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
