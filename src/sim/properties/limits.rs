//! What must hold of cgroups with a `cpu.max` on any machine: they get what it says, no more, and
//! no less if they want it; and a task that has waited for a period runs at once when the limit goes.

use powerpack_sim::{Comparator, Kernel, Machine, Sabotage, Scheduler, System};
use proptest::prelude::*;

use super::world::{Load, WEIGHT_DEFAULT, boot, machines, plug, ranks_of, spawn};
use super::{MS, config, policies};
use crate::machine::topology::Ranks;
use crate::settings::policy::{Mode, Policy};
use crate::sim::system::powerpack;

const SECONDS: u64 = 6;
/// The cgroup's, and that of no other.
const WEIGHT: u32 = 200;

/// A cgroup with a limit, beside loads without one.
#[derive(Clone, Debug)]
struct Case {
    machine: String,
    /// Run and sleep of each task in the cgroup (ns), a sleep of 0 is a hog; and its CPUs, as bits.
    limited: Vec<(u64, u64, u32)>,
    others: Vec<(u64, u64, u32)>,
    period_us: u64,
    /// Of a CPU.
    quota_pct: u64,
    /// Of the quota.
    burst_pct: u64,
    /// When the policy is switched, and when which CPU goes or comes (ms).
    switches: Vec<u64>,
    plugs: Vec<(u64, usize)>,
}

impl Case {
    fn quota_us(&self) -> u64 {
        (self.period_us * self.quota_pct / 100).max(1000)
    }
}

fn tasks(nr: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u64, u64, u32)>> {
    let sleep = prop_oneof![2 => Just(0), 1 => MS / 10..60 * MS];
    let cpus = prop_oneof![5 => Just(0), 1 => any::<u32>()];
    prop::collection::vec((MS / 50..20 * MS, sleep, cpus), nr)
}

fn cases() -> impl Strategy<Value = Case> {
    let hz = prop_oneof![Just(250u32), Just(1000)];
    let limit = (prop_oneof![Just(100_000u64), 1000..1_000_000u64], 1..400u64);
    let burst = prop_oneof![3 => Just(0), 1 => 0..100u64];
    let switches = prop::collection::vec(1..SECONDS * 1000, 0..5);
    let plugs = prop::collection::vec((1..SECONDS * 1000, 0..64usize), 0..4);
    (machines(hz), tasks(1..16), tasks(0..6), limit, burst, switches, plugs).prop_map(
        |(machine, limited, others, (period_us, quota_pct), burst_pct, switches, plugs)| Case {
            machine,
            limited,
            others,
            period_us,
            quota_pct,
            burst_pct,
            switches,
            plugs,
        },
    )
}

fn load((run_ns, sleep_ns, cpus): (u64, u64, u32), cgroup_weight: Option<u32>) -> Load {
    Load { run_ns, sleep_ns, cpus, weight: WEIGHT_DEFAULT, cgroup_weight, ..Load::hog() }
}

/// What tasks `from..to` have had (us).
fn used_us(kernel: &Kernel, from: usize, to: usize) -> u64 {
    kernel.tasks[from..to].iter().map(|task| task.ran_ns()).sum::<u64>() / 1000
}

/// Lets the seconds pass, with the switches and plugs of the case.
fn drive(case: &Case, kernel: &mut Kernel, ranks: &Ranks) {
    let (nr, mut switched) = (ranks.cpus().len(), 0);
    let policies = policies(ranks);
    for ms in 1..=SECONDS * 1000 {
        kernel.run_until(ms * MS);
        for _ in case.switches.iter().filter(|&&switch| switch == ms) {
            kernel.apply(&policies[switched % policies.len()], nr - 1);
            switched += 1;
        }
        for &(_, cpu) in case.plugs.iter().filter(|plug| plug.0 == ms) {
            plug(kernel, cpu % nr);
        }
    }
}

fn check(case: &Case) {
    let machine = Machine::parse(&case.machine).unwrap();
    let ranks = ranks_of(&machine);
    let nr = ranks.cpus().len();
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    let (quota_us, burst_us) = (case.quota_us(), case.quota_us() * case.burst_pct / 100);
    kernel.limit_cgroup(WEIGHT, Some(quota_us), case.period_us, burst_us);
    let from = kernel.tasks.len();
    case.limited.iter().for_each(|&task| spawn(&mut kernel, &load(task, Some(WEIGHT))));
    let to = kernel.tasks.len();
    case.others.iter().for_each(|&task| spawn(&mut kernel, &load(task, None)));
    drive(case, &mut kernel, &ranks);
    let used = used_us(&kernel, from, to);
    let tick_us = machine.costs().tick_ns / 1000;
    // A new task is in no cgroup that is known until its first tick or stop, and a CPU sees at
    // its ticks alone that a reservation is used up.
    let loose_us = tick_us * (nr + 2 * case.limited.len()) as u64;
    let periods = SECONDS * 1_000_000 / case.period_us + 1;
    let max = quota_us * periods + burst_us + loose_us;
    assert!(used <= max, "used {used} us of {max}");
    let hogs = case.limited.iter().filter(|task| task.1 == 0).count() as u64;
    let online = kernel.cpus.iter().filter(|cpu| cpu.online).count() as u64;
    let confined = case.limited.iter().any(|task| task.2 != 0);
    let alone = case.others.is_empty() && case.plugs.is_empty();
    if alone && !confined && quota_us < case.period_us * hogs.min(online) * 3 / 4 {
        let min = quota_us * periods.saturating_sub(2) * 98 / 100;
        assert!(used >= min, "used {used} us, should have used {min}");
    }
    kernel.limit_cgroup(WEIGHT, None, case.period_us, 0);
    kernel.run_until((SECONDS * 1000 + 1000) * MS);
    let more = used_us(&kernel, from, to) - used;
    assert!(hogs == 0 || more > 20_000, "without a limit it used {more} us in a second");
}

/// The kernel ends a scheduler under which a task does not run for 20 s, however little its cgroup
/// may use.
#[test]
fn all_of_a_cgroup_run_now_and_then_however_little_it_may() {
    let machine = Machine::parse(MACHINE).unwrap();
    let ranks = ranks_of(&machine);
    let mut kernel = boot(&machine, &ranks, Mode::Packing);
    kernel.limit_cgroup(WEIGHT, Some(1000), 1_000_000, 0);
    (0..40).for_each(|_| spawn(&mut kernel, &load((MS, 0, 0), Some(WEIGHT))));
    kernel.run_until(60_000 * MS);
    let longest_ns = kernel.tasks.iter().map(|task| task.longest_wait_ns).max().unwrap();
    assert!(longest_ns < 12_000 * MS, "a task has waited for {longest_ns} ns");
    let used = used_us(&kernel, 0, kernel.tasks.len());
    assert!(used < 400_000, "for the watchdog alone they have used {used} us");
}

/// Linux 7 starts a timer with memory that it may not have: the next tick has to try again.
#[test]
fn a_cgroup_has_its_quota_where_timers_cannot_be_started_at_times() {
    let machine = Machine::parse(MACHINE).unwrap();
    let mut kernel = boot(&machine, &ranks_of(&machine), Mode::Packing);
    kernel.sabotage(Sabotage::FailTimers);
    kernel.limit_cgroup(WEIGHT, Some(30_000), 100_000, 0);
    (0..2).for_each(|_| spawn(&mut kernel, &load((MS, 0, 0), Some(WEIGHT))));
    spawn(&mut kernel, &load((MS, 0, 0), None));
    kernel.run_until(SECONDS * 1000 * MS);
    let used = used_us(&kernel, 0, 2);
    let quota = 300_000 * SECONDS;
    println!("used {used} us of {quota}");
    assert!(used >= quota * 9 / 10, "used {used} us of {quota}");
}

/// Two CPUs.
const MACHINE: &str = "name='two'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[core.any]\n\
                       threads=1\ncapacity=1024\nsmt_speed_pct=[100]\n[[llc]]\ncore='any'\n\
                       package=0\ncores=2\nnode=0\n";

/// What four hogs have whose cgroup may use 30 % of a CPU, beside a hog without a limit (us).
fn limited_us(scheduler: Scheduler) -> u64 {
    let machine = Machine::parse(MACHINE).unwrap();
    let mut kernel = Kernel::boot(&machine, &System { scheduler, governor: None });
    kernel.limit_cgroup(WEIGHT, Some(30_000), 100_000, 0);
    (0..4).for_each(|_| spawn(&mut kernel, &load((MS, 0, 0), Some(WEIGHT))));
    spawn(&mut kernel, &load((MS, 0, 0), None));
    kernel.run_until(SECONDS * 1000 * MS);
    used_us(&kernel, 0, 4)
}

/// The systems that ours is compared with have a bandwidth control of their own.
#[test]
fn a_cgroup_has_the_same_as_under_the_earlier_systems() {
    let machine = Machine::parse(MACHINE).unwrap();
    let ranks = ranks_of(&machine);
    let ours = powerpack(&machine, &ranks, Policy::of(Mode::Packing).to_bpf(&ranks));
    let ours = limited_us(ours) as f64;
    for (name, comparator) in Comparator::ALL {
        let theirs = limited_us(Scheduler::Comparator(comparator)) as f64;
        assert!((ours / theirs - 1.0).abs() < 0.02, "{name}: {ours} us, {theirs} there");
    }
}

proptest! {
    #![proptest_config(config(60))]
    #[test]
    fn a_cgroup_gets_what_its_cpu_max_says(case in cases()) {
        check(&case);
    }
}
