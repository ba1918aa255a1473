//! CPUs that go offline and come back.

use powerpack_sim::{Kernel, Machine, State};

use super::world::{Load, boot, ranks_of, spawn};
use super::{MS, WORKLOAD_EFFICIENT};
use crate::settings::policy::Mode;

/// What is to stay on the efficient cores uses the others where those are offline, whether it may run
/// everywhere or is confined to CPUs of both kinds; and it goes back as they come.
#[test]
fn efficient_hogs_use_other_cores_while_the_efficient_ones_are_offline() {
    for (mode, confined) in Mode::ALL.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let machine = Machine::find("hybrid-laptop").unwrap();
        let cpus = machine.cpus();
        let mut kernel = boot(&machine, &ranks_of(&machine), mode);
        let efficient = cpus.iter().map(|cpu| cpu.capacity).min().unwrap();
        let (small, large): (Vec<usize>, Vec<usize>) =
            (0..cpus.len()).partition(|&cpu| cpus[cpu].capacity == efficient);
        let mask = small.iter().chain(&large[..3]).fold(0, |mask, cpu| mask | 1 << cpu);
        let load = Load { workload: WORKLOAD_EFFICIENT, ..Load::hog() };
        let load = Load { cpus: if confined { mask } else { load.cpus }, ..load };
        (0..3).for_each(|_| spawn(&mut kernel, &load));
        let busy_on = |kernel: &Kernel, cpus: &[usize]| {
            cpus.iter().map(|&cpu| kernel.cpus[cpu].non_idle_ns).sum::<u64>() / MS
        };
        kernel.run_until(500 * MS);
        small.iter().for_each(|&cpu| kernel.offline(cpu));
        let before = busy_on(&kernel, &large);
        kernel.run_until(1500 * MS);
        let ran = busy_on(&kernel, &large) - before;
        assert!(ran > 2900, "three ran for {ran} ms of a second, {mode}, confined: {confined}");
        small.iter().for_each(|&cpu| kernel.online(cpu));
        let before = busy_on(&kernel, &large);
        kernel.run_until(2500 * MS);
        let ran = busy_on(&kernel, &large) - before;
        assert!(ran < 200, "large cores ran for {ran} ms, {mode}, confined: {confined}");
    }
}

/// A hog that waits in the queue that all CPUs share, as the only one online is one of its two, and so it may run
/// everywhere: another CPU comes, and that one goes, before it has its turn. Found by the random machines.
#[test]
fn who_may_run_on_no_cpu_that_is_left_is_moved_by_the_kernel() {
    let machine =
        "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=3\n";
    let machine = Machine::parse(machine).unwrap();
    let mut kernel = boot(&machine, &ranks_of(&machine), Mode::Packing);
    kernel.offline(0);
    kernel.offline(2);
    (0..4).for_each(|_| spawn(&mut kernel, &Load::hog()));
    let confined = kernel.tasks.len();
    spawn(&mut kernel, &Load { cpus: 0b110, ..Load::hog() });
    kernel.run_until(100 * MS);
    let ran = |kernel: &Kernel| kernel.tasks[confined].ran_ns() / MS;
    for _ in 0..20 {
        if kernel.tasks[confined].state != State::Queued {
            kernel.run_until(kernel.now_ns() + MS);
        }
    }
    assert_eq!(kernel.tasks[confined].state, State::Queued);
    kernel.online(0);
    kernel.offline(1);
    let before = ran(&kernel);
    kernel.run_until(kernel.now_ns() + 1000 * MS);
    let ran = ran(&kernel) - before;
    assert!((150..250).contains(&ran), "one of five on a CPU ran for {ran} ms of a second");
}
