//! sched_mc_power_savings, of Linux 2.6.18 to 3.4: 0 spreads; 1 fills one package first with tasks that
//! run for long; 2 also brings those that wake to it; 3 to 5 (proposed in 2009, "Re: [RFC PATCH v1 0/3]
//! Saving power by cpu evacuation using sched_mc=n") leave a number of cores without work.
//!
//! Sources: level 1, imoseyon/leanKernel-note3, kernel/sched/fair.c at 8ff0b472ce5f
//! (update_sd_power_savings_stats(), check_power_save_busiest_group(), select_task_rq_fair()); level 2,
//! torvalds/linux at 7a09b1a27b1e and 7eb52dfa70db (wake_idle()). No code of levels 3 to 5 was found: they
//! are approximations. A single task that runs is not pushed off its CPU here (active balance).

use super::Balancer;
use super::baseline::Spread;
use super::view::View;
use crate::machine::Machine;

/// Of eight CPUs, the most that the user wants used at each level: the column "No Cores used" of the
/// proposal.
const WANTED_OF_8: [usize; 6] = [8, 8, 8, 7, 6, 4];

/// Levels 0 to 5.
pub(crate) struct SchedMc {
    pub spread: Spread,
    level: usize,
    /// CPUs by package.
    packages: Vec<Vec<usize>>,
    /// The first CPU of the package that was to be filled at the last balance
    /// (sched_mc_preferred_wakeup_cpu).
    nominee: usize,
}

impl SchedMc {
    pub fn new(spread: Spread, level: u8, machine: &Machine) -> Self {
        let mut packages: Vec<Vec<usize>> = Vec::new();
        for place in machine.cpus() {
            packages.resize(packages.len().max(place.package + 1), Vec::new());
            packages[place.package].push(place.cpu);
        }
        SchedMc { spread, level: level.into(), packages, nominee: 0 }
    }

    /// Tasks that run or wait in `package`.
    fn tasks(&self, view: &View, package: usize) -> usize {
        self.packages[package].iter().map(|&cpu| view.nr_running(cpu)).sum()
    }

    /// Its number of CPUs: their power over SCHED_POWER_SCALE, where no core has several threads.
    fn capacity(&self, package: usize) -> usize {
        self.packages[package].len()
    }

    /// update_sd_power_savings_stats(): the package with the most tasks that has room for another, and the
    /// one with the fewest; idle and full ones are neither.
    fn leader_and_least(&self, view: &View) -> Option<(usize, usize)> {
        let tasks = |package: usize| self.tasks(view, package);
        let neither = |package: usize| (1..self.capacity(package)).contains(&tasks(package));
        let some: Vec<usize> = (0..self.packages.len()).filter(|&nr| neither(nr)).collect();
        let leader = some.iter().copied().min_by_key(|&nr| (std::cmp::Reverse(tasks(nr)), nr))?;
        let least = some.iter().copied().min_by_key(|&nr| (tasks(nr), std::cmp::Reverse(nr)))?;
        Some((leader, least))
    }

    /// check_power_save_busiest_group(): from where idle CPU `to` pulls if there is nothing to balance.
    fn fill(&mut self, view: &View, to: usize) -> Option<usize> {
        let (leader, least) = self.leader_and_least(view)?;
        if leader != view.place(to).package || leader == least {
            return None;
        }
        self.nominee = self.packages[leader][0];
        let waiting = self.packages[least].iter().copied().filter(|&cpu| view.nr_running(cpu) > 1);
        waiting.max_by_key(|&cpu| view.nr_running(cpu))
    }

    /// How many CPUs of `package` the user wants used: packages are filled in their order.
    fn wanted(&self, view: &View, package: usize) -> usize {
        let wanted = (view.nr_cpus() * WANTED_OF_8[self.level]).div_ceil(8);
        let before: usize = (0..package).map(|nr| self.capacity(nr)).sum();
        wanted.saturating_sub(before).min(self.capacity(package))
    }

    /// The first idle CPU of `package`, if it may have another one at work.
    fn room(&self, view: &View, package: usize) -> Option<usize> {
        let idle = |&cpu: &usize| view.is_idle(cpu);
        let mut idle_cpus = self.packages[package].iter().copied().filter(idle);
        let at_work = self.capacity(package) - idle_cpus.clone().count();
        idle_cpus.next().filter(|_| at_work < self.wanted(view, package))
    }

    /// Levels 3 to 5: `cpu` if that is at work or may be, else an idle one that may be, else the least
    /// loaded of those at work.
    fn within(&self, view: &View, cpu: usize) -> usize {
        if self.level <= 2 || !view.is_idle(cpu) {
            return cpu;
        }
        let package = view.place(cpu).package;
        let others = (0..self.packages.len()).filter(|&other| other != package);
        let mut order = std::iter::once(package).chain(others);
        order.find_map(|package| self.room(view, package)).unwrap_or_else(|| {
            let at_work = (0..view.nr_cpus()).filter(|&cpu| !view.is_idle(cpu));
            at_work.min_by_key(|&cpu| view.nr_running(cpu)).unwrap_or(cpu)
        })
    }
}

impl Balancer for SchedMc {
    /// Level 2: what wakes as both its CPU and the waker's are idle goes to the nominee.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let biased = self.level >= 2 && view.is_idle(view.prev(id)) && view.is_idle(here);
        let cpu = if biased { self.nominee } else { self.spread.wake(view, id, here, sync) };
        self.within(view, cpu)
    }

    /// Level 1: the least loaded CPU of its parent's package, until that has two tasks for each.
    fn fork(&mut self, view: &View, id: usize) -> usize {
        let package = view.place(view.prev(id)).package;
        let stays = self.level >= 1 && self.tasks(view, package) / 2 < self.capacity(package);
        let cpus = self.packages[package].iter().copied().filter(|_| stays);
        let least = cpus.min_by_key(|&cpu| view.load(cpu) as u64);
        self.within(view, least.unwrap_or_else(|| view.idlest(id)))
    }

    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        if self.level > 2 && view.is_idle(to) && self.room(view, view.place(to).package) != Some(to)
        {
            return None;
        }
        let ordinary = self.spread.pull(view, to, idle);
        if ordinary.is_none() && idle && self.level >= 1 {
            return self.fill(view, to);
        }
        ordinary
    }
}

#[cfg(test)]
mod tests {
    use crate::fair::tests::outcome;

    #[test]
    fn as_many_cores_work_as_the_user_wants() {
        let used = |level: u8| {
            let pct = outcome("dual-quad", "ebizzy-8", &format!("sched_mc={level}")).non_idle_pct;
            pct.iter().filter(|&&pct| pct > 1.0).count()
        };
        assert_eq!((0..=5).map(used).collect::<Vec<_>>(), [8, 8, 8, 7, 6, 4]);
    }

    /// Four threads fit one package.
    #[test]
    fn level_1_fills_a_package_first() {
        let first =
            |system| outcome("dual-quad", "ebizzy-4", system).non_idle_pct[..4].iter().sum::<f64>();
        let (filled, spread) = (first("sched_mc=1"), first("sched_mc=0"));
        assert!(filled > 350.0 && spread < 300.0, "{filled} % of a CPU, and {spread}");
    }
}
