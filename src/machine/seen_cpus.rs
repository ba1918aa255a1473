//! The CPUs as they were read to load a scheduler for them, and whether they are still so.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::kernel;
use super::topology::{Ranks, read_cpu_list};

/// One that comes or goes as they are read may make that fail; a moment later it does not.
const READ_TRIES: u32 = 3;
const READ_PAUSE: Duration = Duration::from_millis(50);
/// CPUs that come one after the other are some milliseconds apart: none for so many looks at them, and all have come.
const SETTLED_LOOKS: u32 = 3;
const SETTLE_LOOK: Duration = Duration::from_millis(100);
/// Three seconds: longer than that the kernel's scheduler is not left in force.
const SETTLE_LOOKS_MAX: u32 = 30;

/// What was seen of the CPUs before a scheduler is loaded.
pub struct SeenCpus {
    pub ranks: Ranks,
    /// How many times CPUs had come or gone before they were read: the kernel attaches no scheduler that does
    /// not know of the last one. `None` on a kernel that does not count them.
    pub hotplug_seq: Option<u64>,
    /// As sysfs listed them. What is ranked is not compared with that: a CPU that it lacks for good would have the agent
    /// start again for ever.
    online: Option<Vec<usize>>,
}

impl SeenCpus {
    /// Reads them. Fails as [`Ranks::read`] does.
    pub fn read() -> Result<Self> {
        for _ in 1..READ_TRIES {
            if let Ok(seen) = Self::read_once() {
                return Ok(seen);
            }
            thread::sleep(READ_PAUSE);
        }
        Self::read_once()
    }

    /// The same when no CPU has come or gone for a while, as they do one by one when SMT is switched on: each time
    /// that it is loaded the kernel's scheduler is in force meanwhile. After some seconds it is not waited for any more.
    pub fn read_settled() -> Result<Self> {
        let (mut last, mut quiet) = (online(), 0);
        for _ in 0..SETTLE_LOOKS_MAX {
            thread::sleep(SETTLE_LOOK);
            let now = online();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            if quiet >= SETTLED_LOOKS {
                break;
            }
        }
        Self::read()
    }

    fn read_once() -> Result<Self> {
        let (hotplug_seq, online) = (kernel::hotplug_seq().ok(), online());
        Ok(SeenCpus { ranks: Ranks::read()?, hotplug_seq, online })
    }

    /// Whether the same CPUs are online. To compare what the kernel has counted does not do: it counts one that
    /// goes (`sched_cpu_deactivate()` in `kernel/sched/core.c`) some milliseconds before sysfs shows that.
    pub fn are_online_still(&self) -> bool {
        online() == self.online
    }
}

fn online() -> Option<Vec<usize>> {
    read_cpu_list("online").ok()
}
