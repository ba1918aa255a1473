//! What is to happen when.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// What happens, and to which task or CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task's timer.
    Wake(usize),
    /// The tick of a CPU that was busy at the run_seq given.
    Tick(usize, u64),
    /// What a CPU runs has done its work, if it is still at that pace.
    Done(usize, u64),
    /// A CPU looks for what to run.
    Schedule(usize),
    /// A clock domain's governor looks at its load.
    Look(usize),
    /// The voltage is there for the frequency that has been chosen for a clock domain.
    Clock(usize),
    /// The limits of frequency of a package are set by how many of its cores are awake.
    Turbo(usize),
    /// The nth device interrupts a CPU.
    Interrupt(usize),
    /// A tick that an idle CPU has kept, if it still is idle at the run_seq given.
    IdleTick(usize, u64),
    /// A period of the limit of the cgroups of this weight ends, under the fair class.
    Period(u32),
    /// A timer of the scheduler's, if it has not been started again since: its key, and which
    /// start of it this was.
    Timer(u32, u64),
}

impl Event {
    /// At the same instant: a task that wakes is seen by a CPU that schedules.
    fn turn(self) -> u8 {
        match self {
            Event::Wake(_) | Event::Timer(..) | Event::Period(_) => 0,
            Event::Tick(..) => 1,
            Event::Done(..) => 2,
            Event::Schedule(_) => 3,
            Event::Look(_)
            | Event::Clock(_)
            | Event::Turbo(_)
            | Event::Interrupt(_)
            | Event::IdleTick(..) => 4,
        }
    }
}

/// An event in its place: time, turn, order of insertion.
struct Entry {
    place: (u64, u8, u64),
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The greatest is the earliest, as BinaryHeap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

/// Events in the order in which they happen.
#[derive(Default)]
pub struct Events {
    heap: BinaryHeap<Entry>,
    next: u64,
}

impl Events {
    pub fn at(&mut self, time_ns: u64, event: Event) {
        self.heap.push(Entry { place: (time_ns, event.turn(), self.next), event });
        self.next += 1;
    }

    /// The next one if it is due by `until_ns`.
    pub fn pop_until(&mut self, until_ns: u64) -> Option<(u64, Event)> {
        let next = self.heap.peek_mut()?;
        if next.place.0 > until_ns {
            return None;
        }
        let entry = PeekMut::pop(next);
        Some((entry.place.0, entry.event))
    }
}
