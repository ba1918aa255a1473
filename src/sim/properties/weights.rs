//! Tasks that may run on some CPUs only, beside others of another weight.

use powerpack_sim::Machine;

use super::world::{last_on, outcomes};

/// One that wakes often on a CPU that it is bound to, beside a hog of its weight and six of a sixth of that: a third is its
/// share. It had more than twice as much, as it was forgiven what it had had each time that it woke while a light one ran,
/// which is behind by right.
#[test]
fn who_wakes_beside_light_hogs_has_no_more_than_its_share() {
    let tasks = "[[task]]\nhog = true\ncpus = '0'\n\
                 [[task]]\nhog = true\ncpus = '0'\nnice = 8\ncount = 6\n\
                 [[task]]\nperiodic = { run_ms = 1, period_ms = 1.3 }\ncpus = '0'\n";
    for mode in ["packing", "spread"] {
        let runs = last_on("vm4", mode, tasks).activations;
        // Of 10 s, a third in runs of 1 ms.
        assert!((3000..3700).contains(&runs), "{runs} runs of 1 ms, {mode}");
    }
}

/// How often the first of these groups of tasks runs, of how often it does under the kernel's class.
fn of_eevdf(mode: &str, tasks: &str) -> f64 {
    of_eevdf_on(&Machine::find("vm4").unwrap(), mode, tasks)
}

/// The same on `machine`.
fn of_eevdf_on(machine: &Machine, mode: &str, tasks: &str) -> f64 {
    let runs = |system| outcomes(machine, system, tasks)[0].activations as f64;
    runs(mode) / runs("eevdf")
}

/// Short tasks that may run on three CPUs, of which one has six heavier hogs and the others run short tasks: they are not
/// to wait there, where no hog makes way for them. They had 0.1 of their runs.
#[test]
fn who_is_light_does_not_wait_behind_heavy_hogs() {
    let tasks = "[[task]]\ncount = 2\nnice = 3\ncpus = '1-3'\nclient = { run_ms = 0.356, think_ms = 0.107 }\n\
                 [[task]]\nnice = 3\ncpus = '0-1'\nhog = true\n\
                 [[task]]\nnice = 8\nclient = { run_ms = 7.2, think_ms = 0.36 }\n\
                 [[task]]\ncount = 6\nnice = -5\ncpus = '1'\nhog = true\n\
                 [[task]]\ncount = 4\nnice = 8\nclient = { run_ms = 0.77, think_ms = 0.77 }\n";
    for mode in ["packing", "spread"] {
        let runs = of_eevdf(mode, tasks);
        assert!(runs >= 0.9, "{runs:.2} of the runs under eevdf, {mode}");
    }
}

/// Short tasks that may run on two CPUs, beside many that may run on all and take turns: of more weight they run no less
/// often. They had 0.2 of their runs with nice -5, and 0.95 with nice 0.
#[test]
fn who_is_confined_and_heavy_has_its_share_beside_free_ones() {
    for (mode, nice) in [("packing", 0), ("packing", -5), ("spread", 0), ("spread", -5)] {
        let tasks = format!(
            "[[task]]\ncount = 2\nnice = {nice}\ncpus = '1,3'\njitter_pct = 60\n\
             client = {{ run_ms = 0.32, think_ms = 0.096 }}\n\
             [[task]]\ncount = 6\njitter_pct = 60\nclient = {{ run_ms = 1.374, think_ms = 1.374 }}\n\
             [[task]]\ncount = 2\nnice = 8\nclient = {{ run_ms = 1.91, think_ms = 1.91 }}\n\
             [[task]]\ncount = 3\nnice = 8\njitter_pct = 60\nclient = {{ run_ms = 1.694, think_ms = 0.508 }}\n"
        );
        let runs = of_eevdf(mode, &tasks);
        assert!(runs >= 0.75, "{runs:.2} of the runs under eevdf, {mode}, nice {nice}");
    }
}

/// Heavy clients that may run everywhere on two LLCs, and light ones on the CPUs of one of them, whose runs last for almost
/// a slice: begun while a heavy one sleeps for 0.06 ms, they are not to keep it waiting until they end. The heavy ones had
/// 0.76 of their runs.
#[test]
fn a_light_task_makes_way_for_a_heavy_one_that_has_hardly_slept() {
    let tasks = "[[task]]\ncount = 6\nnice = -5\njitter_pct = 30\nclient = { run_ms = 1.275, think_ms = 0.064 }\n\
                 [[task]]\ncount = 3\nnice = 8\ncpus = '0-1'\nclient = { run_ms = 2.9, think_ms = 0.145 }\n";
    let machine = "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n\
                   [[llc]]\ncores=2\npackage=0\n[[llc]]\ncores=2\npackage=1\n";
    let machine = Machine::parse(machine).unwrap();
    for mode in ["packing", "spread"] {
        let runs = of_eevdf_on(&machine, mode, tasks);
        assert!(runs >= 0.88, "{runs:.2} of the runs under eevdf, {mode}");
    }
}

/// A heavy client that is bound to a CPU and hardly sleeps, where six light ones run for less than 2 ms each: it does not wait
/// for each of them. It had 0.23 of its runs.
#[test]
fn who_is_heavy_does_not_wait_for_short_runs_of_light_ones() {
    let tasks = "[[task]]\nnice = -5\ncpus = '0'\njitter_pct = 60\nclient = { run_ms = 0.2, think_ms = 0.01 }\n\
                 [[task]]\ncount = 6\nnice = 5\ncpus = '0'\nclient = { run_ms = 1.422, think_ms = 0.427 }\n";
    for mode in ["packing", "spread"] {
        let runs = of_eevdf(mode, tasks);
        assert!(runs >= 0.9, "{runs:.2} of the runs under eevdf, {mode}");
    }
}

/// A client on two CPUs beside lighter tasks, whose runs of 12 ms begin each time that it sleeps for 0.09 ms: what it waits
/// for one of them, it does not wait for the next as well. It had 0.39 of its runs.
#[test]
fn who_is_owed_a_turn_is_not_kept_waiting_by_one_that_has_just_begun() {
    let tasks = "[[task]]\njitter_pct = 30\nclient = { run_ms = 0.297, think_ms = 0.089 }\n\
                 [[task]]\ncount = 3\nnice = 5\nclient = { run_ms = 12.4, think_ms = 3.7 }\n\
                 [[task]]\ncpus = '0'\nclient = { run_ms = 13.1, think_ms = 3.9 }\n";
    let machine =
        "name='any'\nabout=''\n[costs]\nhz=250\nswitch_us=2\nwake_us=5\n[[llc]]\ncores=2\n";
    let machine = Machine::parse(machine).unwrap();
    for mode in ["packing", "spread"] {
        let runs = of_eevdf_on(&machine, mode, tasks);
        assert!(runs >= 0.6, "{runs:.2} of the runs under eevdf, {mode}");
    }
}
