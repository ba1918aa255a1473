//! What is watched for clients, for as long as they ask.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Session;
use crate::control::protocol::Reply;

/// For how long latencies, or the placements of a task, are watched after they were asked
/// for: longer than the period of the slowest client that asks repeatedly.
const WATCH_LEASE: Duration = Duration::from_secs(10);
/// For how long at most a look defers what `auto` changes to compare modes: anyone may look, and a `top` that is left
/// open for days would have it never compare.
const DEFERS_MAX: Duration = Duration::from_secs(600);

/// Until when what is watched.
#[derive(Default)]
pub(super) struct Leases {
    latency: Option<Instant>,
    /// Latencies are watched for good.
    keeps_latency: bool,
    /// Whose placements.
    watched: Option<(u32, Instant)>,
    /// Since when anything is, without a pause.
    since: Option<Instant>,
}

impl Leases {
    /// How long until the first one ends.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        self.ends().map(|end| end.saturating_duration_since(now)).min()
    }

    fn ends(&self) -> impl Iterator<Item = Instant> {
        [self.latency, self.watched.map(|(_, until)| until)].into_iter().flatten()
    }

    fn is_looked_at(&self, now: Instant) -> bool {
        self.ends().any(|end| end > now)
    }

    /// Whether somebody looks, and has not looked for so long that what is to change has to wait no more.
    pub fn defer_changes(&self, now: Instant) -> bool {
        self.is_looked_at(now)
            && self.since.is_some_and(|since| now.saturating_duration_since(since) < DEFERS_MAX)
    }

    /// Latencies are asked for.
    fn look_at_latency(&mut self, now: Instant) {
        self.note_look(now);
        self.latency = Some(now + WATCH_LEASE);
    }

    /// The placements of process `pid` are.
    fn look_at(&mut self, pid: u32, now: Instant) {
        self.note_look(now);
        self.watched = Some((pid, now + WATCH_LEASE));
    }

    fn note_look(&mut self, now: Instant) {
        if !self.is_looked_at(now) {
            self.since = Some(now);
        }
    }

    /// Ends what is over; whether that of latencies was, and that of a process.
    fn end(&mut self, now: Instant) -> (bool, bool) {
        let latency = self.latency.take_if(|until| *until <= now).is_some();
        (latency, self.watched.take_if(|(_, until)| *until <= now).is_some())
    }
}

impl Session<'_> {
    pub(super) fn top(&mut self, tasks: usize) -> Result<Reply> {
        self.scheduler.watch_latency(true)?;
        self.leases.look_at_latency(Instant::now());
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
        self.leases.look_at(pid, Instant::now());
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
        let (latency, watched) = self.leases.end(now);
        if latency {
            self.scheduler.watch_latency(self.leases.keeps_latency)?;
        }
        if watched {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_all_the_time_does_not_defer_what_auto_compares_for_good() {
        let (mut leases, begin) = (Leases::default(), Instant::now());
        let after = |seconds: u64| begin + Duration::from_secs(seconds);
        assert!(!leases.defer_changes(begin), "nobody looks");
        for second in 0..700 {
            leases.look_at_latency(after(second));
            assert_eq!(leases.end(after(second)), (false, false));
            assert_eq!(leases.defer_changes(after(second)), second < 600, "{second} s");
        }
        // A pause, and it is a new look.
        assert_eq!(leases.end(after(720)), (true, false));
        leases.look_at(7, after(730));
        assert!(leases.defer_changes(after(739)) && !leases.defer_changes(after(740)));
        assert_eq!(leases.end(after(740)), (false, true));
    }
}
