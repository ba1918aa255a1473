//! Which CPU each interrupt that may move is to come to: interrupts wake the CPU that they come to, and so
//! they are to come to CPUs that are awake more often anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use log::warn;

use crate::machine::interrupts::{self, Movable};

/// A CPU of the active set, and its memory node.
pub type Active = (usize, usize);

/// New interrupts are looked for after so many looks at the same active CPUs: a minute.
const LOOKS_MAX: u32 = 12;

/// An interrupt that is to come to another CPU than the one that it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub cpu: usize,
    /// Where it came before, if that is known.
    pub home: Option<usize>,
}

/// Where interrupts are to come, as the active set changes.
#[derive(Default)]
pub struct Irqs {
    /// At the last look.
    active: BTreeSet<Active>,
    /// At the last two: a CPU is left at once, and gets its interrupts back when it stays.
    settled: BTreeSet<Active>,
    looks: u32,
    /// As they were when they were first found; kept while they are held.
    known: BTreeMap<PathBuf, Movable>,
    targets: BTreeMap<PathBuf, Target>,
    /// Those that the kernel would not move, or that somebody else has moved: never again.
    refused: BTreeSet<PathBuf>,
    /// No other program has moved interrupts so far.
    is_alone: bool,
}

impl Irqs {
    /// Where those interrupts below `root` are to come that do not come to one of these CPUs.
    pub fn look(&mut self, root: &Path, active: &[Active], is_held: impl Fn(&Path) -> bool) {
        let active: BTreeSet<_> = active.iter().copied().collect();
        let settled: BTreeSet<_> = active.intersection(&self.active).copied().collect();
        self.active = active;
        self.looks += 1;
        if settled == self.settled && self.looks < LOOKS_MAX {
            return;
        }
        (self.settled, self.looks) = (settled, 0);
        if self.yields(root) {
            return;
        }
        self.known.retain(|path, _| is_held(path));
        for interrupt in interrupts::movable(root) {
            self.known.entry(interrupt.affinity()).or_insert(interrupt);
        }
        let targets = self.known.iter().filter(|(path, _)| !self.refused.contains(*path));
        let targets = targets.filter_map(|(path, irq)| Some((path.clone(), self.target(irq)?)));
        self.targets = targets.collect();
    }

    /// To another program that moves interrupts; ours are put back.
    fn yields(&mut self, root: &Path) -> bool {
        let balancer = interrupts::balancer(root);
        let was_alone = std::mem::replace(&mut self.is_alone, balancer.is_none());
        let Some(pid) = balancer else { return false };
        self.targets.clear();
        // Of one that was there before is said as the hints are read.
        if was_alone {
            warn!("interrupts are left to irqbalance, process {pid}, which runs since");
        }
        true
    }

    /// Those near to its device are spread over the active CPUs there; one whose own CPU is active stays.
    fn target(&self, irq: &Movable) -> Option<Target> {
        let cpus = |near: bool| -> Vec<usize> {
            let all = self.settled.iter();
            all.filter(|(_, node)| !near || irq.node == Some(*node)).map(|&(cpu, _)| cpu).collect()
        };
        let near = cpus(true);
        let among = if near.is_empty() { cpus(false) } else { near };
        if irq.home.is_some_and(|home| self.settled.iter().any(|&(cpu, _)| cpu == home)) {
            return None;
        }
        let cpu = *among.get(irq.nr % among.len().max(1))?;
        Some(Target { cpu, home: irq.home })
    }

    /// Where interrupts are to come, by the file that says so; the rest is to be left as it was.
    pub fn targets(&self) -> &BTreeMap<PathBuf, Target> {
        &self.targets
    }

    /// The next look is at all of them, although the active CPUs are the same.
    pub fn look_again(&mut self) {
        self.looks = LOOKS_MAX;
    }

    /// This one is not to be touched again.
    pub fn refuse(&mut self, path: &Path) {
        self.targets.remove(path);
        self.known.remove(path);
        self.refused.insert(path.to_owned());
    }

    /// From now on nothing is wanted.
    pub fn clear(&mut self) {
        *self = Irqs { refused: std::mem::take(&mut self.refused), ..Irqs::default() };
    }
}
