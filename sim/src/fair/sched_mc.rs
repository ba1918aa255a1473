//! sched_mc_power_savings: 0 spreads; 1 fills a package before the next when it
//! places new tasks; 2 does so for those that wake, too; 3 to 5 (proposed in 2009)
//! use fewer cores.

use super::Balancer;
use super::baseline::Spread;
use super::view::View;

/// Cores of eight that 3, 4 and 5 use, from the table that proposed them.
const CORES_OF_8: [usize; 6] = [8, 8, 8, 7, 6, 4];

/// Levels 0 to 5.
pub(crate) struct SchedMc {
    pub spread: Spread,
    pub level: usize,
}

impl SchedMc {
    /// How many of the CPUs are used at most.
    fn ceiling(&self, view: &View) -> usize {
        (view.nr_cpus() * CORES_OF_8[self.level]).div_ceil(8)
    }

    /// The preferred wakeup CPU: the first one of the fullest package that is neither
    /// idle nor busy, whatever it runs itself.
    fn preferred(&self, view: &View) -> Option<usize> {
        let cpus = |package: usize| {
            (0..self.ceiling(view)).filter(move |&cpu| view.place(cpu).package == package)
        };
        let busy = |package: usize| cpus(package).filter(|&cpu| !view.is_idle(cpu)).count();
        let packages = 0..=view.place(view.nr_cpus() - 1).package;
        let semi = packages.filter(|&nr| busy(nr) > 0 && busy(nr) < cpus(nr).count());
        let leader = semi.max_by_key(|&package| (busy(package), std::cmp::Reverse(package)))?;
        cpus(leader).next()
    }

    /// An idle CPU of that package, for a task that begins.
    fn fills(&self, view: &View) -> Option<usize> {
        let package = view.place(self.preferred(view)?).package;
        let mut idle = (0..self.ceiling(view)).filter(|&cpu| view.is_idle(cpu));
        idle.find(|&cpu| view.place(cpu).package == package)
    }

    /// The least loaded of those that are used.
    fn least_loaded(&self, view: &View) -> usize {
        (0..self.ceiling(view)).min_by_key(|&cpu| view.nr_running(cpu)).unwrap_or(0)
    }
}

impl Balancer for SchedMc {
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let prev = view.prev(id);
        if self.level >= 2
            && view.is_idle(prev)
            && (here == prev || view.is_idle(here))
            && !view.is_hot(id)
            && let Some(cpu) = self.preferred(view)
        {
            return cpu;
        }
        let cpu = self.spread.wake(view, id, here, sync);
        if cpu < self.ceiling(view) { cpu } else { self.least_loaded(view) }
    }

    fn fork(&mut self, view: &View, id: usize) -> usize {
        if self.level == 0 {
            return view.idlest(id);
        }
        self.fills(view).unwrap_or_else(|| self.least_loaded(view))
    }

    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        if to >= self.ceiling(view) { None } else { self.spread.pull(view, to, idle) }
    }
}
