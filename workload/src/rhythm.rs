//! When a task works that wakes on an absolute clock.

/// When a periodic task works.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rhythm {
    pub period_ns: u64,
    /// Duration of the working phase, before one of rest (ns); 0: it always works.
    pub on_ns: u64,
    pub off_ns: u64,
    /// A task that is late begins again at once; else what it missed is skipped, as a player
    /// drops frames.
    pub catch_up: bool,
}

impl Rhythm {
    /// Each `period_ns`, all the time.
    pub fn every(period_ns: u64) -> Self {
        Rhythm { period_ns, ..Rhythm::default() }
    }

    /// When it begins next (ns): the last time was planned for `planned_ns`, and is over.
    pub fn next(&self, planned_ns: u64, now_ns: u64, start_ns: u64) -> u64 {
        let response_ns = now_ns - planned_ns;
        let late = self.catch_up && response_ns > self.period_ns;
        let skipped_ns = planned_ns + self.period_ns * (response_ns / self.period_ns + 1);
        let next_ns = if late { now_ns } else { skipped_ns };
        let cycle_ns = self.on_ns + self.off_ns;
        let into_ns = if self.on_ns > 0 { (next_ns - start_ns) % cycle_ns } else { 0 };
        if into_ns < self.on_ns.max(1) { next_ns } else { next_ns - into_ns + cycle_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_skipped_or_caught_up() {
        let rhythm = Rhythm::every(10);
        assert_eq!(rhythm.next(100, 105, 0), 110);
        assert_eq!(rhythm.next(100, 125, 0), 130, "two are skipped");
        let rhythm = Rhythm { catch_up: true, ..rhythm };
        assert_eq!(rhythm.next(100, 105, 0), 110);
        assert_eq!(rhythm.next(100, 125, 0), 125, "late: at once");
    }

    #[test]
    fn bursts_go_on_after_their_rest() {
        let rhythm = Rhythm { on_ns: 30, off_ns: 70, ..Rhythm::every(10) };
        assert_eq!(rhythm.next(1010, 1012, 1000), 1020);
        assert_eq!(rhythm.next(1020, 1022, 1000), 1100, "30 of each 100 are for work");
    }
}
