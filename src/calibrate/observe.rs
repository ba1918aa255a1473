//! Holds a block, and reads what the machine did meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use powerpack_load::clock::{self, NS_PER_S};

use super::load::Load;
use super::model::Seen;
use super::plan::Block;
use super::subject::{Subject, number};
use crate::machine::borrowed::Borrowed;
use crate::machine::layout::Group;
use crate::machine::power_meter::PowerMeter;
use crate::signals::Interrupted;

/// Ctrl-C takes effect, and a battery is read, after this time at most.
const STEP: Duration = Duration::from_secs(1);
/// More than this share of a CPU by others, all CPUs together, and a block is measured again,
const OTHERS_MAX_SHARE: f64 = 0.1;
/// so often in all.
const TRIES: usize = 3;

/// What measures.
pub struct Observer<'a> {
    pub subject: &'a Subject,
    pub settings: Borrowed,
    pub meter: PowerMeter,
    pub stop: &'a AtomicBool,
    /// How long a block is held before it is measured, and is measured if CPUs are busy.
    pub settle: Duration,
    pub length: Duration,
}

/// What cpuidle has counted of each CPU and state: time (us) and how often it was entered.
type Counts = BTreeMap<usize, Vec<(u64, u64)>>;

impl Observer<'_> {
    /// Measures a block, again if others ran or the machine was suspended. Fails with a sentence, or [`Interrupted`].
    pub fn measure(&mut self, block: &Block) -> Result<Seen> {
        let mut others = None;
        for _ in 0..TRIES {
            let seen = self.measure_once(block)?;
            // What the meter and cpuidle counted is not of the block alone.
            others =
                (!self.meter.was_suspended()).then(|| others_share(self.subject, block, &seen));
            if others.is_some_and(|others| others <= OTHERS_MAX_SHARE) {
                return Ok(seen);
            }
        }
        let Some(others) = others else {
            bail!("this machine was suspended while it was measured ({}): begin again", block.what)
        };
        bail!(
            "this machine is not idle any more: others used {:.0} % of a CPU while it was measured \
             ({}); end them, and begin again",
            others * 100.0,
            block.what
        )
    }

    fn measure_once(&mut self, block: &Block) -> Result<Seen> {
        self.settings.set(&self.subject.clock_files(&block.khz)?)?;
        self.settings.set(&self.subject.idle_files(&block.limits))?;
        let load = Load::start(&block.busy, block.waking);
        self.wait(self.settle)?;
        let before = self.counts(&block.busy)?;
        self.meter.look();
        self.meter.reset();
        let begin_ns = clock::now_ns();
        self.wait(block.length(self.length))?;
        let mhz = self.subject.mhz_now(&block.busy);
        let after = self.counts(&block.busy)?;
        self.meter.look();
        let seconds = (clock::now_ns() - begin_ns) as f64 / NS_PER_S;
        load.end()?;
        let power_w = self.meter.power_w(seconds);
        ensure!(
            power_w.is_some() || self.meter.was_suspended(),
            "nothing measures power any more: is a charger connected?"
        );
        let mut seen = self.seen(&before, &after, seconds);
        seen.power_mw = power_w.unwrap_or_default() * 1e3;
        seen.mhz = mhz;
        Ok(seen)
    }

    /// In steps, in which it looks at a battery.
    fn wait(&mut self, time: Duration) -> Result<()> {
        let end_ns = clock::now_ns() + time.as_nanos() as u64;
        loop {
            ensure!(!self.stop.load(Ordering::Relaxed), Interrupted);
            let left = Duration::from_nanos(end_ns.saturating_sub(clock::now_ns()));
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(STEP));
            self.meter.look();
        }
    }

    /// Of all CPUs. The kernel counts an idle state when it is left, which may be after seconds: each CPU
    /// that is not `busy` is woken before.
    fn counts(&self, busy: &[usize]) -> Result<Counts> {
        let mut counts = Counts::new();
        let all: Vec<usize> = self.subject.groups.iter().flat_map(Group::cpus).collect();
        for &cpu in all.iter().filter(|cpu| !busy.contains(cpu)) {
            clock::pin(&[cpu])?;
        }
        clock::pin(&all)?;
        for group in &self.subject.groups {
            for cpu in group.cpus() {
                let states = &self.subject.kinds[group.kind].idle;
                let read = |state| {
                    let dir = self.subject.state_dir(cpu, state);
                    Ok((number(&dir.join("time"))?, number(&dir.join("usage"))?))
                };
                counts.insert(cpu, states.iter().map(read).collect::<Result<_>>()?);
            }
        }
        Ok(counts)
    }

    fn seen(&self, before: &Counts, after: &Counts, seconds: f64) -> Seen {
        let mut seen = Seen::default();
        for group in &self.subject.groups {
            let states = &self.subject.kinds[group.kind].idle;
            let deepest_us = states.last().map_or(0.0, |state| state.exit_us);
            for cpu in group.cpus() {
                let both = after[&cpu].iter().zip(&before[&cpu]);
                let share = |after: u64, before: u64| (after - before) as f64 / 1e6 / seconds;
                let idle: Vec<f64> =
                    both.clone().map(|(after, before)| share(after.0, before.0)).collect();
                let weights = states.iter().map(|state| state.exit_us / deepest_us.max(1.0));
                let wakes = both.zip(weights).map(|((after, before), weight)| {
                    (after.1 - before.1) as f64 / seconds * weight
                });
                seen.wakes_per_s.insert(cpu, wakes.sum());
                seen.idle.insert(cpu, idle);
            }
        }
        seen
    }
}

/// What ran beside the block (share of a CPU); 0 where there are no idle states to tell.
fn others_share(subject: &Subject, block: &Block, seen: &Seen) -> f64 {
    let waking = block.waking.map(|(cpu, _)| cpu);
    let mut sum = 0.0;
    for group in subject.groups.iter().filter(|group| !subject.kinds[group.kind].idle.is_empty()) {
        for cpu in group.cpus().filter(|cpu| !block.busy.contains(cpu) && Some(*cpu) != waking) {
            sum += (1.0 - seen.idle[&cpu].iter().sum::<f64>()).max(0.0);
        }
    }
    sum
}
