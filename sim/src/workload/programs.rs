//! What tasks of each kind do, and what is recorded of them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use powerpack_workload::Rhythm;

use crate::task::{Context, Program, Step};

/// What the tasks of one kind did since the clock started.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// From the planned wake-up, or the request, to the end of the work (ns).
    pub responses_ns: Vec<u64>,
    /// Work that was not done a period after it was planned to begin.
    pub overruns: u64,
    /// The task's own run time (ns), 0 if it has none.
    pub run_ns: u64,
}

impl Record {
    fn add(&mut self, response_ns: u64) {
        self.responses_ns.push(response_ns);
    }

    /// The same of what is late if `period_ns` is over, unless that is 0.
    fn done(&mut self, response_ns: u64, period_ns: u64) {
        self.add(response_ns);
        self.overruns += u64::from(period_ns > 0 && response_ns > period_ns);
    }

    /// Counts from now on.
    pub fn forget(&mut self) {
        self.responses_ns.clear();
        self.overruns = 0;
    }
}

/// Tasks of a kind share one.
pub type SharedRecord = Rc<RefCell<Record>>;

/// A thread's own set-up before it first sleeps; seen in a trace of powerpack-load
/// in the test VM.
const SET_UP_NS: u64 = 80_000;
/// Hogs compute without a pause, in pieces.
const PIECE_NS: u64 = 1_000_000_000;

/// Lengths that differ at random, evenly around a mean.
#[derive(Clone, Debug)]
pub struct Jitter {
    pub(super) random: fastrand::Rng,
    /// At most so much more or less (percent).
    pct: f64,
}

impl Jitter {
    pub fn new(seed: u64, pct: f64) -> Self {
        Jitter { random: fastrand::Rng::with_seed(seed), pct }
    }

    fn of(&mut self, mean_ns: u64) -> u64 {
        if self.pct == 0.0 {
            return mean_ns;
        }
        let factor = 1.0 + self.pct / 100.0 * (2.0 * self.random.f64() - 1.0);
        (mean_ns as f64 * factor) as u64
    }
}

/// Starts the others, then waits for their end.
pub struct Forks {
    pub left_ns: u64,
}

impl Program for Forks {
    fn next(&mut self, _context: &mut Context) -> Step {
        match std::mem::take(&mut self.left_ns) {
            0 => Step::Exit,
            ns => Step::Run(ns),
        }
    }
}

/// Computes without a pause.
pub struct Hog;

impl Program for Hog {
    fn next(&mut self, _context: &mut Context) -> Step {
        Step::Run(PIECE_NS)
    }
}

/// What a task that sleeps has done.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    New,
    Slept,
    Ran,
}

/// Pieces of work that a stage hands on: when each was planned to begin (ns).
pub type Handoff = Rc<RefCell<VecDeque<u64>>>;

/// What goes on with a piece of work: the task, and where it looks for it.
pub type Successor = Option<(usize, Handoff)>;

/// Finishes a piece that was planned for `planned_ns`: hands it on, or records it.
fn finish(
    context: &mut Context,
    planned_ns: u64,
    period_ns: u64,
    to: &Successor,
    record: &SharedRecord,
) {
    match to {
        Some((task, handoff)) => {
            handoff.borrow_mut().push_back(planned_ns);
            context.wake(*task, true);
        }
        None => record.borrow_mut().done(context.now_ns - planned_ns, period_ns),
    }
}

/// When a task works, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub run_ns: u64,
    /// The first wake-up.
    pub start_ns: u64,
    pub rhythm: Rhythm,
}

/// Wakes on an absolute clock.
pub struct Periodic {
    timing: Timing,
    planned_ns: u64,
    phase: Phase,
    jitter: Jitter,
    record: SharedRecord,
    to: Successor,
}

impl Periodic {
    pub fn new(timing: Timing, jitter: Jitter, record: SharedRecord, to: Successor) -> Self {
        record.borrow_mut().run_ns = timing.run_ns;
        let (planned_ns, phase) = (timing.start_ns, Phase::New);
        Periodic { timing, planned_ns, phase, jitter, record, to }
    }
}

impl Program for Periodic {
    fn next(&mut self, context: &mut Context) -> Step {
        if self.phase == Phase::New {
            self.phase = Phase::Slept;
            return Step::Run(SET_UP_NS);
        }
        if self.phase == Phase::Ran {
            self.phase = Phase::Slept;
            let Timing { rhythm, start_ns, .. } = self.timing;
            finish(context, self.planned_ns, rhythm.period_ns, &self.to, &self.record);
            self.planned_ns = rhythm.next(self.planned_ns, context.now_ns, start_ns);
        }
        if context.now_ns < self.planned_ns {
            return Step::SleepUntil(self.planned_ns);
        }
        self.phase = Phase::Ran;
        Step::Run(self.jitter.of(self.timing.run_ns))
    }
}

/// A later stage of a pipeline: works on what the one before has handed on.
pub struct Stage {
    run_ns: u64,
    /// Of the pipeline.
    period_ns: u64,
    works: bool,
    from: Handoff,
    to: Successor,
    jitter: Jitter,
    record: SharedRecord,
}

impl Stage {
    pub fn new(
        (run_ns, period_ns): (u64, u64),
        from: Handoff,
        to: Successor,
        jitter: Jitter,
        record: SharedRecord,
    ) -> Self {
        Stage { run_ns, period_ns, works: false, from, to, jitter, record }
    }
}

impl Program for Stage {
    fn next(&mut self, context: &mut Context) -> Step {
        if std::mem::take(&mut self.works) {
            let planned_ns = self.from.borrow_mut().pop_front().expect("it works on a piece");
            finish(context, planned_ns, self.period_ns, &self.to, &self.record);
        }
        if self.from.borrow().is_empty() {
            return Step::Block;
        }
        self.works = true;
        Step::Run(self.jitter.of(self.run_ns))
    }
}

/// One of an exchange: works on each message that it is handed, and hands it on to any of the
/// others. A response is from one handing on to the next.
pub struct Member {
    run_ns: u64,
    /// When it has a message of its own; `None`: not at all, or not any more.
    first_ns: Option<u64>,
    phase: Phase,
    /// Which of them it is.
    own: usize,
    /// The first of them.
    first_task: usize,
    /// Of all of them.
    handoffs: Rc<[Handoff]>,
    jitter: Jitter,
    record: SharedRecord,
}

impl Member {
    pub fn new(
        run_ns: u64,
        first_ns: Option<u64>,
        (own, first_task): (usize, usize),
        handoffs: Rc<[Handoff]>,
        jitter: Jitter,
        record: SharedRecord,
    ) -> Self {
        let phase = Phase::New;
        Member { run_ns, first_ns, phase, own, first_task, handoffs, jitter, record }
    }
}

impl Program for Member {
    fn next(&mut self, context: &mut Context) -> Step {
        if self.phase == Phase::Ran {
            self.phase = Phase::Slept;
            let own = &self.handoffs[self.own];
            let sent_ns = own.borrow_mut().pop_front().expect("it works on a message");
            self.record.borrow_mut().add(context.now_ns - sent_ns);
            let ahead = self.jitter.random.usize(1..self.handoffs.len());
            let to = (self.own + ahead) % self.handoffs.len();
            self.handoffs[to].borrow_mut().push_back(context.now_ns);
            context.wake(self.first_task + to, true);
        }
        if let Some(first_ns) = self.first_ns {
            if context.now_ns < first_ns {
                return Step::SleepUntil(first_ns);
            }
            self.first_ns = None;
            self.handoffs[self.own].borrow_mut().push_back(context.now_ns);
        }
        if self.handoffs[self.own].borrow().is_empty() {
            return Step::Block;
        }
        self.phase = Phase::Ran;
        Step::Run(self.jitter.of(self.run_ns))
    }
}

/// Splits work among others, does its own part, and waits for all; then again at
/// the next period, or at once if that has passed.
pub struct Leader {
    timing: Timing,
    workers: Vec<usize>,
    planned_ns: u64,
    phase: Phase,
    awaited: usize,
    jitter: Jitter,
    record: SharedRecord,
}

impl Leader {
    pub fn new(timing: Timing, workers: Vec<usize>, jitter: Jitter, record: SharedRecord) -> Self {
        let planned_ns = timing.start_ns;
        Leader { timing, workers, planned_ns, phase: Phase::New, awaited: 0, jitter, record }
    }
}

impl Program for Leader {
    fn next(&mut self, context: &mut Context) -> Step {
        if self.phase == Phase::Ran {
            if self.awaited > 0 {
                self.awaited -= 1;
                return Step::Block;
            }
            let period_ns = self.timing.rhythm.period_ns;
            self.record.borrow_mut().done(context.now_ns - self.planned_ns, period_ns);
            self.planned_ns = context.now_ns.max(self.planned_ns + period_ns);
        }
        self.phase = Phase::Slept;
        if context.now_ns < self.planned_ns {
            return Step::SleepUntil(self.planned_ns);
        }
        self.phase = Phase::Ran;
        self.awaited = self.workers.len();
        for &worker in &self.workers {
            context.wake(worker, false);
        }
        Step::Run(self.jitter.of(self.timing.run_ns))
    }
}

/// Works when its leader says so.
pub struct Worker {
    run_ns: u64,
    leader: usize,
    phase: Phase,
    jitter: Jitter,
}

impl Worker {
    pub fn new(run_ns: u64, leader: usize, jitter: Jitter) -> Self {
        Worker { run_ns, leader, phase: Phase::New, jitter }
    }
}

impl Program for Worker {
    fn next(&mut self, context: &mut Context) -> Step {
        if self.phase == Phase::Slept {
            self.phase = Phase::Ran;
            return Step::Run(self.jitter.of(self.run_ns));
        }
        if self.phase == Phase::Ran {
            context.wake(self.leader, true);
        }
        self.phase = Phase::Slept;
        Step::Block
    }
}

/// A client that thinks, asks, and waits for the answer, which it computes itself.
pub struct Client {
    run_ns: u64,
    think_ns: u64,
    asked_ns: u64,
    phase: Phase,
    jitter: Jitter,
    record: SharedRecord,
}

impl Client {
    pub fn new(run_ns: u64, think_ns: u64, jitter: Jitter, record: SharedRecord) -> Self {
        record.borrow_mut().run_ns = run_ns;
        Client { run_ns, think_ns, asked_ns: 0, phase: Phase::New, jitter, record }
    }
}

impl Program for Client {
    fn next(&mut self, context: &mut Context) -> Step {
        if self.phase == Phase::Slept {
            self.phase = Phase::Ran;
            return Step::Run(self.jitter.of(self.run_ns));
        }
        if self.phase == Phase::Ran {
            self.record.borrow_mut().add(context.now_ns - self.asked_ns);
        }
        self.phase = Phase::Slept;
        self.asked_ns = context.now_ns + self.jitter.of(self.think_ns);
        Step::SleepUntil(self.asked_ns)
    }
}
