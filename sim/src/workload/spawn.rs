//! Makes the tasks of a workload.

use std::rc::Rc;

use anyhow::{Result, ensure};

use powerpack_workload::{
    Exchange, ForkJoin, Phases, Pipeline, Rhythm, START_NS, TaskKind, Workload, ns, parse_cpu_list,
};

use super::programs::{
    Client, Forks, Handoff, Hog, Jitter, Leader, Member, Periodic, SharedRecord, Stage, Timing,
    Worker,
};
use crate::ext::CpuMask;
use crate::kernel::Kernel;
use crate::task::{Home, Program, TaskSpec};

/// What a program does to start a thread, if its workload does not say it; seen in a trace of powerpack-load.
const FORK_NS: u64 = 235_000;
/// All are started after this, however many.
const FORKS_NS: u64 = 40_000_000;

/// sched_prio_to_weight (kernel/sched/core.c), nice -20 to 19, of 1024.
const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// As `scx.weight`: sched_weight_to_cgroup(), of 100 and at least 1.
fn weight_of(nice: i32) -> u32 {
    let weight = NICE_WEIGHT[(nice + 20) as usize];
    ((weight * 100 + 512) / 1024).clamp(1, 10_000)
}

/// Makes tasks one after the other, as their parent would.
struct Parent<'a> {
    kernel: &'a mut Kernel,
    kind: &'a TaskKind,
    allowed: CpuMask,
    pins: &'a [usize],
    time_ns: u64,
    fork_ns: u64,
    seed: u64,
}

/// Makes the tasks of `workload`, pinned to `pins` if there are any; their records, by kind.
/// Fails if a task may run nowhere.
pub fn spawn(
    workload: &Workload,
    kernel: &mut Kernel,
    seed: u64,
    pins: &[usize],
) -> Result<Vec<SharedRecord>> {
    let everywhere = CpuMask::of(0..kernel.cpus.len());
    let nr = workload.nr_tasks() as u64;
    let fork_ns = workload.fork_ms.map_or(FORK_NS, ns).min(FORKS_NS / nr.max(1));
    let forks = Box::new(Forks { left_ns: nr * fork_ns });
    kernel.spawn(TaskSpec { name: "parent".into(), ..TaskSpec::new(forks, everywhere) }, 0);
    let (mut records, mut time_ns) = (Vec::new(), 0);
    for kind in &workload.task {
        let allowed = allowed(kind, kernel)?;
        let record = SharedRecord::default();
        let mut parent = Parent { kernel, kind, allowed, pins, time_ns, fork_ns, seed };
        for nth in 0..kind.count {
            parent.make(nth, workload.phases, &record);
        }
        time_ns = parent.time_ns;
        records.push(record);
    }
    Ok(records)
}

fn allowed(kind: &TaskKind, kernel: &Kernel) -> Result<CpuMask> {
    let nr = kernel.cpus.len();
    let Some(list) = &kind.cpus else { return Ok(CpuMask::of(0..nr)) };
    let cpus = parse_cpu_list(list)?;
    ensure!(
        !cpus.is_empty() && cpus.iter().all(|&cpu| cpu < nr),
        "cpus = \"{list}\": this machine has CPUs 0-{}",
        nr - 1
    );
    Ok(CpuMask::of(cpus))
}

impl Parent<'_> {
    fn spawn(&mut self, program: Box<dyn Program>) -> usize {
        self.time_ns += self.fork_ns;
        // The first task is the parent.
        let pin = self.pins.get(self.kernel.tasks.len() - 1);
        let allowed = pin.map_or(self.allowed, |&cpu| CpuMask::of([cpu]));
        let spec = TaskSpec {
            name: self.kind.label(),
            weight: weight_of(self.kind.nice),
            home: Home::Kind(
                self.kind.cgroup_weight,
                self.kind.workload.map_or(0, |treatment| treatment as u32),
            ),
            irq_cpu: self.kind.irq_cpu,
            shares_data: self.kind.shares_data,
            cache_kib: self.kind.cache_kib,
            ..TaskSpec::new(program, allowed)
        };
        self.kernel.spawn(spec, self.time_ns)
    }

    /// The number of the task that is spawned `ahead` tasks from now.
    fn upcoming(&self, ahead: usize) -> usize {
        self.kernel.tasks.len() + ahead
    }

    fn jitter(&mut self) -> Jitter {
        let nth = self.kernel.tasks.len() as u64;
        Jitter::new(
            self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(nth),
            self.kind.jitter_pct,
        )
    }

    fn make(&mut self, nth: usize, phases: Phases, record: &SharedRecord) {
        let (kind, seed) = (self.kind, self.seed);
        let start = |period_ns: u64| {
            let (nth, count) = (nth as u64, kind.count as u64);
            START_NS + phases.offset_ns(period_ns, nth, count, &kind.label(), seed)
        };
        let timing = |run_ms: f64, rhythm: Rhythm| Timing {
            run_ns: ns(run_ms),
            start_ns: start(rhythm.period_ns),
            rhythm,
        };
        let every = |period_ms: f64| Rhythm::every(ns(period_ms));
        let jitter = self.jitter();
        let record = record.clone();
        if let Some(spec) = kind.periodic {
            let timing = timing(spec.run_ms, spec.rhythm());
            self.spawn(Box::new(Periodic::new(timing, jitter, record, None)));
        } else if let Some(spec) = kind.bursts {
            let timing = timing(spec.run_ms, spec.rhythm());
            self.spawn(Box::new(Periodic::new(timing, jitter, record, None)));
        } else if let Some(spec) = &kind.pipeline {
            self.pipeline(spec, timing(spec.run_ms[0], every(spec.period_ms)), &record);
        } else if let Some(spec) = kind.fork_join {
            self.team(spec, timing(spec.leader_ms, every(spec.period_ms)), record);
        } else if let Some(spec) = kind.exchange {
            self.exchange(spec, &record);
        } else if let Some(spec) = kind.client {
            self.spawn(Box::new(Client::new(ns(spec.run_ms), ns(spec.think_ms), jitter, record)));
        } else {
            self.spawn(Box::new(Hog));
        }
    }

    fn pipeline(&mut self, spec: &Pipeline, timing: Timing, record: &SharedRecord) {
        let stages = spec.run_ms.len();
        let handoffs: Vec<Handoff> = (0..stages).map(|_| Handoff::default()).collect();
        for stage in 0..stages {
            let next =
                handoffs.get(stage + 1).map(|handoff| (self.upcoming(1), Rc::clone(handoff)));
            let (jitter, record) = (self.jitter(), record.clone());
            let program: Box<dyn Program> = if stage == 0 {
                Box::new(Periodic::new(timing, jitter, record, next))
            } else {
                let lengths_ns = (ns(spec.run_ms[stage]), timing.rhythm.period_ns);
                let from = Rc::clone(&handoffs[stage]);
                Box::new(Stage::new(lengths_ns, from, next, jitter, record))
            };
            self.spawn(program);
        }
        record.borrow_mut().run_ns = spec.run_ms.iter().map(|&run_ms| ns(run_ms)).sum();
    }

    fn exchange(&mut self, spec: Exchange, record: &SharedRecord) {
        let handoffs: Rc<[Handoff]> = (0..spec.tasks).map(|_| Handoff::default()).collect();
        let first_task = self.upcoming(0);
        record.borrow_mut().run_ns = ns(spec.run_ms);
        for own in 0..spec.tasks {
            let first_ns = (own < spec.messages).then_some(START_NS);
            let (run_ns, jitter, handoffs) = (ns(spec.run_ms), self.jitter(), handoffs.clone());
            let place = (own, first_task);
            let member = Member::new(run_ns, first_ns, place, handoffs, jitter, Rc::clone(record));
            self.spawn(Box::new(member));
        }
    }

    fn team(&mut self, spec: ForkJoin, timing: Timing, record: SharedRecord) {
        let leader = self.upcoming(spec.workers);
        let workers = (0..spec.workers)
            .map(|_| {
                let jitter = self.jitter();
                self.spawn(Box::new(Worker::new(ns(spec.run_ms), leader, jitter)))
            })
            .collect();
        let jitter = self.jitter();
        self.spawn(Box::new(Leader::new(timing, workers, jitter, record)));
    }
}
