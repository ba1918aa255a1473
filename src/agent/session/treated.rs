//! The cgroups that the table of workloads names, and how they are found as cgroups come and go.

use anyhow::Result;
use log::{info, warn};

use crate::machine::cgroups::{self, Cgroup};
use crate::scheduler::Scheduler;
use crate::settings::workloads::{Table, Treatment};

/// What is treated as the table says.
#[derive(Default)]
pub struct Treated {
    /// How many cgroups there were when the table was last applied, and how many had been made.
    seen: (usize, u32),
    /// Those of them that the table names.
    cgroups: Vec<Cgroup>,
    /// How many the table names and the kernel does not find.
    nr_hidden: usize,
}

impl Treated {
    /// How many cgroups are treated.
    pub fn len(&self) -> usize {
        self.cgroups.len()
    }

    /// Treats the cgroups that are there as `table` says. Fails if the scheduler cannot be asked.
    pub fn apply(&mut self, table: &Table, scheduler: &mut Scheduler) -> Result<()> {
        let before = std::mem::take(self);
        self.seen = (cgroups::count(), scheduler.cgroups_made()?);
        if table.is_empty() && before.len() == 0 {
            return Ok(());
        }
        if !cgroups::are_unified() {
            warn!(
                "the table of workloads treats no cgroup: /sys/fs/cgroup is not the hierarchy of \
                 cgroup v2"
            );
        }
        for cgroup in cgroups::all() {
            let treatment = table.treatment(&cgroup.path);
            let is_found = scheduler.classify(cgroup.id, treatment)?;
            if treatment == Treatment::None {
                continue;
            }
            if is_found {
                self.cgroups.push(cgroup);
            } else if cgroup.is_there() {
                self.nr_hidden += 1;
            }
        }
        self.say_what_changed(&before);
        scheduler.invalidate_cgroups()
    }

    /// The same if there are others than there were. One that has come as another one went is seen
    /// only if it has the cpu controller, as those of containers have, or if it took the place of one that
    /// is treated, as that of a unit that is started again.
    pub fn apply_to_new(&mut self, table: &Table, scheduler: &mut Scheduler) -> Result<()> {
        let is_same = self.seen == (cgroups::count(), scheduler.cgroups_made()?);
        if is_same && self.cgroups.iter().all(Cgroup::is_there) {
            return Ok(());
        }
        self.apply(table, scheduler)
    }

    fn say_what_changed(&self, before: &Self) {
        if self.len() != before.len() {
            info!("{} cgroups are treated as the table of workloads says", self.len());
        }
        // Kernels before 6.18, but for stable ones that have it too, look a cgroup up below the root of the caller's
        // cgroup namespace only, although all can be seen where /sys/fs/cgroup is the host's.
        if self.nr_hidden != before.nr_hidden && self.nr_hidden != 0 {
            warn!(
                "{} cgroups are not treated as the table of workloads says: the kernel hides them from \
                 the cgroup namespace of this process; run it in the host's",
                self.nr_hidden
            );
        }
    }
}
