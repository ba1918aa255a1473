//! What the machine counts beside the scheduler. Nothing of it wakes a CPU that sleeps.

use std::path::Path;

use crate::machine::cpu_counts::{ByCpu, CpuCounts};
use crate::machine::package_states::{Others, PackageStates};

/// Where it is read.
pub struct Machine {
    counts: CpuCounts,
    packages: PackageStates,
}

/// What it says now; empty is what this machine does not count, or not without waking CPUs.
#[derive(Clone, Debug, Default)]
pub struct MachineCounts {
    pub wake_ups: ByCpu,
    pub interrupts: ByCpu,
    /// Of each idle state of packages: for how long it lasted since the beginning (s), mean over them.
    pub package_states: Vec<(String, f64)>,
}

impl Machine {
    /// Begins with the counts of package states.
    pub fn begin() -> Self {
        let root = Path::new("/");
        Machine {
            counts: CpuCounts::find(root),
            packages: PackageStates::begin(root, Others::Sleep),
        }
    }

    pub fn look(&mut self) -> MachineCounts {
        self.packages.look();
        MachineCounts {
            wake_ups: self.counts.wake_ups(),
            interrupts: self.counts.interrupts(),
            package_states: self.packages.seconds(),
        }
    }
}
