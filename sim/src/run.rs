//! One simulation from beginning to end, and what came out.

use anyhow::Result;
use powerpack_workload::{START_NS, Workload, percentile};

use crate::costs;
use crate::kernel::{Kernel, System};
use crate::machine::Machine;
use crate::power::Energy;
use crate::trace::Trace;
use crate::workload::{Record, spawn};

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub machine: &'a Machine,
    pub workload: &'a Workload,
    /// How long it runs before anything is counted (s): until the system knows the load. The kernel takes a new
    /// task for half of a CPU's work, and raises the clock for it.
    pub settle_s: f64,
    pub seconds: f64,
    /// For lengths that differ at random.
    pub seed: u64,
    /// Whether to record what happens.
    pub trace: bool,
    /// The CPU that each task is pinned to, in the order in which they are made; none:
    /// as the workload says.
    pub pins: &'a [usize],
}

impl<'a> Setup<'a> {
    /// Counted from the beginning, without a record, and nothing pinned.
    pub fn new(machine: &'a Machine, workload: &'a Workload, seconds: f64, seed: u64) -> Self {
        Setup { machine, workload, settle_s: 0.0, seconds, seed, trace: false, pins: &[] }
    }
}

/// What a simulation showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How long it was simulated.
    pub seconds: f64,
    /// By CPU number.
    pub non_idle_pct: Vec<f64>,
    /// All CPUs' but the busiest's.
    pub beyond_busiest_pct: f64,
    pub switches: u64,
    pub migrations: u64,
    /// Of all clocks.
    pub frequency_changes: u64,
    pub overruns: u64,
    /// By kind of task, in the workload's order.
    pub tasks: Vec<TaskOutcome>,
    /// Work done in a second, in seconds of the fastest CPU.
    pub throughput: f64,
    pub energy: Energy,
    /// Mean power (mW).
    pub power_mw: f64,
    /// Share of time that cores were awake, then in each of their idle states
    /// (percent, the mean of all cores).
    pub core_states_pct: Vec<f64>,
    /// The same of LLCs and packages.
    pub uncore_states_pct: Vec<f64>,
    /// Events of the simulation.
    pub events: u64,
}

impl Outcome {
    /// Work-normalised energy: for a second's work of the fastest CPU (mJ), so that work that is late and
    /// therefore left out does not count as saved. `power_mw` is the time-normalised one. Infinite
    /// without work.
    pub fn mj_for_work(&self) -> f64 {
        self.power_mw / self.throughput
    }

    /// Work for a joule (s of the fastest CPU); infinite where nothing takes power.
    pub fn work_per_j(&self) -> f64 {
        1e3 / self.mj_for_work()
    }
}

/// Responses of the tasks of one kind (us).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOutcome {
    pub activations: usize,
    pub overruns: u64,
    pub mean_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    /// The longest response beyond the task's own run time (us).
    pub max_delay_us: f64,
}

/// What is counted from the start of the simulation on.
struct Counts {
    busy_ns: Vec<u64>,
    switches: u64,
    migrations: u64,
    frequency_changes: u64,
    work: u64,
    energy: Energy,
    core_ns: Vec<u64>,
    uncore_ns: Vec<u64>,
}

/// Runs it. Fails if the workload does not fit the machine.
pub fn run(setup: &Setup, system: &System) -> Result<(Outcome, Option<Trace>)> {
    let mut kernel = Kernel::boot(setup.machine, system);
    if setup.trace {
        kernel.record();
    }
    let records = spawn(setup.workload, &mut kernel, setup.seed, setup.pins)?;
    let begin_ns = START_NS + (setup.settle_s * 1e9) as u64;
    kernel.run_until(begin_ns);
    let before = counts(&mut kernel);
    costs::forget();
    for record in &records {
        record.borrow_mut().forget();
    }
    let length_ns = setup.seconds * 1e9;
    kernel.run_until(begin_ns + length_ns as u64);
    let after = counts(&mut kernel);
    let mut outcome = compare(&before, &after, length_ns);
    outcome.tasks = records.iter().map(|record| summary(&record.borrow())).collect();
    outcome.overruns = outcome.tasks.iter().map(|task| task.overruns).sum();
    outcome.events = kernel.events_done;
    Ok((outcome, kernel.recorded()))
}

fn counts(kernel: &mut Kernel) -> Counts {
    let now_ns = kernel.now_ns();
    let sum = |of: Vec<Vec<u64>>| -> Vec<u64> {
        let states = of.iter().map(Vec::len).max().unwrap_or(0);
        (0..states).map(|state| of.iter().filter_map(|unit| unit.get(state)).sum()).collect()
    };
    Counts {
        busy_ns: kernel.cpus.iter().map(|cpu| cpu.non_idle_ns).collect(),
        switches: kernel.cpus.iter().map(|cpu| cpu.switches).sum(),
        migrations: kernel.tasks.iter().map(|task| task.migrations).sum(),
        frequency_changes: kernel.power.domains.iter().map(|domain| domain.changes).sum(),
        work: kernel.tasks.iter().map(|task| task.work_done).sum(),
        energy: kernel.power.energy(now_ns),
        core_ns: sum(kernel.power.core_residency(now_ns)),
        uncore_ns: sum(kernel.power.uncore_residency(now_ns)),
    }
}

fn compare(before: &Counts, after: &Counts, length_ns: f64) -> Outcome {
    let share = |after: &[u64], before: &[u64]| -> Vec<f64> {
        let passed: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        let all = passed.iter().sum::<u64>().max(1) as f64;
        passed.iter().map(|&ns| ns as f64 / all * 100.0).collect()
    };
    let busy = after.busy_ns.iter().zip(&before.busy_ns);
    let non_idle_pct: Vec<f64> =
        busy.map(|(after, before)| (after - before) as f64 / length_ns * 100.0).collect();
    let busiest = non_idle_pct.iter().copied().fold(0.0, f64::max);
    let energy = after.energy.since(&before.energy);
    Outcome {
        seconds: length_ns / 1e9,
        beyond_busiest_pct: non_idle_pct.iter().sum::<f64>() - busiest,
        non_idle_pct,
        switches: after.switches - before.switches,
        migrations: after.migrations - before.migrations,
        frequency_changes: after.frequency_changes - before.frequency_changes,
        throughput: (after.work - before.work) as f64 / crate::power::FULL as f64 / length_ns,
        energy,
        power_mw: energy.total_mj() / (length_ns / 1e9),
        core_states_pct: share(&after.core_ns, &before.core_ns),
        uncore_states_pct: share(&after.uncore_ns, &before.uncore_ns),
        ..Outcome::default()
    }
}

fn summary(record: &Record) -> TaskOutcome {
    let mut sorted = record.responses_ns.clone();
    sorted.sort_unstable();
    let (Some(p99), Some(&max)) = (percentile(&sorted, 99.0), sorted.last()) else {
        return TaskOutcome::default();
    };
    let us = |ns: u64| ns as f64 / 1e3;
    TaskOutcome {
        activations: sorted.len(),
        overruns: record.overruns,
        mean_us: us(sorted.iter().sum::<u64>()) / sorted.len() as f64,
        p99_us: us(p99),
        max_us: us(max),
        max_delay_us: us(max - record.run_ns.min(max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Governor, Scheduler};

    #[test]
    fn of_a_hundred_responses_one_is_beyond_the_percentile() {
        let record = Record {
            responses_ns: (1..=100).rev().map(|us| us * 1000).collect(),
            ..Record::default()
        };
        let outcome = summary(&record);
        assert_eq!((outcome.p99_us, outcome.max_us), (99.0, 100.0));
        assert_eq!(summary(&Record::default()), TaskOutcome::default());
    }

    #[test]
    fn what_is_not_done_when_its_period_ends_is_an_overrun() {
        let machine = Machine::find("vm4").unwrap();
        let system = System {
            scheduler: Scheduler::Comparator("3.9".parse().unwrap()),
            governor: Some(Governor::Performance),
        };
        let outcome = |task: &str| {
            let text = format!("name=''\nabout=''\n[[task]]\n{task}\n");
            let workload = Workload::parse(&text).unwrap();
            let (outcome, _) = run(&Setup::new(&machine, &workload, 1.0, 1), &system).unwrap();
            (outcome.tasks[0].activations as u64, outcome.overruns)
        };
        let late = [
            "pipeline = { run_ms = [15, 15], period_ms = 20 }",
            "fork_join = { workers = 1, run_ms = 30, leader_ms = 1, period_ms = 20 }",
        ];
        for (done, overruns) in late.map(outcome) {
            assert!(done > 10 && overruns == done, "{overruns} of {done}");
        }
        let team = "fork_join = { workers = 1, run_ms = 3, leader_ms = 1, period_ms = 0 }";
        assert_eq!(outcome(team).1, 0, "it has no period");
        assert_eq!(outcome("pipeline = { run_ms = [9, 9, 1], period_ms = 20 }").1, 0);
    }

    #[test]
    fn what_comes_before_the_load_has_settled_does_not_count() {
        let machine = Machine::find("apu-2ccx").unwrap();
        let workload = Workload::run_period(1.0, 20.0, None).unwrap();
        let system = System {
            scheduler: Scheduler::Comparator("3.9".parse().unwrap()),
            governor: Some(Governor::Schedutil),
        };
        let outcome = |settle_s, seconds| {
            let setup = Setup { settle_s, ..Setup::new(&machine, &workload, seconds, 1) };
            run(&setup, &system).unwrap().0
        };
        let (first, rest, all) = (outcome(0.0, 1.0), outcome(1.0, 2.0), outcome(0.0, 3.0));
        let activations = |outcome: &Outcome| outcome.tasks[0].activations;
        assert_eq!([&first, &rest, &all].map(activations), [50, 100, 150]);
        let mj = |outcome: &Outcome| outcome.power_mw * outcome.seconds;
        assert!((mj(&first) + mj(&rest) - mj(&all)).abs() < 1e-6 * mj(&all));
    }
}
