//! Workloads as TOML files describe them, and the programs of their tasks.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::ffi::CpuMask;
use crate::kernel::Kernel;
use crate::machine::find;
use crate::task::{Program, Step, TaskSpec};

/// Those that come with the simulator.
const SHIPPED: [(&str, &str); 1] = [("light", include_str!("../workloads/light.toml"))];

/// Tasks are there for so long before the clock starts, as in powerpack-load.
pub const START_NS: u64 = 50_000_000;
/// What a program does to start a thread, and the thread before it first sleeps;
/// seen in a trace of powerpack-load in the test VM.
const FORK_NS: u64 = 235_000;
const SET_UP_NS: u64 = 80_000;
/// All are started after this, however many.
const FORKS_NS: u64 = 40_000_000;

const NS_PER_MS: f64 = 1e6;

/// sched_prio_to_weight (kernel/sched/core.c), nice -20 to 19, of 1024.
const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// A workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub name: String,
    pub about: String,
    /// Tasks of a kind begin evenly apart within their period, else together.
    #[serde(default)]
    stagger: bool,
    task: Vec<TaskKind>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskKind {
    #[serde(default = "one")]
    count: usize,
    #[serde(default)]
    nice: i32,
    periodic: Option<PeriodicSpec>,
    /// Computes without a pause.
    #[serde(default)]
    hog: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeriodicSpec {
    run_ms: f64,
    period_ms: f64,
}

fn one() -> usize {
    1
}

/// What the tasks of one kind did since the clock started.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// From the planned wake-up to the end of the work (ns).
    pub responses_ns: Vec<u64>,
    /// Work that was not done at the next planned wake-up.
    pub overruns: u64,
    /// The task's own run time (ns), 0 for hogs.
    pub run_ns: u64,
}

type Shared = Rc<RefCell<Record>>;

impl Workload {
    /// A shipped one by its name, else a file by its path.
    pub fn find(name: &str) -> Result<Self> {
        find(name, &SHIPPED, "workload")
            .and_then(|text| Self::parse(&text).context(name.to_owned()))
    }

    /// Fails with a sentence about what is wrong in the file.
    pub fn parse(text: &str) -> Result<Self> {
        let workload: Workload = toml::from_str(text)?;
        for kind in &workload.task {
            if kind.hog == kind.periodic.is_some() {
                bail!("a task is either periodic or a hog");
            }
            if !(-20..20).contains(&kind.nice) {
                bail!("nice is -20..19, not {}", kind.nice);
            }
            if let Some(spec) = kind.periodic
                && !(spec.run_ms > 0.0 && spec.run_ms < spec.period_ms && spec.period_ms < 1e6)
            {
                bail!("a periodic task runs for less than its period, and that is below 1000 s");
            }
        }
        Ok(workload)
    }

    /// Makes the tasks; their records, by kind.
    pub fn spawn(&self, kernel: &mut Kernel) -> Vec<Shared> {
        let allowed = CpuMask::of(0..kernel.cpus.len());
        let nr: u64 = self.task.iter().map(|kind| kind.count as u64).sum();
        let fork_ns = FORK_NS.min(FORKS_NS / nr.max(1));
        let parent = Box::new(Forks { left_ns: nr * fork_ns });
        kernel.spawn(TaskSpec { program: parent, weight: weight_of(0), allowed }, 0);
        let mut records = Vec::new();
        let mut time_ns = 0;
        for kind in &self.task {
            let record = Shared::default();
            for i in 0..kind.count {
                time_ns += fork_ns;
                let program = kind.program(i, self.stagger, &record);
                kernel.spawn(TaskSpec { program, weight: weight_of(kind.nice), allowed }, time_ns);
            }
            records.push(record);
        }
        records
    }
}

/// As `scx.weight`: sched_weight_to_cgroup(), of 100 and at least 1.
fn weight_of(nice: i32) -> u32 {
    let weight = NICE_WEIGHT[(nice + 20) as usize];
    ((weight * 100 + 512) / 1024).clamp(1, 10_000)
}

impl TaskKind {
    fn program(&self, nth: usize, stagger: bool, record: &Shared) -> Box<dyn Program> {
        let Some(spec) = self.periodic else { return Box::new(Hog) };
        let period_ns = (spec.period_ms * NS_PER_MS) as u64;
        let phase = if stagger { period_ns * nth as u64 / self.count as u64 } else { 0 };
        let run_ns = (spec.run_ms * NS_PER_MS) as u64;
        record.borrow_mut().run_ns = run_ns;
        let (planned_ns, record) = (START_NS + phase, record.clone());
        Box::new(Periodic { run_ns, period_ns, planned_ns, step: PeriodicStep::New, record })
    }
}

/// Starts the others, then waits for their end.
struct Forks {
    left_ns: u64,
}

impl Program for Forks {
    fn next(&mut self, _now_ns: u64) -> Step {
        match std::mem::take(&mut self.left_ns) {
            0 => Step::Exit,
            ns => Step::Run(ns),
        }
    }
}

/// Computes without a pause, in pieces.
struct Hog;

impl Program for Hog {
    fn next(&mut self, _now_ns: u64) -> Step {
        Step::Run(1_000_000_000)
    }
}

/// Wakes on an absolute clock; what was missed is skipped.
struct Periodic {
    run_ns: u64,
    period_ns: u64,
    planned_ns: u64,
    step: PeriodicStep,
    record: Shared,
}

/// What a periodic task has done.
#[derive(Clone, Copy, PartialEq)]
enum PeriodicStep {
    New,
    Slept,
    Ran,
}

impl Program for Periodic {
    fn next(&mut self, now_ns: u64) -> Step {
        if self.step == PeriodicStep::New {
            self.step = PeriodicStep::Slept;
            return Step::Run(SET_UP_NS);
        }
        if self.step == PeriodicStep::Ran {
            self.step = PeriodicStep::Slept;
            let response = now_ns - self.planned_ns;
            let mut record = self.record.borrow_mut();
            record.responses_ns.push(response);
            record.overruns += u64::from(response > self.period_ns);
            self.planned_ns += self.period_ns * (response / self.period_ns + 1);
        }
        if now_ns < self.planned_ns {
            return Step::SleepUntil(self.planned_ns);
        }
        self.step = PeriodicStep::Ran;
        Step::Run(self.run_ns)
    }
}
