//! What must hold on any machine, under any load, at any moment: the scheduler's
//! own C code, driven by random ones in the simulator.

use powerpack_sim::{
    Context, CpuMask, Kernel, Machine, Program, Scheduler, State, Step, System, TaskSpec,
};
use proptest::prelude::*;

use super::system::{bytes_of, for_sim, rank};
use crate::bpf::intf;
use crate::policy::{Mode, Policy};
use crate::topology::Ranks;

const MS: u64 = 1_000_000;
/// An idle CPU of the active set may leave a shared queue alone for so long: a
/// kick is under way, or the task has just come.
const LEFT_ALONE_MAX_MS: u32 = 2;

const WEIGHT_DEFAULT: u32 = intf::pp_limits_PP_WEIGHT_DEFAULT;
/// A slice ends at the first tick after 3 ms.
const SLICE_MAX_NS: u64 = 8 * MS;
/// Sleepers come back ahead of those who wait, and so may have a second turn before
/// them; an LLC that has no CPU of its own is served every eighth time
/// (PP_STEAL_FIRST_EVERY in dispatch.bpf.h).
const TURNS: u64 = 2;
const TURNS_OF_OTHER_LLCS: u64 = 8;
const CPU_QUEUE_BASE: usize = intf::pp_limits_PP_CPU_QUEUE_BASE as usize;

/// A task that runs and sleeps; `sleep_ns` 0 is a hog.
#[derive(Clone, Debug)]
struct Load {
    run_ns: u64,
    sleep_ns: u64,
    weight: u32,
    /// Which CPUs, as bits of a number; 0 is all.
    cpus: u32,
}

struct Runner {
    load: Load,
    runs: bool,
}

impl Program for Runner {
    fn next(&mut self, context: &mut Context) -> Step {
        self.runs = !self.runs || self.load.sleep_ns == 0;
        if self.runs {
            Step::Run(self.load.run_ns)
        } else {
            Step::SleepUntil(context.now_ns + self.load.sleep_ns)
        }
    }
}

fn machines() -> impl Strategy<Value = String> {
    let llc = (1..4usize, 1..3usize, prop_oneof![Just(1024usize), 300..1024usize]);
    prop::collection::vec(llc, 1..4).prop_map(|llcs| {
        let mut text = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n".to_owned();
        for (package, (cores, threads, capacity)) in llcs.into_iter().enumerate() {
            text += &format!(
                "[core.of{package}]\nthreads={threads}\ncapacity={capacity}\n\
                 smt_speed_pct={:?}\n[[llc]]\ncore='of{package}'\npackage={package}\n\
                 cores={cores}\n",
                &[100, 60][..threads]
            );
        }
        text
    })
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let sleep = prop_oneof![1 => Just(0), 4 => MS / 10..60 * MS];
    let cpus = prop_oneof![3 => Just(0u32), 1 => any::<u32>()];
    let weight = prop_oneof![30 => Just(WEIGHT_DEFAULT), 1 => 1..1000u32];
    let load = (MS / 50..20 * MS, sleep, weight, cpus);
    let load =
        load.prop_map(|(run_ns, sleep_ns, weight, cpus)| Load { run_ns, sleep_ns, weight, cpus });
    prop::collection::vec(load, 1..24)
}

fn allowed(cpus: u32, nr: usize) -> CpuMask {
    let mask = CpuMask::of((0..nr).filter(|cpu| cpus >> (cpu % 32) & 1 == 1));
    if mask.count() == 0 { CpuMask::of(0..nr) } else { mask }
}

/// Every task is where its state says, and none is in two places or nowhere.
fn check_tasks(kernel: &Kernel) {
    let of = |state| kernel.tasks.iter().filter(|task| task.state == state).count();
    assert_eq!(of(State::Queued), kernel.waiting(), "a task is lost");
    let busy = (0..kernel.cpus.len()).filter(|&cpu| kernel.is_running(cpu)).count();
    assert_eq!(of(State::Running), busy, "a task is lost");
}

/// Whether an idle CPU leaves what only it can run alone, or an active one what
/// its LLC shares.
fn leaves_alone(kernel: &Kernel, order: &[usize], llcs: usize) -> bool {
    let idle = |&&cpu: &&usize| kernel.is_idle(cpu);
    let own = |&cpu: &usize| kernel.waiting_on(cpu) + kernel.waiting_in(CPU_QUEUE_BASE + cpu) > 0;
    let shared = (0..llcs).any(|llc| kernel.waiting_in(llc) > 0);
    order.iter().filter(idle).any(own)
        || shared && order[..kernel.nr_active().unwrap()].iter().any(|cpu| kernel.is_idle(*cpu))
}

/// Takes a CPU offline, or brings it back.
fn plug(kernel: &mut Kernel, cpu: usize) {
    if !kernel.cpus[cpu].online {
        kernel.online(cpu);
    } else if kernel.cpus.iter().filter(|cpu| cpu.online).count() > 1 {
        kernel.offline(cpu);
    }
}

fn boot(machine: &Machine, ranks: &Ranks, mode: Mode) -> Kernel {
    let policy = bytes_of(Policy::new(mode, None, ranks).unwrap().to_bpf(ranks));
    let scheduler = Scheduler::Powerpack(for_sim(ranks), policy);
    Kernel::boot(machine, &System { scheduler, governor: None })
}

fn drive(machine: &str, loads: &[Load], switches: &[u64], plugs: &[(u64, usize)]) {
    let machine = Machine::parse(machine).unwrap();
    let ranks = rank(&machine).unwrap();
    let policy = |mode| bytes_of(Policy::new(mode, None, &ranks).unwrap().to_bpf(&ranks));
    let order: Vec<usize> = ranks.cpus().iter().map(|cpu| cpu.cpu).collect();
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    for load in loads {
        let program = Box::new(Runner { load: load.clone(), runs: false });
        let allowed = allowed(load.cpus, order.len());
        let task = TaskSpec { weight: load.weight, ..TaskSpec::new(program, allowed) };
        kernel.spawn(task, 0);
    }
    let mut modes = [Mode::Spread, Mode::Packing].into_iter().cycle();
    let (mut left_alone_ms, llcs) = (0, ranks.llcs().len());
    for ms in 1..=1000 {
        kernel.run_until(ms * MS);
        if switches.contains(&ms) {
            kernel.apply(&policy(modes.next().unwrap()), order.len() - 1);
        }
        for &(_, cpu) in plugs.iter().filter(|plug| plug.0 == ms) {
            plug(&mut kernel, cpu % order.len());
        }
        check_tasks(&kernel);
        let left_alone = leaves_alone(&kernel, &order, llcs);
        left_alone_ms = if left_alone { left_alone_ms + 1 } else { 0 };
        assert!(
            left_alone_ms <= LEFT_ALONE_MAX_MS,
            "{ms}: an idle CPU leaves tasks waiting: {}",
            describe(&kernel, &order, llcs)
        );
    }
    if loads.iter().all(|load| load.weight == WEIGHT_DEFAULT) {
        check_waits(&kernel, if llcs > 1 { TURNS_OF_OTHER_LLCS } else { TURNS });
    }
}

/// So many machines; `PROPTEST_CASES` asks for others.
const CASES: u32 = 2000;

fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if asked { default.cases } else { CASES }, ..default }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn no_task_is_lost_and_no_active_cpu_idles_over_work(
        machine in machines(), loads in loads(),
        switches in prop::collection::vec(1..1000u64, 0..40),
        plugs in prop::collection::vec((1..1000u64, 0..64usize), 0..20),
    ) {
        drive(&machine, &loads, &switches, &plugs);
    }
}

/// Among equals nobody waits for more than a slice of everyone else, `turns` times.
fn check_waits(kernel: &Kernel, turns: u64) {
    let bound_ns = (kernel.tasks.len() as u64 + 1) * SLICE_MAX_NS * turns;
    for (id, task) in kernel.tasks.iter().enumerate() {
        let waits = task.state == State::Queued;
        let waited_ns = if waits { kernel.now_ns() - task.queued_since_ns } else { 0 };
        let longest_ns = waited_ns.max(task.longest_wait_ns);
        assert!(longest_ns <= bound_ns, "task {id} waited for {longest_ns} of {bound_ns} ns");
    }
}

/// Who is idle, and what waits where.
fn describe(kernel: &Kernel, order: &[usize], llcs: usize) -> String {
    let cpus = order.iter().map(|&cpu| {
        let state = if !kernel.cpus[cpu].online {
            "offline"
        } else if kernel.is_idle(cpu) {
            "idle"
        } else {
            "busy"
        };
        let own = kernel.waiting_in(CPU_QUEUE_BASE + cpu);
        format!("CPU {cpu} {state} local {} own {own}", kernel.waiting_on(cpu))
    });
    let shared: Vec<usize> = (0..llcs).map(|llc| kernel.waiting_in(llc)).collect();
    let cpus: Vec<String> = cpus.collect();
    format!("{} active of {}; shared {shared:?}", kernel.nr_active().unwrap(), cpus.join(", "))
}

const ONE_CPU: &str =
    "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=1\n";

/// Time that hogs got (ms) on `machine`: each confined to the first `cpus` CPUs,
/// one begins at each of `begins_ms`, and all end at `end_ms`.
fn hogs(machine: &Machine, cpus: usize, begins_ms: &[u64], end_ms: u64) -> Vec<u64> {
    let ranks = rank(machine).unwrap();
    let mut kernel = boot(machine, &ranks, Mode::Packing);
    for begin_ms in begins_ms {
        let load = Load { run_ns: MS, sleep_ns: 0, weight: WEIGHT_DEFAULT, cpus: 0 };
        let program = Box::new(Runner { load, runs: false });
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
