//! Costs of silicon on a small machine, each calculated by hand.

use super::{Kernel, Scheduler, System};
use crate::ext::CpuMask;
use crate::machine::Machine;
use crate::power::Governor;
use crate::task::{Context, Program, Step, TaskSpec};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Two cores of one thread at 500 or 1000 MHz, 100 or 300 mW, which share a clock and a cache, and for
/// which everything is free but what is said in these places of the file.
fn machine(costs: &str, core: &str, llc: &str) -> Machine {
    let text = format!(
        "name = 'two'\nabout = ''\ngovernor = 'performance'\nclock = 'llc'\n\
         [costs]\nhz = 250\nswitch_us = 0\nwake_us = 0\n{costs}\n\
         [core.plain]\nopps = [{{ mhz = 500, mw = 100 }}, {{ mhz = 1000, mw = 300 }}]\n{core}\n\
         [[llc]]\ncores = 2\n{llc}\n"
    );
    Machine::parse(&text).unwrap()
}

fn boot(machine: &Machine) -> Kernel {
    boot_with(machine, None)
}

fn boot_with(machine: &Machine, governor: Option<Governor>) -> Kernel {
    let scheduler = Scheduler::Eevdf { energy_aware: false };
    Kernel::boot(machine, &System { scheduler, governor })
}

/// Computes without a pause.
struct Busy;

impl Program for Busy {
    fn next(&mut self, _: &mut Context) -> Step {
        Step::Run(1_000 * MS)
    }
}

/// A task that computes on `cpu` from now on.
fn busy(kernel: &mut Kernel, cpu: usize) -> usize {
    let now_ns = kernel.now_ns();
    kernel.spawn(TaskSpec::new(Box::new(Busy), CpuMask::of([cpu])), now_ns)
}

/// Work done until now, in us of a CPU at its highest frequency.
fn done_us(kernel: &Kernel, task: usize) -> f64 {
    kernel.tasks[task].work_done as f64 / 1024.0 / US as f64
}

/// What `kernel` works and takes in a ms from now on: us of work of `task`, and uJ.
fn in_a_ms(kernel: &mut Kernel, task: usize) -> (f64, f64) {
    in_a_ms_at(kernel, task, None)
}

/// The same, at that share of the highest frequency from now on.
fn in_a_ms_at(kernel: &mut Kernel, task: usize, share: impl Into<Option<f64>>) -> (f64, f64) {
    let now_ns = kernel.now_ns();
    let before = (done_us(kernel, task), kernel.power.energy(now_ns).total_mj());
    if let Some(share) = share.into() {
        choose(kernel, share);
    }
    kernel.run_until(now_ns + MS);
    let mj = kernel.power.energy(now_ns + MS).total_mj();
    ((done_us(kernel, task) - before.0).round(), ((mj - before.1) * 1e3).round())
}

/// A kernel with a task on CPU 0, which has run for a while.
fn running(costs: &str) -> (Kernel, usize) {
    let mut kernel = boot(&machine(costs, "", ""));
    let task = busy(&mut kernel, 0);
    kernel.run_until(10 * MS);
    (kernel, task)
}

fn choose(kernel: &mut Kernel, share: f64) {
    kernel.change_freq(0, |domain, _| domain.set(share));
}

#[test]
fn all_cpus_of_a_clock_stop_while_it_changes() {
    let (mut kernel, task) = running("freq_change_us = 100");
    let other = busy(&mut kernel, 1);
    assert_eq!(in_a_ms(&mut kernel, task), (1000.0, 600.0));
    let other_us = done_us(&kernel, other);
    // 900 us at half the speed.
    assert_eq!(in_a_ms_at(&mut kernel, task, 0.5), (450.0, 200.0));
    assert_eq!((done_us(&kernel, other) - other_us).round(), 450.0);
    assert_eq!(in_a_ms(&mut kernel, task), (500.0, 200.0));
}

#[test]
fn what_begins_while_a_clock_changes_waits_for_its_end() {
    let mut kernel = boot(&machine("freq_change_us = 400", "", ""));
    kernel.spawn(TaskSpec::new(Box::new(Periodic), CpuMask::of([0])), MS);
    kernel.run_until(11 * MS - 50 * US);
    let before_ns = kernel.cpus[0].non_idle_ns;
    choose(&mut kernel, 0.5);
    kernel.run_until(12 * MS - 50 * US);
    // It waits for 350 us, and needs 200 at half the speed.
    assert_eq!((kernel.cpus[0].non_idle_ns - before_ns) / US, 550);
}

#[test]
fn a_clock_rises_when_the_voltage_is_there_and_falls_at_once() {
    let (mut kernel, task) = running("freq_ramp_us = 200");
    assert_eq!(in_a_ms_at(&mut kernel, task, 0.5), (500.0, 100.0));
    // 200 us at half the speed, 800 at all of it.
    assert_eq!(in_a_ms_at(&mut kernel, task, 1.0), (900.0, 260.0));
}

#[test]
fn a_change_of_frequency_takes_energy() {
    let (mut kernel, task) = running("freq_change_uj = 7");
    assert_eq!(in_a_ms_at(&mut kernel, task, 0.5), (500.0, 107.0));
    assert_eq!(in_a_ms_at(&mut kernel, task, 0.5), (500.0, 100.0), "it is the same one");
}

#[test]
fn turbo_is_for_few_cores_and_looked_at_from_time_to_time() {
    let turbo = "turbo = [{ cores = 1, mhz = 1000 }, { cores = 2, mhz = 500 }]";
    let mut kernel = boot(&machine("", turbo, ""));
    let task = busy(&mut kernel, 0);
    kernel.run_until(10 * MS);
    assert_eq!(in_a_ms(&mut kernel, task), (1000.0, 300.0));
    kernel.run_until(11 * MS + 100 * US);
    busy(&mut kernel, 1);
    // Until 11.5 ms both run at full speed.
    assert_eq!(in_a_ms(&mut kernel, task), (700.0, 360.0));
    assert_eq!(in_a_ms(&mut kernel, task), (500.0, 200.0));
}

/// Sleeps until it is woken by its timer, each ms, and then works for 100 us.
struct Periodic;

impl Program for Periodic {
    fn next(&mut self, context: &mut Context) -> Step {
        // It is asked at each end of its work, and of its sleep.
        let since_us = context.now_ns % MS / US;
        if since_us == 0 {
            Step::Run(100 * US)
        } else {
            Step::SleepUntil((context.now_ns / MS + 1) * MS)
        }
    }
}

/// A machine whose cores sleep with 10 mW, its cache with 20 (else 50) and its package with 30 (else 200).
fn sleepy(enter: &str, more: &str) -> Machine {
    let state = |mw: u32| {
        format!("idle = [{{ name = 'off', residency_us = 1, exit_us = 0, mw = {mw}{enter} }}]")
    };
    let (cache, package) = (state(20), state(30));
    let llc = format!("active_mw = 50\n{cache}\n[package]\nactive_mw = 200\n{package}\n{more}");
    machine("", &state(10), &llc)
}

#[test]
fn a_cache_and_a_package_are_awake_as_long_as_one_cpu_is() {
    let mut kernel = boot(&sleepy("", ""));
    let task = kernel.spawn(TaskSpec::new(Box::new(Periodic), CpuMask::of([0])), MS);
    kernel.run_until(10 * MS);
    // Of a ms 100 us with 300 + 10 + 50 + 200 mW, 900 with 10 + 10 + 20 + 30.
    assert_eq!(in_a_ms(&mut kernel, task), (100.0, 119.0));
}

#[test]
fn entering_an_idle_state_takes_energy() {
    let mut kernel = boot(&sleepy(", enter_uj = 5", ""));
    let task = kernel.spawn(TaskSpec::new(Box::new(Periodic), CpuMask::of([0])), MS);
    kernel.run_until(10 * MS);
    // Once each: the core, the cache and the package.
    assert_eq!(in_a_ms(&mut kernel, task), (100.0, 119.0 + 15.0));
}

#[test]
fn a_task_fills_another_cache_by_the_size_of_its_data() {
    let costs = "migrate_us = 5\nmigrate_far_us = 30\nrefill_us_per_mib = 102.4";
    let mut kernel = boot(&machine(costs, "", "[[llc]]\ncores = 1\n"));
    let spec = TaskSpec { cache_kib: 2048, ..TaskSpec::new(Box::new(Busy), CpuMask::of(0..3)) };
    let task = kernel.spawn(spec, 0);
    kernel.tasks[task].last_cpu = Some(0);
    let lost_us = [0, 1, 2].map(|cpu| kernel.cold_cache_ns(task, cpu) as f64 / US as f64);
    // 2048 times 0.1 us.
    assert_eq!(lost_us, [0.0, 5.0, 234.8]);
}

/// A thousand interrupts a second of 20 us at CPU 0.
const INTERRUPTS: &str = "[[interrupt]]\nname = 'nic'\ncpu = 0\nper_s = 1000\nbusy_us = 20\n";

#[test]
fn interrupts_that_are_no_tasks_keep_a_cpu_busy_and_awake() {
    let mut kernel = boot(&sleepy("", INTERRUPTS));
    kernel.run_until(1_000 * MS);
    let busy_us = kernel.cpus[0].non_idle_ns / US;
    let interrupts = busy_us / 20;
    assert!((900..1100).contains(&interrupts), "{interrupts}");
    // While nothing happens 10 + 10 + 20 + 30 mW, and for 20 us each time what is awake beyond it.
    let expected_mj = 70.0 + interrupts as f64 * 0.02 * (300.0 + 30.0 + 170.0) / 1e3;
    assert!((kernel.power.energy(1_000 * MS).total_mj() - expected_mj).abs() < 1e-3);
}

#[test]
fn a_task_stands_still_while_its_cpu_is_interrupted() {
    let mut kernel = boot(&machine("", "", INTERRUPTS));
    let (here, other) = (busy(&mut kernel, 0), busy(&mut kernel, 1));
    kernel.run_until(1_000 * MS);
    let lost_us = done_us(&kernel, other) - done_us(&kernel, here);
    assert_eq!(lost_us % 20.0, 0.0);
    assert!((900.0..1100.0).contains(&(lost_us / 20.0)), "{lost_us}");
}

#[test]
fn an_idle_cpu_has_one_tick_however_often_it_is_interrupted() {
    // Its ticks alone come too soon for the deep state, so it goes on having them.
    let idle = "idle = [{ name = 'C1', residency_us = 1, exit_us = 0, mw = 50 }, \
                { name = 'C6', residency_us = 9000, exit_us = 0, mw = 10 }]";
    let mut kernel = boot(&machine("irq_us = 10", idle, ""));
    for nth in 1..=20 {
        kernel.run_until(nth * 100 * US);
        kernel.interrupt(1);
    }
    let before_ns = kernel.cpus[1].non_idle_ns;
    kernel.run_until(1_002 * MS);
    // 250 times 10 us.
    assert_eq!((kernel.cpus[1].non_idle_ns - before_ns) / US, 2_500);
}

/// Computes so much work (ns), and ends.
struct Once(Option<u64>);

impl Program for Once {
    fn next(&mut self, _: &mut Context) -> Step {
        self.0.take().map_or(Step::Exit, Step::Run)
    }
}

#[test]
fn intel_pstate_goes_by_the_busiest_of_the_cores_that_are_awake() {
    let mut kernel = boot_with(&machine("", "", ""), Some(Governor::IntelPstate));
    let at = |kernel: &mut Kernel, ms: u64| {
        kernel.run_until(ms * MS);
        kernel.power.domains[0].mhz()
    };
    kernel.spawn(TaskSpec::new(Box::new(Periodic), CpuMask::of([0])), MS);
    // A fifth of the time at half the speed: 2 of P-states up to 12, and 5 is the lowest.
    assert_eq!(at(&mut kernel, 20), Some(500));
    kernel.spawn(TaskSpec::new(Box::new(Once(Some(20 * MS))), CpuMask::of([1])), 20 * MS);
    // Its first sample says nothing, and its ticks come each 4 ms.
    assert_eq!(at(&mut kernel, 31), Some(500));
    assert_eq!(at(&mut kernel, 33), Some(1000));
    // The other CPU, sampled at 41 ms: 5 again, and it ran at 9, so 7. It has its say when the large one is
    // done: 6 ms of its work at half the speed, and 14 at full.
    assert_eq!(at(&mut kernel, 46), Some(1000));
    assert_eq!(at(&mut kernel, 48), Some(700));
}

#[test]
fn firmware_goes_by_how_long_a_cpu_has_been_busy() {
    let mut kernel = boot_with(&machine("", "", ""), Some(Governor::Epp(Some(128))));
    let mhz = |kernel: &Kernel| kernel.power.domains[0].mhz();
    kernel.run_until(100 * MS);
    let task = busy(&mut kernel, 0);
    kernel.run_until(101 * MS);
    assert_eq!(mhz(&kernel), Some(500), "it has been idle");
    // 1.25 * (1 - 2^(-t / 15)) is 0.5 after 11.05 ms.
    kernel.run_until(111 * MS);
    assert_eq!(mhz(&kernel), Some(500));
    kernel.run_until(112 * MS);
    assert_eq!((mhz(&kernel), done_us(&kernel, task).round()), (Some(1000), 6000.0));
}
