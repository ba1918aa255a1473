//! What kinds of tasks there are, and how a load of them is run.

use anyhow::{Result, ensure};

use powerpack_workload::{Phases, Rhythm, START_NS};

use crate::clock::{self, NS_PER_S};
use crate::record::{KindRecord, Record, Report, report};
use crate::schedstat::Meter;
use crate::team::spawn;

/// The measurement begins this much before the load, so as not to be part of it.
const METER_LEAD_NS: u64 = 5_000_000;

/// Tasks of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    pub name: String,
    /// Tasks, pipelines or teams.
    pub count: usize,
    /// -20..=19; below 0 needs root.
    pub nice: i32,
    /// Where they may run; empty: everywhere.
    pub cpus: Vec<usize>,
    /// Run lengths differ by as much (%).
    pub jitter_pct: f64,
    /// Lengths are work that a CPU at its best does in that time, rather than CPU time.
    pub fixed_work: bool,
    pub work: Work,
}

impl Kind {
    /// Whether it does as much as it can, so that how much is what counts. Of CPU time a hog
    /// has as much as there is.
    fn is_eager(&self) -> bool {
        match self.work {
            Work::Periodic { .. } | Work::Pipeline { .. } => false,
            Work::ForkJoin { period_ns, .. } => period_ns == 0,
            Work::Client { .. } | Work::Exchange { .. } => true,
            Work::Hog => self.fixed_work,
        }
    }
}

/// What a task does; lengths are CPU time.
#[derive(Clone, Debug)]
pub enum Work {
    Periodic {
        run_ns: u64,
        rhythm: Rhythm,
    },
    /// The first stage is periodic, the others work on what they are handed.
    Pipeline {
        runs_ns: Vec<u64>,
        rhythm: Rhythm,
    },
    /// A leader wakes its workers, works itself, and waits for all.
    ForkJoin {
        workers: usize,
        run_ns: u64,
        leader_ns: u64,
        period_ns: u64,
    },
    Client {
        run_ns: u64,
        think_ns: u64,
    },
    /// Tasks that pass a number of messages on, each to any of the others.
    Exchange {
        tasks: usize,
        messages: usize,
        run_ns: u64,
    },
    Hog,
}

impl Work {
    /// The own run time of an activation (ns), 0 if it has none.
    fn run_ns(&self) -> u64 {
        match self {
            Work::Periodic { run_ns, .. }
            | Work::Client { run_ns, .. }
            | Work::Exchange { run_ns, .. } => *run_ns,
            Work::Pipeline { runs_ns, .. } => runs_ns.iter().sum(),
            Work::ForkJoin { .. } | Work::Hog => 0,
        }
    }
}

/// How a load is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// Duration in all (s).
    pub seconds: f64,
    /// Duration of the first part, which is not measured (s).
    pub settle: f64,
    pub phases: Phases,
    /// What a CPU does at its best, for fixed work; 0: find out.
    pub additions_per_s: u64,
}

impl Course {
    /// Fails with a sentence if the measurement would be over before it begins.
    pub fn checked(self) -> Result<Self> {
        ensure!(
            (0.0..self.seconds).contains(&self.settle),
            "--settle is 0 or more, and less than --seconds"
        );
        Ok(self)
    }
}

/// On CLOCK_MONOTONIC (ns).
#[derive(Clone, Copy)]
pub struct Times {
    pub start: u64,
    pub settled: u64,
    pub end: u64,
}

/// What is the same for all tasks of a load.
#[derive(Clone, Copy)]
pub struct Load {
    pub times: Times,
    pub phases: Phases,
    pub additions_per_s: u64,
}

/// Where a load has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The measurement begins,
    Settled,
    /// and ends.
    Over,
}

/// Runs the threads of all kinds. Fails when one may not have its nice value or CPUs.
pub fn run(kinds: &[Kind], course: Course) -> Result<Report> {
    run_reporting(kinds, course, |_| ())
}

/// The same; `on_phase` is called as the measurement begins and ends.
pub fn run_reporting(kinds: &[Kind], course: Course, on_phase: impl Fn(Phase)) -> Result<Report> {
    clock::lock_memory();
    let unknown = course.additions_per_s == 0 && kinds.iter().any(|kind| kind.fixed_work);
    let additions_per_s = if unknown { clock::additions_per_s() } else { course.additions_per_s };
    let start = clock::now_ns() + START_NS;
    let after = |seconds: f64| start + (seconds * NS_PER_S) as u64;
    let times = Times { start, settled: after(course.settle), end: after(course.seconds) };
    let load = Load { times, phases: course.phases, additions_per_s };
    let mut threads = Vec::new();
    for kind in kinds {
        let mut of_kind = Vec::new();
        for nth in 0..kind.count as u64 {
            of_kind.extend(spawn(kind, nth, load)?);
        }
        threads.push(of_kind);
    }
    clock::sleep_until(times.settled - METER_LEAD_NS);
    on_phase(Phase::Settled);
    let meter = Meter::start()?;
    clock::sleep_until(times.end);
    let non_idle = meter.stop()?;
    on_phase(Phase::Over);
    let mut records = Vec::new();
    for (kind, threads) in kinds.iter().zip(threads) {
        let (mut record, nr) = (Record::default(), threads.len());
        for thread in threads {
            record.merge(thread.join().expect("a load thread panicked")?);
        }
        records.push(KindRecord {
            name: kind.name.clone(),
            threads: nr,
            run_ns: kind.work.run_ns(),
            eager: kind.is_eager(),
            record,
        });
    }
    Ok(report(records, course.seconds - course.settle, non_idle))
}
