//! What the scheduler's own code costs, by what it is called for: how long it takes, and, with the feature
//! `count-costs`, how many basic blocks it runs, how many atomic operations, and how many cache lines it gets
//! from other CPUs. With that feature the compiler calls a function at each basic block and at each access to
//! memory (`-fsanitize-coverage=trace-pc`, `-fsanitize=thread`, of which only the calls are used).

#[cfg(feature = "count-costs")]
mod hooks;
#[cfg(any(feature = "count-costs", test))]
mod lines;

use std::cell::RefCell;
use std::time::Instant;

/// Whether more than time is counted.
pub const COUNTS: bool = cfg!(feature = "count-costs");

/// What the scheduler is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task becomes runnable: where it goes.
    Wakeup,
    /// A CPU asks what to run, and gets something.
    Dispatch,
    /// The same, but there is nothing: it goes idle.
    IdleEntry,
    /// A task begins to run, or stops.
    Switch,
    /// A task stops that would go on: where it waits.
    Requeue,
    Tick,
}

impl Event {
    pub const ALL: [Event; 6] = [
        Event::Wakeup,
        Event::Dispatch,
        Event::IdleEntry,
        Event::Switch,
        Event::Requeue,
        Event::Tick,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Event::Wakeup => "wakeup",
            Event::Dispatch => "dispatch",
            Event::IdleEntry => "idle entry",
            Event::Switch => "switch",
            Event::Requeue => "requeue",
            Event::Tick => "tick",
        }
    }
}

/// What one call, or several for the same event, cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub ns: u64,
    pub blocks: u64,
    pub atomics: u64,
    /// Cache lines that another CPU had changed, or that others had copies of and that were changed here.
    pub lines: u64,
    /// Calls of the kernel that take the lock of a DSQ, or look one up.
    pub dsqs: u64,
}

/// What all events of a kind cost.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub events: Vec<Cost>,
}

impl Tally {
    /// The mean of a figure; 0 without events.
    pub fn mean(&self, figure: impl Fn(&Cost) -> u64) -> f64 {
        let sum: u64 = self.events.iter().map(figure).sum();
        sum as f64 / self.events.len().max(1) as f64
    }

    /// The highest value of a figure.
    pub fn max(&self, figure: impl Fn(&Cost) -> u64) -> u64 {
        self.events.iter().map(figure).max().unwrap_or(0)
    }
}

/// What is recorded, by [`Event`].
#[derive(Default)]
struct Recorder {
    tallies: [Tally; Event::ALL.len()],
    #[cfg(feature = "count-costs")]
    lines: lines::Lines,
    /// Since when the scheduler has run, and what it has cost so far.
    begin: Option<Instant>,
    cost: Cost,
    /// The CPU that it runs on, and the stack of who called it: what is near it no other CPU sees.
    here: (usize, usize),
}

thread_local! {
    static RECORDER: RefCell<Option<Box<Recorder>>> = const { RefCell::new(None) };
}

fn recorder(f: impl FnOnce(&mut Recorder)) {
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            f(recorder);
        }
    });
}

/// Begins to record on this thread.
pub fn record() {
    RECORDER.set(Some(Box::default()));
}

/// Ends it: what was recorded since [`forget`], by [`Event`] as a number. Empty if nothing was.
pub fn take() -> [Tally; Event::ALL.len()] {
    RECORDER.take().map(|recorder| recorder.tallies).unwrap_or_default()
}

/// Counts from now on; which CPU has which lines is still known.
pub(crate) fn forget() {
    recorder(|r| r.tallies = Default::default());
}

/// The scheduler is about to run on `cpu`.
pub(crate) fn begin(cpu: usize) {
    let here = (cpu, std::ptr::from_ref(&cpu) as usize);
    recorder(|r| (r.here, r.begin) = (here, Some(Instant::now())));
}

/// It has, for what is said by [`was_for`].
pub(crate) fn end() {
    recorder(|r| {
        if let Some(begin) = r.begin.take() {
            r.cost.ns += begin.elapsed().as_nanos() as u64;
        }
    });
}

/// All that it has done since the last call was for `event`.
pub(crate) fn was_for(event: Event) {
    recorder(|r| {
        let cost = std::mem::take(&mut r.cost);
        r.tallies[event as usize].events.push(cost);
    });
}

/// What it has done since was for something else, or goes with what comes next: not counted.
pub(crate) fn was_for_nothing() {
    recorder(|r| r.cost = Cost::default());
}

/// It calls the kernel for a DSQ.
pub(crate) fn uses_dsq() {
    recorder(|r| r.cost.dsqs += 1);
}
