//! Dispatch queues: tasks in FIFO order or by virtual time.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::ffi::TaskPtr;

/// A place in a queue: virtual time (0 in a FIFO), then the order of insertion.
/// Virtual times are compared as the kernel does, signed.
pub type Key = (i64, i64);

/// A dispatch queue.
#[derive(Default)]
pub struct Dsq {
    tasks: BTreeMap<Key, TaskPtr>,
    next: i64,
}

impl Dsq {
    pub fn push_back(&mut self, task: TaskPtr) {
        self.insert(task, 0);
    }

    /// In the order of `vtime`, behind those of the same.
    pub fn insert(&mut self, task: TaskPtr, vtime: u64) {
        self.tasks.insert((vtime.cast_signed(), self.next), task);
        self.next += 1;
    }

    pub fn first(&self) -> Option<TaskPtr> {
        self.tasks.first_key_value().map(|(_, &task)| task)
    }

    /// The first after `key`, or the first of all; in the `reverse` order the last before it.
    pub fn after(&self, key: Option<Key>, reverse: bool) -> Option<(Key, TaskPtr)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        let next = match reverse {
            false => self.tasks.range((from, Bound::Unbounded)).next(),
            true => self.tasks.range((Bound::Unbounded, from)).next_back(),
        };
        next.map(|(&key, &task)| (key, task))
    }

    /// Takes out the first for which `fits` holds.
    pub fn take(&mut self, fits: impl Fn(TaskPtr) -> bool) -> Option<TaskPtr> {
        let key = *self.tasks.iter().find(|&(_, &task)| fits(task))?.0;
        self.tasks.remove(&key)
    }

    /// Whether one is there for which `fits` holds.
    pub fn has(&self, fits: impl Fn(TaskPtr) -> bool) -> bool {
        self.tasks.values().any(|&task| fits(task))
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }
}
