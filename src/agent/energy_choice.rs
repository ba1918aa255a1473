//! Has `auto` choose what takes the least energy, where its rules leave that open: runs the blocks that
//! [`super::proof`] plans, and reads the meter as they begin and end.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use log::{debug, info};

use crate::agent::desired::Desired;
use crate::agent::evidence_file::{self, EvidenceFile};
use crate::agent::proof::{Block, Follower, Kind, News, Plan, Proof, Verdict};
use crate::machine::power_meter::PowerMeter;
use crate::machine::power_model::{PowerModel, Source};
use crate::machine::topology::Ranks;
use crate::scheduler::latency::Latency;
use crate::scheduler::snapshot::Snapshot;
use crate::settings::auto::{Evidence, Ruled, Rules};
use crate::settings::hints;
use crate::settings::mode::Mode;

/// Where power is sampled, and what is read may be old, a block has this many looks at least, a minute,
const SAMPLED_LOOKS_MIN: u32 = 12;
/// and that many looks of it are left out: half of it.
const SAMPLED_SETTLE_LOOKS: u32 = 6;
/// Work is not measured over less time than this (ns): what runs at that moment would stand for all.
const SHARE_MIN_NS: u64 = 1_000_000_000;
/// Nothing is compared from this share of the pressure on from which the machine is busy.
const PRESSURE_SHARE: f64 = 0.5;
/// Nor while one wake-up in a hundred waits for longer than this many latency budgets: from there on a queue is overdue.
const BUDGETS_MAX: u32 = 3;

/// What the choice is made from at a look.
pub struct Look<'a> {
    pub now: &'a Snapshot,
    pub evidence: &'a Evidence,
    pub rules: &'a Rules,
    pub ruled: Ruled,
    /// How long tasks may wait.
    pub latency_budget: Duration,
    /// Somebody looks at the scheduler, and has for less than ten minutes: nothing is to change under his eyes.
    pub is_watched: bool,
}

impl Look<'_> {
    /// Whether tasks wait, by the kernel's pressure and by the wake-ups since `then`.
    fn suffers(&self, then: Option<&Latency>) -> bool {
        let pressure_max = f64::from(self.rules.pressure_pct) * PRESSURE_SHARE;
        let late_us = (self.latency_budget * BUDGETS_MAX).as_micros() as u64;
        let recent = then.map(|then| self.now.latency.since(then));
        let has_waited = recent.filter(|recent| recent.nr() > 0);
        // The bucket's upper bound is at most twice what it was; beyond all buckets it is late too.
        let is_late =
            |recent: Latency| recent.percentile_us(99.0).is_none_or(|us| us / 2 >= late_us);
        self.evidence.waiting_pct() >= pressure_max || has_waited.is_some_and(is_late)
    }
}

/// What has to stay as it is for a block to count. (A power profile that matters leaves nothing open.)
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conditions {
    on_battery: Option<bool>,
    nr_online: usize,
}

/// The instant at which something was read, and what was done until then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at_ns: u64,
    work_ns: u64,
    wake_ups: u64,
}

impl Mark {
    fn of(now: &Snapshot) -> Self {
        Mark { at_ns: now.now_ns, work_ns: now.work_ns(), wake_ups: now.latency.nr() }
    }

    /// What was done since, of what all CPUs can do (0..=1); `None`: over too short a time.
    fn share_until(self, now: &Snapshot) -> Option<f64> {
        let (ns, did_ns) =
            (now.now_ns.saturating_sub(self.at_ns), now.work_ns().saturating_sub(self.work_ns));
        let can = ns as f64 * now.capacity();
        (ns >= SHARE_MIN_NS && can > 0.0).then(|| did_ns as f64 / can)
    }
}

/// A block that runs.
struct Running {
    plan: Plan,
    kind: Option<Kind>,
    /// Until it is measured, and until it ends.
    settle_looks: u32,
    looks_left: u32,
    begin: Mark,
    latency: Latency,
}

/// Chooses, and remembers why.
pub struct EnergyChoice {
    proof: Proof,
    /// The mode that is chosen without evidence, and by what.
    prior: Mode,
    prior_by: String,
    meter: PowerMeter,
    file: EvidenceFile,
    has_read: bool,
    follower: Follower,
    last: Option<Mark>,
    conditions: Option<Conditions>,
    running: Option<Running>,
}

impl EnergyChoice {
    /// For this machine, of whose power that is known, and for modes with the knobs and hints that are desired. What
    /// was found out of all that before is read when it is needed.
    pub fn new(ranks: &Ranks, power: &PowerModel, desired: &Desired) -> Self {
        let (prior, prior_by) = match power.source {
            Source::Defaults => (Mode::Packing, "the load alone".to_owned()),
            source => (Mode::Energy, source.to_string()),
        };
        let root = hints::root();
        let of = evidence_file::subject(&root, ranks, power, &desired.args, &desired.hints);
        let file = EvidenceFile::new(Path::new(evidence_file::FILE), of);
        let proof = Proof::new(candidates(ranks), prior, unix_time().as_nanos() as u64);
        EnergyChoice {
            proof,
            prior,
            prior_by,
            meter: PowerMeter::begin(&root),
            file,
            has_read: false,
            follower: Follower::default(),
            last: None,
            conditions: None,
            running: None,
        }
    }

    /// What was found out, a sentence for each kind of load.
    pub fn sentences(&self) -> Vec<String> {
        self.proof.verdicts().map(Verdict::to_string).collect()
    }

    /// Whether modes take turns now.
    pub fn compares(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.plan.is_comparison)
    }

    /// What runs now is no longer what was planned: it does not count.
    pub fn interrupt(&mut self) {
        self.running = None;
        self.proof.drop_block();
    }

    /// The mode for the time until the next look, and why.
    pub fn choose(&mut self, look: Look<'_>) -> (Mode, String) {
        if !std::mem::replace(&mut self.has_read, true) {
            self.proof.recall(self.file.read());
        }
        let kind = self.follow(&look);
        if !look.ruled.is_open {
            self.interrupt();
            return (look.ruled.mode, look.ruled.why);
        }
        if look.suffers(self.running.as_ref().map(|running| &running.latency)) {
            self.running = None;
            self.proof.hold_off();
        }
        let now_unix = unix_time();
        let measures = look.rules.measure && self.meter.measures();
        if measures {
            self.go_on(look.now, now_unix);
        } else {
            self.interrupt();
        }
        let plan = self.proof.plan(kind, measures && !look.is_watched, now_unix.as_secs());
        if measures {
            self.begin(plan, kind, look.now);
        }
        (plan.mode, format!("{}; {}", look.ruled.why, self.why(kind, &look)))
    }

    /// Which kind of load it is. What ran while conditions changed does not count.
    fn follow(&mut self, look: &Look<'_>) -> Option<Kind> {
        let on_battery = look.evidence.on_battery;
        let conditions = Conditions { on_battery, nr_online: look.now.nr_online() };
        if self.conditions.replace(conditions) != Some(conditions) {
            self.interrupt();
            self.meter = PowerMeter::begin(&hints::root());
        }
        let share = self.last.and_then(|last| last.share_until(look.now));
        if self.last.is_none() || share.is_some() {
            self.last = Some(Mark::of(look.now));
        }
        match share {
            Some(share) => self.follower.follow(Kind::of(on_battery == Some(true), share)),
            None => self.follower.kind(),
        }
    }

    /// One look of the block that runs, if one does, is over.
    fn go_on(&mut self, now: &Snapshot, now_unix: Duration) {
        let Some(running) = &mut self.running else { return };
        if running.settle_looks > 0 {
            running.settle_looks -= 1;
            if running.settle_looks == 0 {
                self.meter.look();
                self.meter.reset();
                running.begin = Mark::of(now);
            }
            return;
        }
        running.looks_left -= 1;
        if running.looks_left > 0 {
            if !self.meter.is_exact() {
                self.meter.look();
            }
            return;
        }
        self.meter.look();
        let Some(running) = self.running.take() else { return };
        match self.block(&running, now) {
            Some(block) => {
                let news = self.proof.take(block, now_unix.as_secs());
                self.keep(news, running.kind);
            }
            None => self.proof.drop_block(),
        }
    }

    /// What was measured of the block that is over; `None`: it does not count.
    fn block(&self, running: &Running, now: &Snapshot) -> Option<Block> {
        let seconds = now.now_ns.saturating_sub(running.begin.at_ns) as f64 / 1e9;
        let work_share = running.begin.share_until(now)?;
        let joules = self.meter.power_w(seconds)? * seconds;
        let wake_ups = now.latency.nr().saturating_sub(running.begin.wake_ups);
        let (mode, capacity) = (running.plan.mode, now.capacity());
        let block = Block { mode, seconds, joules, work_share, capacity, wake_ups };
        debug!("auto: {block}");
        Some(block)
    }

    /// Keeps what is known, if it has changed.
    fn keep(&mut self, news: Option<News>, kind: Option<Kind>) {
        let sentence = self.proof.sentence(kind);
        match news {
            None => return,
            Some(News::Found) => info!("auto has compared modes: {sentence}"),
            Some(News::Contradicted) => {
                info!(
                    "auto compares modes again, as this no longer takes what it took: {sentence}"
                );
            }
        }
        self.file.write(self.proof.verdicts().cloned().collect());
    }

    /// What is planned begins, unless it runs already.
    fn begin(&mut self, plan: Plan, kind: Option<Kind>, now: &Snapshot) {
        let Some(looks) = plan.block_looks else {
            self.running = None;
            return;
        };
        if self.running.as_ref().is_some_and(|running| (running.plan, running.kind) == (plan, kind))
        {
            return;
        }
        let (settle_looks, looks_left) = block_looks(looks, self.meter.is_exact());
        self.meter.look();
        self.meter.reset();
        self.running = Some(Running {
            plan,
            kind,
            settle_looks,
            looks_left,
            begin: Mark::of(now),
            latency: now.latency.clone(),
        });
    }

    /// By what the mode is chosen.
    fn why(&self, kind: Option<Kind>, look: &Look<'_>) -> String {
        let Self { prior, prior_by, .. } = self;
        match self.proof.sentence(kind) {
            sentence if self.proof.knows(kind) => sentence,
            _ if !look.rules.measure => format!("{prior} is chosen by {prior_by}"),
            _ if !self.meter.measures() => {
                format!("{prior} is chosen by {prior_by}, as nothing measures power")
            }
            sentence if look.is_watched && self.proof.is_to_begin(kind) => {
                format!(
                    "{prior} is chosen by {prior_by}: {sentence}, as somebody has top or why open"
                )
            }
            sentence => format!("{prior} is chosen by {prior_by}: {sentence}"),
        }
    }
}

/// Of a block of so many looks: until it is measured, and while it is.
fn block_looks(looks: u32, is_exact: bool) -> (u32, u32) {
    if is_exact {
        return (0, looks);
    }
    // One that is watched is measured for as long as by counters: it is compared with blocks of that length.
    (SAMPLED_SETTLE_LOOKS, looks.max(SAMPLED_LOOKS_MIN) - SAMPLED_SETTLE_LOOKS)
}

/// What is compared: the two that save energy, which model and rules choose between; what lets all CPUs race to be idle;
/// and what keeps whole caches asleep, where there are several.
fn candidates(ranks: &Ranks) -> Vec<Mode> {
    let mut modes = vec![Mode::Packing, Mode::Energy, Mode::Spread];
    if ranks.llcs().len() > 1 {
        modes.push(Mode::Balance);
    }
    modes
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_a_meter_that_samples_no_block_is_measured_for_longer_than_half_a_minute() {
        assert_eq!([1, 6].map(|looks| block_looks(looks, true)), [(0, 1), (0, 6)]);
        assert_eq!([1, 6].map(|looks| block_looks(looks, false)), [(6, 6), (6, 6)]);
    }
}
