//! One thread at work: sleeps on an absolute clock, burns CPU time of its own or does fixed
//! work, passes on to others.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use anyhow::Result;

use powerpack_workload::Rhythm;

use crate::clock::{self, NS_PER_S};
use crate::engine::{Kind, Load, Times};
use crate::record::Record;
use crate::threads;

/// Hogs compute without a pause, in pieces.
const PIECE_NS: u64 = 1_000_000;

/// What one stage of a pipeline hands on to the next.
pub struct Piece {
    /// When it was planned to begin,
    planned: u64,
    /// and when it was handed on.
    sent: u64,
}

/// A thread at work.
pub struct Worker {
    nice: i32,
    cpus: Vec<usize>,
    jitter_pct: f64,
    random: fastrand::Rng,
    times: Times,
    /// For fixed work; else `None`.
    additions_per_s: Option<u64>,
    record: Record,
}

/// Ends with what it met.
pub type Thread = JoinHandle<Result<Record>>;

impl Worker {
    /// Of a task of `kind`, for about that number of `activations`.
    pub fn of(kind: &Kind, seed: u64, load: Load, activations: usize) -> Self {
        Worker {
            nice: kind.nice,
            cpus: kind.cpus.clone(),
            jitter_pct: kind.jitter_pct,
            random: fastrand::Rng::with_seed(seed),
            times: load.times,
            additions_per_s: kind.fixed_work.then_some(load.additions_per_s),
            record: Record::of(activations),
        }
    }

    /// Starts the thread that does `work`. Fails where the kernel allows no more of them.
    pub fn start(mut self, work: impl FnOnce(&mut Worker) + Send + 'static) -> Result<Thread> {
        let run = move || {
            if !self.cpus.is_empty() {
                clock::pin(&self.cpus)?;
            }
            if self.nice != 0 {
                clock::set_nice(self.nice)?;
            }
            clock::exact_timers();
            work(&mut self);
            clock::end_run();
            self.record.cpu_ns = clock::thread_cpu_ns();
            Ok(self.record)
        };
        threads::start(run)
    }

    /// About `mean_ns`.
    fn about(&mut self, mean_ns: u64) -> u64 {
        let deviation = self.jitter_pct / 100.0 * (2.0 * self.random.f64() - 1.0);
        (mean_ns as f64 * (1.0 + deviation)) as u64
    }

    /// Does what takes about `run_ns`.
    pub fn burn(&mut self, run_ns: u64) {
        let run_ns = self.about(run_ns);
        match self.additions_per_s {
            None => clock::burn(run_ns),
            Some(per_s) => clock::work((run_ns as f64 * per_s as f64 / NS_PER_S) as u64),
        }
    }

    /// Was called by another thread at `called`: until now that is its wake-up latency.
    fn called(&mut self, called: u64) {
        let settled = self.settled(called);
        self.record.woken(clock::now_ns() - called, settled);
    }

    fn settled(&self, planned: u64) -> bool {
        planned >= self.times.settled
    }

    fn sleep_until(&mut self, planned: u64) {
        clock::sleep_until(planned);
        let settled = self.settled(planned);
        self.record.woken(clock::now_ns() - planned, settled);
    }

    /// A piece that was planned for `planned` is handed on, or done: late if `period_ns` is over, unless that is 0.
    fn finish(&mut self, planned: u64, period_ns: u64, to: Option<&Sender<Piece>>) -> u64 {
        let now = clock::now_ns();
        match to {
            // The next stage goes on until nothing is passed to it.
            Some(to) => drop(to.send(Piece { planned, sent: now })),
            None => {
                let settled = self.settled(planned);
                self.record.done(now - planned, settled);
                if period_ns > 0 && now - planned > period_ns {
                    self.record.overrun(settled);
                }
            }
        }
        now
    }

    /// What comes next, of which `sent` says when; `None`: there is no more. A thread that need not wait for it is
    /// not woken.
    pub fn next<T>(&mut self, from: &Receiver<T>, sent: impl Fn(&T) -> u64) -> Option<T> {
        if let Ok(next) = from.try_recv() {
            return Some(next);
        }
        let next = from.recv().ok()?;
        self.called(sent(&next));
        Some(next)
    }

    /// Works every period, and passes what it did on `to` another thread, if given.
    pub fn periodic(&mut self, run_ns: u64, rhythm: Rhythm, start: u64, to: Option<Sender<Piece>>) {
        let mut planned = start;
        while planned < self.times.end {
            self.sleep_until(planned);
            self.burn(run_ns);
            let now = self.finish(planned, rhythm.period_ns, to.as_ref());
            planned = rhythm.next(planned, now, start);
        }
    }

    /// Works on what is passed to it, and passes it on.
    pub fn stage(
        &mut self,
        (run_ns, period_ns): (u64, u64),
        from: &Receiver<Piece>,
        to: Option<Sender<Piece>>,
    ) {
        while let Some(piece) = self.next(from, |piece| piece.sent) {
            self.burn(run_ns);
            self.finish(piece.planned, period_ns, to.as_ref());
        }
    }

    /// Calls the workers, works itself, and waits until all are done; again and again.
    pub fn lead(
        &mut self,
        run_ns: u64,
        period_ns: u64,
        start: u64,
        calls: &[Sender<u64>],
        done: &Receiver<u64>,
    ) {
        let mut planned = start;
        while planned < self.times.end {
            if clock::now_ns() < planned {
                self.sleep_until(planned);
            }
            let called = calls.iter().filter(|call| call.send(clock::now_ns()).is_ok()).count();
            self.burn(run_ns);
            for _ in 0..called {
                self.next(done, |&sent| sent);
            }
            let now = self.finish(planned, period_ns, None);
            planned = now.max(planned + period_ns);
        }
    }

    /// Thinks, then works.
    pub fn client(&mut self, run_ns: u64, think_ns: u64) {
        loop {
            let planned = clock::now_ns().max(self.times.start) + self.about(think_ns);
            if planned >= self.times.end {
                return;
            }
            self.sleep_until(planned);
            self.burn(run_ns);
            self.finish(planned, 0, None);
        }
    }

    /// Computes without a pause.
    pub fn hog(&mut self) {
        clock::sleep_until(self.times.start);
        loop {
            let begin = clock::now_ns();
            if begin >= self.times.end {
                return;
            }
            self.burn(PIECE_NS);
            // Of CPU time there is as much as there is: only work counts.
            if self.additions_per_s.is_some() {
                self.finish(begin, 0, None);
            }
        }
    }

    /// Works on each message that comes, and passes it on with the time; the first message
    /// is its own if it `begins`. The one that sees the end informs the others.
    pub fn member(&mut self, run_ns: u64, begins: bool, mut mailbox: Mailbox) {
        let mut message = if begins {
            clock::sleep_until(self.times.start);
            Some(self.times.start)
        } else {
            self.receive(&mut mailbox)
        };
        while let Some(sent) = message {
            self.burn(run_ns);
            let now = self.finish(sent, 0, None);
            if now >= self.times.end {
                return mailbox.send_all(OVER);
            }
            let ahead = self.random.usize(1..mailbox.writers.len());
            mailbox.write((mailbox.own + ahead) % mailbox.writers.len(), now);
            message = self.receive(&mut mailbox);
        }
    }

    /// When the next message was sent; `None`: there are no more.
    fn receive(&mut self, mailbox: &mut Mailbox) -> Option<u64> {
        let sent = mailbox.read();
        if sent == OVER {
            return None;
        }
        self.called(sent);
        Some(sent)
    }
}

/// Instead of a time: there are no more messages.
const OVER: u64 = u64::MAX;

/// How the tasks of an exchange reach each other; a message is when it was sent.
pub struct Mailbox {
    /// Which of them it is.
    pub own: usize,
    pub reader: PipeReader,
    pub writers: Arc<Vec<PipeWriter>>,
}

impl Mailbox {
    fn read(&mut self) -> u64 {
        let mut message = [0; 8];
        // No thread closes a pipe before all are signalled, so that there is something to read.
        self.reader.read_exact(&mut message).map_or(OVER, |()| u64::from_ne_bytes(message))
    }

    fn write(&self, to: usize, message: u64) {
        // One that has left needs no message any more.
        let _ = (&self.writers[to]).write_all(&message.to_ne_bytes());
    }

    fn send_all(&self, message: u64) {
        (0..self.writers.len()).for_each(|to| self.write(to, message));
    }
}
