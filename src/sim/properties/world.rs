//! Random machines and loads.

use std::ops::Range;

use powerpack_sim::{
    Context, CpuMask, Home, Kernel, Machine, Program, Setup, Step, System, TaskOutcome, TaskSpec,
};
use powerpack_workload::Workload;
use proptest::prelude::*;

use super::MS;
use crate::bpf_intf as intf;
use crate::machine::topology::Ranks;
use crate::settings::policy::{Mode, Policy};
use crate::sim::Named;
use crate::sim::system::{powerpack, rank};

pub const WEIGHT_DEFAULT: u32 = intf::pp_limits_PP_WEIGHT_DEFAULT;

pub const WORKLOAD_PACK: u32 = intf::pp_workload_PP_WORKLOAD_PACK;
/// The names of tasks that the table says are to be packed, or to stay on the efficient CPUs.
pub const PACKED: &str = "packed";
pub const EFFICIENT: &str = "efficient";

/// A task that runs and sleeps; `sleep_ns` 0 is a hog.
#[derive(Clone, Debug)]
pub struct Load {
    pub run_ns: u64,
    pub sleep_ns: u64,
    pub weight: u32,
    /// `cpu.weight` of its cgroup, which is the same for all of that weight and workload.
    pub cgroup_weight: Option<u32>,
    /// A cgroup of [`Kernel::make_cgroup`] instead.
    pub cgroup: Option<usize>,
    /// Which CPUs, as bits of a number; 0 is all.
    pub cpus: u32,
    /// What the table says of its cgroup (`enum pp_workload`).
    pub workload: u32,
    /// There are two of it, which wake each other and sleep.
    pub pair: bool,
}

impl Load {
    /// One that never sleeps, of nice 0, anywhere.
    pub fn hog() -> Self {
        Load {
            run_ns: MS,
            sleep_ns: 0,
            weight: WEIGHT_DEFAULT,
            cgroup_weight: None,
            cgroup: None,
            cpus: 0,
            workload: 0,
            pair: false,
        }
    }
}

pub struct Runner {
    pub load: Load,
    pub runs: bool,
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

/// One of two that hand a turn to each other.
struct Partner {
    run_ns: u64,
    other: usize,
    has_turn: bool,
    ran: bool,
}

impl Program for Partner {
    fn next(&mut self, context: &mut Context) -> Step {
        if std::mem::take(&mut self.ran) {
            context.wake(self.other, true);
            self.has_turn = false;
        }
        if !std::mem::replace(&mut self.has_turn, true) {
            return Step::Block;
        }
        self.ran = true;
        Step::Run(self.run_ns)
    }
}

/// Of `hz` ticks a second.
pub fn machines(hz: impl Strategy<Value = u32>) -> impl Strategy<Value = String> {
    machines_of(hz, 1..4, 1..4)
}

/// With as many LLCs, of as many cores each.
pub fn machines_of(
    hz: impl Strategy<Value = u32>,
    llcs: Range<usize>,
    cores: Range<usize>,
) -> impl Strategy<Value = String> {
    let llc = (cores, 1..3usize, prop_oneof![Just(1024usize), 300..1024usize]);
    let llcs = prop::collection::vec(llc, llcs);
    (hz, llcs, prop::bool::weighted(0.3)).prop_map(|(hz, llcs, numa)| {
        let mut text = format!("name='any'\nabout=''\n[costs]\nhz={hz}\nswitch_us=2\nwake_us=5\n");
        for (package, (cores, threads, capacity)) in llcs.into_iter().enumerate() {
            text += &format!(
                "[core.of{package}]\nthreads={threads}\ncapacity={capacity}\n\
                 smt_speed_pct={:?}\n[[llc]]\ncore='of{package}'\npackage={package}\n\
                 cores={cores}\nnode={}\n",
                &[100, 60][..threads],
                if numa { package } else { 0 }
            );
        }
        text
    })
}

pub fn loads() -> impl Strategy<Value = Vec<Load>> {
    loads_of(1..24)
}

/// As many. Of a quarter of the machines every second load is of a workload in the table.
pub fn loads_of(nr: Range<usize>) -> impl Strategy<Value = Vec<Load>> {
    prop::bool::weighted(0.25).prop_flat_map(move |treated| {
        prop::collection::vec(load(if treated { 1 } else { 0 }), nr.clone())
    })
}

/// One that is of a workload in the table in `treated` of two cases.
fn load(treated: u32) -> impl Strategy<Value = Load> {
    let sleep = prop_oneof![1 => Just(0), 4 => MS / 10..60 * MS];
    let cpus = prop_oneof![3 => Just(0u32), 1 => any::<u32>()];
    let weight = prop_oneof![30 => Just(WEIGHT_DEFAULT), 1 => 1..1000u32];
    let workload =
        prop_oneof![2 - treated => Just(0), treated => 1..intf::pp_workload_PP_NR_WORKLOADS];
    let load = (MS / 50..20 * MS, sleep, weight, cpus, workload, prop::bool::weighted(0.1));
    load.prop_map(|(run_ns, sleep_ns, weight, cpus, workload, pair)| Load {
        run_ns,
        sleep_ns,
        weight,
        cgroup_weight: None,
        cgroup: None,
        cpus,
        workload,
        pair,
    })
}

fn allowed(cpus: u32, nr: usize) -> CpuMask {
    let mask = CpuMask::of((0..nr).filter(|cpu| cpus >> (cpu % 32) & 1 == 1));
    if mask.count() == 0 { CpuMask::of(0..nr) } else { mask }
}

/// Makes the tasks of a load.
pub fn spawn(kernel: &mut Kernel, load: &Load) {
    let allowed = allowed(load.cpus, kernel.cpus.len());
    let mut make = |program: Box<dyn Program>| {
        let home = load.cgroup.map_or(Home::Kind(load.cgroup_weight, load.workload), Home::Made);
        let name = match load.workload {
            WORKLOAD_PACK => PACKED,
            super::WORKLOAD_EFFICIENT => EFFICIENT,
            _ => "",
        };
        let name = name.to_owned();
        let spec = TaskSpec { name, weight: load.weight, home, ..TaskSpec::new(program, allowed) };
        kernel.spawn(spec, 0)
    };
    if !load.pair {
        make(Box::new(Runner { load: load.clone(), runs: false }));
        return;
    }
    let partner = |other, has_turn| Partner { run_ns: load.run_ns, other, has_turn, ran: false };
    let first = make(Box::new(partner(0, false)));
    make(Box::new(partner(first, true)));
    // Tasks are numbered as they are made: only now is the second one's number known.
    let second = first + 1;
    kernel.tasks[first].program = Box::new(partner(second, false));
}

/// Our scheduler on `machine`.
pub fn boot(machine: &Machine, ranks: &Ranks, mode: Mode) -> Kernel {
    let scheduler = powerpack(machine, ranks, Policy::of(mode).to_bpf(ranks));
    Kernel::boot(machine, &System { scheduler, governor: None })
}

/// Takes a CPU offline, or brings it back.
pub fn plug(kernel: &mut Kernel, cpu: usize) {
    if !kernel.cpus[cpu].online {
        kernel.online(cpu);
    } else if kernel.cpus.iter().filter(|cpu| cpu.online).count() > 1 {
        kernel.offline(cpu);
    }
}

/// The machine's ranks.
pub fn ranks_of(machine: &Machine) -> Ranks {
    rank(machine).unwrap()
}

/// How long they run (s).
pub const RUNS_FOR_S: f64 = 10.0;

/// What became of the last of these tasks in packing, on four CPUs.
pub fn last_of(tasks: &str) -> TaskOutcome {
    last_on("vm4", "packing", tasks)
}

/// What became of the last of these tasks on `machine` in mode `mode`.
pub fn last_on(machine: &str, mode: &str, tasks: &str) -> TaskOutcome {
    all_on(machine, mode, tasks).pop().unwrap()
}

/// What became of each of these groups of tasks on `machine` in mode `mode`.
pub fn all_on(machine: &str, mode: &str, tasks: &str) -> Vec<TaskOutcome> {
    outcomes(&Machine::find(machine).unwrap(), mode, tasks)
}

/// The same of any machine.
pub fn outcomes(machine: &Machine, mode: &str, tasks: &str) -> Vec<TaskOutcome> {
    outcomes_of(machine, mode, tasks, RUNS_FOR_S)
}

/// The same of `seconds`.
pub fn outcomes_of(machine: &Machine, mode: &str, tasks: &str, seconds: f64) -> Vec<TaskOutcome> {
    let policy = mode.parse::<Named>().unwrap().on(machine).unwrap();
    let workload = Workload::parse(&format!("name = 'hogs'\nabout = ''\n{tasks}")).unwrap();
    let setup = Setup::new(machine, &workload, seconds, 1);
    powerpack_sim::run(&setup, &policy).unwrap().0.tasks
}
