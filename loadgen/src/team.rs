//! The threads of a task, and what goes between them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context, Result};

use powerpack_workload::Rhythm;

use crate::clock;
use crate::engine::{Kind, Load, Work};
use crate::worker::{Mailbox, Piece, Thread, Worker};

/// Random phases are those of the simulator's first seed.
const PHASES_SEED: u64 = 1;
/// Room for this many is made beforehand: a message goes on every few tens of microseconds.
const ACTIVATIONS_OF_MEMBER: usize = 1 << 16;

/// The threads of the `nth` task of a kind.
pub fn spawn(kind: &Kind, nth: u64, load: Load) -> Result<Vec<Thread>> {
    let times = load.times;
    let first = |period_ns: u64| {
        let count = kind.count as u64;
        times.start + load.phases.offset_ns(period_ns, nth, count, &kind.name, PHASES_SEED)
    };
    let nr = |period_ns: u64| ((times.end - times.start) / period_ns.max(1) + 1) as usize;
    Ok(match &kind.work {
        Work::Periodic { run_ns, rhythm } => {
            let (run_ns, rhythm, start) = (*run_ns, *rhythm, first(rhythm.period_ns));
            let worker = Worker::of(kind, nth, load, nr(rhythm.period_ns));
            vec![worker.start(move |worker| worker.periodic(run_ns, rhythm, start, None))?]
        }
        Work::Pipeline { runs_ns, rhythm } => {
            pipeline(kind, nth, load, (runs_ns, *rhythm), first(rhythm.period_ns))?
        }
        Work::ForkJoin { workers, run_ns, leader_ns, period_ns } => {
            team(kind, nth, load, *workers, (*run_ns, *leader_ns), (*period_ns, first(*period_ns)))?
        }
        Work::Client { run_ns, think_ns } => {
            let (run_ns, think_ns) = (*run_ns, *think_ns);
            let worker = Worker::of(kind, nth, load, nr(run_ns + think_ns));
            vec![worker.start(move |worker| worker.client(run_ns, think_ns))?]
        }
        Work::Exchange { tasks, messages, run_ns } => {
            exchange(kind, nth, load, (*tasks, *messages, *run_ns))?
        }
        Work::Hog => vec![Worker::of(kind, nth, load, nr(1_000_000)).start(Worker::hog)?],
    })
}

/// The stages of a pipeline.
fn pipeline(
    kind: &Kind,
    nth: u64,
    load: Load,
    (runs_ns, rhythm): (&[u64], Rhythm),
    start: u64,
) -> Result<Vec<Thread>> {
    let pieces = ((load.times.end - load.times.start) / rhythm.period_ns + 1) as usize;
    let mut threads = Vec::new();
    let mut from: Option<Receiver<Piece>> = None;
    for (stage, &run_ns) in runs_ns.iter().enumerate() {
        let (to, next) = channel();
        let to = (stage + 1 < runs_ns.len()).then_some(to);
        let worker = Worker::of(kind, nth * runs_ns.len() as u64 + stage as u64, load, pieces);
        threads.push(match from.replace(next) {
            None => worker.start(move |worker| worker.periodic(run_ns, rhythm, start, to))?,
            Some(from) => {
                worker.start(move |worker| worker.stage((run_ns, rhythm.period_ns), &from, to))?
            }
        });
    }
    Ok(threads)
}

/// A leader and its workers.
fn team(
    kind: &Kind,
    nth: u64,
    load: Load,
    workers: usize,
    (run_ns, leader_ns): (u64, u64),
    (period_ns, start): (u64, u64),
) -> Result<Vec<Thread>> {
    let (done, all_done) = channel();
    let mut threads = Vec::new();
    let mut calls = Vec::new();
    for worker in 0..workers {
        let (call, called) = channel();
        let (done, seed) = (done.clone(), nth * (workers as u64 + 1) + worker as u64);
        calls.push(call);
        threads.push(Worker::of(kind, seed, load, 0).start(move |worker| {
            while worker.next(&called, |&at| at).is_some() {
                worker.burn(run_ns);
                // The leader waits for all it has called.
                let _ = done.send(clock::now_ns());
            }
        })?);
    }
    let pieces = ((load.times.end - load.times.start) / period_ns.max(run_ns) + 1) as usize;
    let worker = Worker::of(kind, nth * (workers as u64 + 1) + workers as u64, load, pieces);
    threads.push(
        worker.start(move |worker| worker.lead(leader_ns, period_ns, start, &calls, &all_done))?,
    );
    Ok(threads)
}

/// Tasks with a pipe each, into which any of the others writes.
fn exchange(
    kind: &Kind,
    nth: u64,
    load: Load,
    (tasks, messages, run_ns): (usize, usize, u64),
) -> Result<Vec<Thread>> {
    let pipes = (0..tasks).map(|_| io::pipe()).collect::<io::Result<Vec<_>>>();
    let (readers, writers): (Vec<_>, Vec<_>) =
        pipes.context("cannot make pipes for an exchange")?.into_iter().unzip();
    let writers = Arc::new(writers);
    let start = |(own, reader)| {
        let worker = Worker::of(kind, nth * tasks as u64 + own as u64, load, ACTIVATIONS_OF_MEMBER);
        let mailbox = Mailbox { own, reader, writers: Arc::clone(&writers) };
        worker.start(move |worker| worker.member(run_ns, own < messages, mailbox))
    };
    readers.into_iter().enumerate().map(start).collect()
}
