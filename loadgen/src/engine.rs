//! Threads that do what their kind of task does: sleep on an absolute clock, burn CPU time
//! of their own, hand on to each other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Result, ensure};

use crate::clock::{self, NS_PER_S};
use crate::record::{Record, Report, report};
use crate::schedstat::Meter;

/// Time for the threads to get going before the clock starts.
const START_DELAY_NS: u64 = 50_000_000;
/// The measurement begins this much before the load, so as not to be part of it.
const METER_LEAD_NS: u64 = 1_000_000;
/// Those who compute without a pause do it in pieces.
const PIECE_NS: u64 = 1_000_000;

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
    pub work: Work,
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
    Hog,
}

impl Work {
    /// The own run time of an activation (ns), 0 if it has none.
    fn run_ns(&self) -> u64 {
        match self {
            Work::Periodic { run_ns, .. } | Work::Client { run_ns, .. } => *run_ns,
            Work::Pipeline { runs_ns, .. } => runs_ns.iter().sum(),
            Work::ForkJoin { .. } | Work::Hog => 0,
        }
    }
}

/// When a periodic task works.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rhythm {
    pub period_ns: u64,
    /// It works for so long, and then does not; 0: it always works.
    pub on_ns: u64,
    pub off_ns: u64,
    /// Who is late begins again at once; else what it missed is skipped, as a player
    /// drops frames.
    pub catch_up: bool,
}

impl Rhythm {
    /// When it begins next: the last time was planned for `planned_ns`, and is over.
    fn next(&self, planned_ns: u64, now_ns: u64, start_ns: u64) -> u64 {
        let response_ns = now_ns - planned_ns;
        let late = self.catch_up && response_ns > self.period_ns;
        let skipped_ns = planned_ns + self.period_ns * (response_ns / self.period_ns + 1);
        let next_ns = if late { now_ns } else { skipped_ns };
        let cycle_ns = self.on_ns + self.off_ns;
        let into_ns = if self.on_ns > 0 { (next_ns - start_ns) % cycle_ns } else { 0 };
        if into_ns < self.on_ns.max(1) { next_ns } else { next_ns - into_ns + cycle_ns }
    }
}

/// How a load is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// So long in all (s).
    pub seconds: f64,
    /// Of which the first so many are not measured (s).
    pub settle: f64,
    /// Tasks of a kind begin evenly apart in their period, else all at the same instant.
    pub stagger: bool,
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
struct Times {
    start: u64,
    settled: u64,
    end: u64,
}

/// Runs the threads of all kinds. Fails when one may not have its nice value or CPUs.
pub fn run(kinds: &[Kind], course: Course) -> Result<Report> {
    let start = clock::now_ns() + START_DELAY_NS;
    let after = |seconds: f64| start + (seconds * NS_PER_S) as u64;
    let times = Times { start, settled: after(course.settle), end: after(course.seconds) };
    let threads: Vec<Vec<_>> = kinds
        .iter()
        .map(|kind| {
            let tasks = 0..kind.count as u64;
            tasks.flat_map(|nth| spawn(kind, nth, course.stagger, times)).collect()
        })
        .collect();
    clock::sleep_until(times.settled - METER_LEAD_NS);
    let meter = Meter::start()?;
    clock::sleep_until(times.end);
    let non_idle = meter.stop()?;
    let mut records = Vec::new();
    for (kind, threads) in kinds.iter().zip(threads) {
        let (mut record, nr) = (Record::default(), threads.len());
        for thread in threads {
            record.merge(thread.join().expect("a load thread panicked")?);
        }
        records.push((kind.name.clone(), nr, kind.work.run_ns(), record));
    }
    Ok(report(records, course.seconds - course.settle, non_idle))
}

/// A thread at work.
struct Hand {
    nice: i32,
    cpus: Vec<usize>,
    jitter_pct: f64,
    random: fastrand::Rng,
    times: Times,
    record: Record,
}

type Thread = JoinHandle<Result<Record>>;

/// The threads of the `nth` task of a kind.
fn spawn(kind: &Kind, nth: u64, stagger: bool, times: Times) -> Vec<Thread> {
    let first = |period_ns: u64| {
        times.start + if stagger { period_ns * nth / kind.count as u64 } else { 0 }
    };
    let nr = |period_ns: u64| ((times.end - times.start) / period_ns.max(1) + 1) as usize;
    match &kind.work {
        Work::Periodic { run_ns, rhythm } => {
            let (run_ns, rhythm, start) = (*run_ns, *rhythm, first(rhythm.period_ns));
            let hand = Hand::of(kind, nth, times, nr(rhythm.period_ns));
            vec![hand.start(move |hand| hand.periodic(run_ns, rhythm, start, None))]
        }
        Work::Pipeline { runs_ns, rhythm } => {
            pipeline(kind, nth, times, (runs_ns, *rhythm), first(rhythm.period_ns))
        }
        Work::ForkJoin { workers, run_ns, leader_ns, period_ns } => {
            team(kind, nth, times, *workers, (*run_ns, *leader_ns), (*period_ns, first(*period_ns)))
        }
        Work::Client { run_ns, think_ns } => {
            let (run_ns, think_ns) = (*run_ns, *think_ns);
            let hand = Hand::of(kind, nth, times, nr(run_ns + think_ns));
            vec![hand.start(move |hand| hand.client(run_ns, think_ns))]
        }
        Work::Hog => vec![Hand::of(kind, nth, times, 0).start(Hand::hog)],
    }
}

/// The stages of a pipeline; what they hand on is when the piece was planned to begin.
fn pipeline(
    kind: &Kind,
    nth: u64,
    times: Times,
    (runs_ns, rhythm): (&[u64], Rhythm),
    start: u64,
) -> Vec<Thread> {
    let pieces = ((times.end - times.start) / rhythm.period_ns + 1) as usize;
    let mut threads = Vec::new();
    let mut from: Option<Receiver<u64>> = None;
    for (stage, &run_ns) in runs_ns.iter().enumerate() {
        let (to, next) = channel();
        let to = (stage + 1 < runs_ns.len()).then_some(to);
        let hand = Hand::of(kind, nth * runs_ns.len() as u64 + stage as u64, times, pieces);
        threads.push(match from.replace(next) {
            None => hand.start(move |hand| hand.periodic(run_ns, rhythm, start, to)),
            Some(from) => hand.start(move |hand| hand.stage(run_ns, &from, to)),
        });
    }
    threads
}

/// A leader and its workers.
fn team(
    kind: &Kind,
    nth: u64,
    times: Times,
    workers: usize,
    (run_ns, leader_ns): (u64, u64),
    (period_ns, start): (u64, u64),
) -> Vec<Thread> {
    let (done, all_done) = channel();
    let mut threads = Vec::new();
    let mut calls = Vec::new();
    for worker in 0..workers {
        let (call, called) = channel();
        let (done, seed) = (done.clone(), nth * (workers as u64 + 1) + worker as u64);
        calls.push(call);
        threads.push(Hand::of(kind, seed, times, 0).start(move |hand| {
            while called.recv().is_ok() {
                hand.burn(run_ns);
                // The leader waits for all it has called.
                let _ = done.send(());
            }
        }));
    }
    let pieces = ((times.end - times.start) / period_ns.max(run_ns) + 1) as usize;
    let hand = Hand::of(kind, nth * (workers as u64 + 1) + workers as u64, times, pieces);
    threads.push(hand.start(move |hand| hand.lead(leader_ns, period_ns, start, &calls, &all_done)));
    threads
}

impl Hand {
    fn of(kind: &Kind, seed: u64, times: Times, activations: usize) -> Self {
        Hand {
            nice: kind.nice,
            cpus: kind.cpus.clone(),
            jitter_pct: kind.jitter_pct,
            random: fastrand::Rng::with_seed(seed),
            times,
            record: Record::of(activations),
        }
    }

    fn start(mut self, work: impl FnOnce(&mut Hand) + Send + 'static) -> Thread {
        thread::spawn(move || {
            if !self.cpus.is_empty() {
                clock::pin(&self.cpus)?;
            }
            if self.nice != 0 {
                clock::set_nice(self.nice)?;
            }
            clock::exact_timers();
            work(&mut self);
            self.record.cpu_ns = clock::thread_cpu_ns();
            Ok(self.record)
        })
    }

    /// About `mean_ns`.
    fn about(&mut self, mean_ns: u64) -> u64 {
        let apart = self.jitter_pct / 100.0 * (2.0 * self.random.f64() - 1.0);
        (mean_ns as f64 * (1.0 + apart)) as u64
    }

    fn burn(&mut self, run_ns: u64) {
        clock::burn(self.about(run_ns));
    }

    fn settled(&self, planned: u64) -> bool {
        planned >= self.times.settled
    }

    fn sleep_until(&mut self, planned: u64) {
        clock::sleep_until(planned);
        let settled = self.settled(planned);
        self.record.woken(clock::now_ns() - planned, settled);
    }

    /// A piece that was planned for `planned` is handed on, or done.
    fn finish(&mut self, planned: u64, to: Option<&Sender<u64>>) -> u64 {
        let now = clock::now_ns();
        match to {
            // The next stage goes on until nobody hands it anything.
            Some(to) => drop(to.send(planned)),
            None => {
                let settled = self.settled(planned);
                self.record.done(now - planned, settled);
            }
        }
        now
    }

    fn periodic(&mut self, run_ns: u64, rhythm: Rhythm, start: u64, to: Option<Sender<u64>>) {
        let mut planned = start;
        while planned < self.times.end {
            self.sleep_until(planned);
            self.burn(run_ns);
            let now = self.finish(planned, to.as_ref());
            if now - planned > rhythm.period_ns {
                let settled = self.settled(planned);
                self.record.overrun(settled);
            }
            planned = rhythm.next(planned, now, start);
        }
    }

    fn stage(&mut self, run_ns: u64, from: &Receiver<u64>, to: Option<Sender<u64>>) {
        while let Ok(planned) = from.recv() {
            self.burn(run_ns);
            self.finish(planned, to.as_ref());
        }
    }

    fn lead(
        &mut self,
        run_ns: u64,
        period_ns: u64,
        start: u64,
        calls: &[Sender<()>],
        done: &Receiver<()>,
    ) {
        let mut planned = start;
        while planned < self.times.end {
            if clock::now_ns() < planned {
                self.sleep_until(planned);
            }
            let called = calls.iter().filter(|call| call.send(()).is_ok()).count();
            self.burn(run_ns);
            let _ = done.iter().take(called).count();
            let now = self.finish(planned, None);
            planned = now.max(planned + period_ns);
        }
    }

    fn client(&mut self, run_ns: u64, think_ns: u64) {
        loop {
            let planned = clock::now_ns().max(self.times.start) + self.about(think_ns);
            if planned >= self.times.end {
                return;
            }
            self.sleep_until(planned);
            self.burn(run_ns);
            self.finish(planned, None);
        }
    }

    fn hog(&mut self) {
        clock::sleep_until(self.times.start);
        while clock::now_ns() < self.times.end {
            clock::burn(PIECE_NS);
        }
    }
}
