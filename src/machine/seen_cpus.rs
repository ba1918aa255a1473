//! The CPUs as they were read to load a scheduler for them, and whether they are still so.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::kernel;
use super::topology::{Ranks, read_cpu_list};

/// One that comes or goes as they are read may make that fail; a moment later it does not.
const READ_TRIES: u32 = 3;
const READ_PAUSE: Duration = Duration::from_millis(50);

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
