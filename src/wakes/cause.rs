//! What has woken a CPU, by what happened from the moment at which it fell asleep until a task ran
//! there or it fell asleep again.
//!
//! The first interrupt decides; what it did then says more: whose timer expired, which task was
//! woken. Some idle states are left before the interrupt is served, some after it, and from some a
//! CPU is woken without one, by a write to the memory that it watches: so the end of the idle state
//! itself says only that it was woken.

use std::collections::BTreeMap;
use std::fmt;

use super::event::{Event, Interrupt, Task, Waker, What};

/// From the request that a CPU look for a task until it is awake (ns) it takes some us. In a virtual
/// machine the host may take its time; later than this it is another's request that is seen.
const KICK_REACHES_NS: u64 = 1_000_000;

/// The functions of the tick's timer, by kernel.
const TICKS: [&str; 3] = ["tick_nohz_handler", "tick_nohz_highres_handler", "tick_sched_timer"];
/// The function that a CPU calls for another one to wake a task.
const REMOTE_WAKEUP: &str = "sched_ttwu_pending";

/// Softirqs by their number, as `/proc/softirqs` names them.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Why a CPU was woken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A task was to run.
    Task {
        task: Task,
        by: By,
    },
    /// A timer that woke no task: its function, and whether that was the work of delayed work.
    Timer(String),
    /// The CPU's own tick, with no timer that was due.
    Tick,
    /// The CPU's timer, with nothing that was due.
    TimerInterrupt,
    Interrupt {
        nr: u32,
        name: String,
    },
    /// A function that another CPU had it call.
    Function(String),
    IrqWork,
    Ipi(String),
    Softirq(String),
    /// A sched_ext scheduler had it look for a task, and there was none.
    Kick,
    /// The same, by whom is not known.
    Reschedule,
    Unknown,
}

/// What had the task run there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// A timer of this function expired on the CPU; `elsewhere`: and then it did not run there.
    Timer {
        function: String,
        elsewhere: bool,
    },
    /// The task of this name woke it, or an interrupt that came to it.
    Task {
        name: String,
        kicked: bool,
    },
    /// An interrupt did that came to another CPU, an idle one.
    Interrupt {
        kicked: bool,
    },
    Unknown {
        kicked: bool,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Task { task, by } => write!(f, "task {} ({}), {by}", task.name, task.pid),
            Cause::Timer(function) => write!(f, "timer {function}"),
            Cause::Tick => f.write_str("tick"),
            Cause::TimerInterrupt => f.write_str("timer interrupt, with nothing due"),
            Cause::Interrupt { nr, name } => write!(f, "interrupt {nr} {name}"),
            Cause::Function(function) => write!(f, "function call {function}"),
            Cause::IrqWork => f.write_str("irq work"),
            Cause::Ipi(name) => write!(f, "interrupt between CPUs: {name}"),
            Cause::Softirq(name) => write!(f, "softirq {name} alone"),
            Cause::Kick => f.write_str("kick of the scheduler, with no task to run"),
            Cause::Reschedule => f.write_str("reschedule interrupt, with no task to run"),
            Cause::Unknown => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kicked = match self {
            By::Timer { function, elsewhere } => {
                write!(f, "timer {function}")?;
                return f.write_str(if *elsewhere { "; it ran on another CPU" } else { "" });
            }
            By::Task { name, kicked } => {
                write!(f, "woken by {name}")?;
                kicked
            }
            By::Interrupt { kicked } => {
                f.write_str("woken by an interrupt elsewhere")?;
                kicked
            }
            By::Unknown { kicked } => {
                f.write_str("by whom is not known")?;
                kicked
            }
        };
        f.write_str(if *kicked { "; kick of the scheduler" } else { "" })
    }
}

/// A stay in an idle state, and what came then.
#[derive(Debug, Default)]
struct Sleep {
    /// It did not sleep, it polled.
    polls: bool,
    /// When the first sign was seen that it does not sleep any more.
    ended_ns: Option<u64>,
    nr_interrupts: u32,
    /// The first one.
    interrupt: Option<Interrupt>,
    /// What it expired: the function, or that of its work.
    timer: Option<String>,
    function: Option<String>,
    softirq: Option<u32>,
    /// The first task that was woken by it.
    woken: Option<Task>,
}

impl Sleep {
    fn note(&mut self, event: Event) {
        self.ended_ns.get_or_insert(event.now_ns);
        match event.what {
            What::Interrupt(interrupt) => self.note_interrupt(interrupt),
            What::Hrtimer(function) if self.nr_interrupts == 1 && self.timer.is_none() => {
                self.timer = Some(function);
            }
            // It is run by the tick, maybe after another interrupt: what the tick was for.
            What::Timer { function, work } if self.is_tick() => {
                self.timer = Some(work.unwrap_or(function));
            }
            What::Function(function) => {
                self.function.get_or_insert(function);
            }
            What::Softirq(nr) => {
                self.softirq.get_or_insert(nr);
            }
            What::Wakes(task) => {
                self.woken.get_or_insert(task);
            }
            _ => (),
        }
    }

    /// On arm64 an interrupt between CPUs is a numbered one first.
    fn note_interrupt(&mut self, interrupt: Interrupt) {
        let refines = self.nr_interrupts == 1
            && !matches!(interrupt, Interrupt::Numbered { .. })
            && matches!(&self.interrupt, Some(Interrupt::Numbered { name, .. }) if name == "IPI");
        if self.nr_interrupts == 0 || refines {
            self.interrupt = Some(interrupt);
        }
        self.nr_interrupts += u32::from(!refines);
    }

    /// Its timer has expired, and it is for the tick, or, without timers of high resolution, for
    /// all there is.
    fn is_tick(&self) -> bool {
        match &self.timer {
            Some(function) => TICKS.contains(&function.as_str()),
            None => self.interrupt == Some(Interrupt::Timer),
        }
    }

    /// What it was; `runs` is the task that ran then, `kicked` whether a kick was on its way.
    fn cause(self, runs: Option<(Task, Waker)>, kicked: bool) -> Cause {
        if let Some(function) = self.timer {
            return timer_cause(function, self.woken, runs);
        }
        match self.interrupt {
            Some(Interrupt::Numbered { nr, name }) => return Cause::Interrupt { nr, name },
            Some(Interrupt::Timer) => return Cause::TimerInterrupt,
            Some(Interrupt::IrqWork) => return Cause::IrqWork,
            Some(Interrupt::Ipi(name)) => return Cause::Ipi(name),
            _ => (),
        }
        if let Some(function) = self.function.filter(|function| function != REMOTE_WAKEUP) {
            return Cause::Function(function);
        }
        match (runs, self.interrupt, self.softirq) {
            (Some((task, waker)), ..) => Cause::Task { task, by: by(waker, kicked) },
            _ if kicked => Cause::Kick,
            (None, Some(Interrupt::Reschedule), _) => Cause::Reschedule,
            (None, Some(_), _) => Cause::Function("of unknown name".into()),
            (None, None, Some(nr)) => Cause::Softirq(softirq(nr)),
            (None, None, None) => Cause::Unknown,
        }
    }
}

/// A tick that finds a timer is named by that: see [`Sleep::note`].
fn timer_cause(function: String, woken: Option<Task>, runs: Option<(Task, Waker)>) -> Cause {
    if TICKS.contains(&function.as_str()) {
        return Cause::Tick;
    }
    let Some(task) = woken else { return Cause::Timer(function) };
    let elsewhere = runs.is_none_or(|(runs, _)| runs.pid != task.pid);
    Cause::Task { task, by: By::Timer { function, elsewhere } }
}

fn by(waker: Waker, kicked: bool) -> By {
    match waker {
        Waker::Task(name) => By::Task { name, kicked },
        Waker::Interrupt => By::Interrupt { kicked },
        Waker::Unknown => By::Unknown { kicked },
    }
}

fn softirq(nr: u32) -> String {
    SOFTIRQS.get(nr as usize).map_or_else(|| nr.to_string(), |name| (*name).to_owned())
}

/// The wake-ups of a CPU.
#[derive(Debug)]
pub struct Wakeups {
    /// The idle state in which it only polls.
    polling: Option<u32>,
    /// While it sleeps, and until it is known why it does not any more. In the beginning that is
    /// not known: it may.
    sleep: Option<Sleep>,
    kicked_ns: Option<u64>,
    counts: BTreeMap<Cause, u64>,
    /// How often something came while it polled, which wakes nothing.
    polled: u64,
}

impl Wakeups {
    /// None yet; `polling` is the number of the idle state in which the CPU polls, if it has one.
    pub fn new(polling: Option<u32>) -> Self {
        let sleep = Some(Sleep::default());
        Wakeups { polling, sleep, kicked_ns: None, counts: BTreeMap::new(), polled: 0 }
    }

    /// What happened next.
    pub fn take(&mut self, event: Event) {
        match event.what {
            What::Kick => self.kicked_ns = Some(event.now_ns),
            What::Sleeps(state) => {
                self.finish(event.now_ns, None);
                let polls = self.polling == Some(state);
                self.sleep = Some(Sleep { polls, ..Sleep::default() });
            }
            What::Runs(task, waker) => self.finish(event.now_ns, Some((task, waker))),
            // What comes while the CPU is awake has not woken it.
            _ => {
                if let Some(sleep) = &mut self.sleep {
                    sleep.note(event);
                }
            }
        }
    }

    fn finish(&mut self, now_ns: u64, runs: Option<(Task, Waker)>) {
        let Some(sleep) = self.sleep.take() else { return };
        let kick = self.kicked_ns.take();
        let Some(ended_ns) = sleep.ended_ns.or(runs.as_ref().map(|_| now_ns)) else { return };
        let kicked = kick.is_some_and(|kick| ended_ns.saturating_sub(kick) < KICK_REACHES_NS);
        let polls = sleep.polls;
        let cause = sleep.cause(runs, kicked);
        if !polls {
            *self.counts.entry(cause).or_default() += 1;
        } else if cause != Cause::Unknown {
            // Else it has polled for long enough, and sleeps next.
            self.polled += 1;
        }
    }

    /// How often each cause has woken the CPU, the most frequent first.
    pub fn counts(&self) -> Vec<(&Cause, u64)> {
        let mut counts: Vec<_> = self.counts.iter().map(|(cause, &times)| (cause, times)).collect();
        counts.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
        counts
    }

    /// How often something came while it polled.
    pub fn polled(&self) -> u64 {
        self.polled
    }
}

#[cfg(test)]
mod tests;
