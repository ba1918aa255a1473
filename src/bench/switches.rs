//! Context switches and migrations, from the kernel's own counters.

use std::cell::RefCell;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

/// Counters on every CPU; dropping it ends the counting.
pub struct Switches {
    switches: RefCell<Vec<Counter>>,
    migrations: RefCell<Vec<Counter>>,
}

impl Switches {
    /// Starts to count. `None` where that is not allowed, or the kernel has no perf events.
    pub fn begin(cpus: &[usize]) -> Option<Self> {
        let count = |event: Software| -> Option<Vec<Counter>> {
            let counter = |&cpu: &usize| {
                let mut builder = Builder::new(event);
                builder.any_pid().one_cpu(cpu).enabled(true).include_kernel();
                builder.build().ok()
            };
            cpus.iter().map(counter).collect()
        };
        Some(Switches {
            switches: count(Software::CONTEXT_SWITCHES)?.into(),
            migrations: count(Software::CPU_MIGRATIONS)?.into(),
        })
    }

    /// Switches and migrations since the beginning.
    pub fn counts(&self) -> (u64, u64) {
        let sum = |counters: &RefCell<Vec<Counter>>| {
            let mut counters = counters.borrow_mut();
            counters.iter_mut().map(|counter| counter.read().unwrap_or(0)).sum()
        };
        (sum(&self.switches), sum(&self.migrations))
    }
}
