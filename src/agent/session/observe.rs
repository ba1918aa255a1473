//! What is watched for clients, for as long as they ask.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Session;
use crate::control::protocol::Reply;

/// For how long latencies, or the placements of a task, are watched after they were asked
/// for: longer than the period of the slowest client that asks repeatedly.
const WATCH_LEASE: Duration = Duration::from_secs(10);

/// Until when what is watched.
#[derive(Default)]
pub(super) struct Leases {
    latency: Option<Instant>,
    /// Latencies are watched for good.
    keeps_latency: bool,
    /// Whose placements.
    watched: Option<(u32, Instant)>,
}

impl Leases {
    /// How long until the first one ends.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        let ends = [self.latency, self.watched.map(|(_, until)| until)];
        ends.into_iter().flatten().map(|end| end.saturating_duration_since(now)).min()
    }
}

impl Session<'_> {
    pub(super) fn top(&mut self, tasks: usize) -> Result<Reply> {
        self.scheduler.watch_latency(true)?;
        self.leases.latency = Some(Instant::now() + WATCH_LEASE);
        self.set_timer();
        let status = Box::new(self.status()?);
        Ok(Reply::Top { status, tasks: self.scheduler.busiest(tasks)? })
    }

    pub(super) fn why(&mut self, pid: u32, end: bool) -> Result<Reply> {
        match self.leases.watched {
            Some((other, until)) if other != pid && until > Instant::now() => {
                bail!("the placements of process {other} are being watched: try again later")
            }
            Some((same, _)) if same == pid => {}
            _ => {
                // What is there is of another task, or from long ago.
                self.scheduler.placements()?;
                self.scheduler.watch_pid(Some(pid))?;
            }
        }
        self.leases.watched = Some((pid, Instant::now() + WATCH_LEASE));
        if end {
            self.leases.watched = None;
            self.scheduler.watch_pid(None)?;
        }
        self.set_timer();
        let (placements, lost) = self.scheduler.placements()?;
        Ok(Reply::Why { placements, lost })
    }

    /// Stops watching what no client has asked for lately.
    pub(super) fn end_leases(&mut self, now: Instant) -> Result<()> {
        if self.leases.latency.is_some_and(|until| until <= now) {
            self.leases.latency = None;
            self.scheduler.watch_latency(self.leases.keeps_latency)?;
        }
        if self.leases.watched.is_some_and(|(_, until)| until <= now) {
            self.leases.watched = None;
            self.scheduler.watch_pid(None)?;
        }
        Ok(())
    }

    /// Whether wake-up latencies are measured for good: for a client that asks too seldom for a lease.
    pub(super) fn keep_latency(&mut self, keep: bool) -> Result<()> {
        if self.leases.keeps_latency == keep {
            return Ok(());
        }
        self.leases.keeps_latency = keep;
        self.scheduler.watch_latency(keep || self.leases.latency.is_some())
    }
}
