//! Where a task goes that wakes or is new: select_task_rq_fair() of 6.12 (kernel/sched/fair.c).

use super::Eevdf;
use super::domains::Level;
use super::energy::{Landscape, fits};
use super::imbalance::Group;
use super::numa::destination;
use super::signals::{Inputs, SCALE};
use crate::task::Task;

/// WA_BIAS: the previous CPU may be busier by half of imbalance_pct's 17 %.
const PREV_BIAS: f64 = 1.08;
/// 117 % squared: no idle CPU is looked for where an LLC is used by more than 1 / 1.17 (SIS_UTIL).
const SCAN_STOP: f64 = 1.17 * 1.17;

/// A wake-up: of which task, on which CPU, and whether the waker is about to sleep.
#[derive(Clone, Copy)]
pub struct Wake<'a> {
    pub task: &'a Task,
    pub id: usize,
    pub here: usize,
    pub sync: bool,
}

impl Eevdf {
    /// The CPU for a task that is in no queue. It may run there.
    pub fn select(&mut self, wake: Wake) -> usize {
        let Wake { id, here, .. } = wake;
        if self.entities[id].is_new {
            return self.idlest(wake);
        }
        let prev = self.tasks[id].cpu;
        let looked_ns = self.cpus[prev].signals.updated_ns();
        self.tasks[id].signals.update(looked_ns, Inputs::default());
        if !self.overutilized
            && let Some(domains) = &self.energy
        {
            let landscape = self.landscape(wake);
            return if landscape.task > 0.0 { landscape.choose(domains, prev) } else { prev };
        }
        let affine = here != prev && wake.task.may_run_on(here) && self.is_affine(wake, prev);
        self.idle_sibling(wake, prev, if affine { here } else { prev })
    }

    fn landscape(&self, wake: Wake) -> Landscape {
        let task = Some(wake.id);
        let of = |f: &dyn Fn(usize) -> f64| (0..self.cpus.len()).map(f).collect::<Vec<f64>>();
        let allowed = |cpu| wake.task.may_run_on(cpu);
        Landscape {
            without: of(&|cpu| self.util(cpu, task, None)),
            with: of(&|cpu| self.util(cpu, task, Some(cpu))),
            boosted_without: of(&|cpu| self.util_boosted(cpu, task, None)),
            boosted_with: of(&|cpu| self.util_boosted(cpu, task, Some(cpu))),
            capacity: self.capacity.clone(),
            allowed: (0..self.cpus.len()).map(allowed).collect(),
            task: self.tasks[wake.id].util_est(),
        }
    }

    /// wake_affine(): whether the waker's CPU is as good as the previous one: idle and of the same
    /// cache, or about to be, or with less load.
    fn is_affine(&self, wake: Wake, prev: usize) -> bool {
        let Wake { id, here, sync, .. } = wake;
        if self.is_idle(here) && self.share_cache(here, prev) {
            return !self.is_idle(prev);
        }
        if sync && self.nr_runnable(here) == 1 {
            return true;
        }
        if self.is_idle(prev) {
            return false;
        }
        let task = self.tasks[id].signals.load;
        let mut load = self.cpus[here].signals.load;
        let current = self.queues[here].current().map_or(0.0, |id| self.tasks[id].signals.load);
        if sync && current > load {
            return true;
        }
        load -= if sync { current } else { 0.0 };
        let of_prev = (self.cpus[prev].signals.load - task) * PREV_BIAS * self.capacity[here]
            + if sync { 1.0 } else { 0.0 };
        (load + task) * self.capacity[prev] < of_prev
    }

    /// select_idle_sibling(): the target, the previous CPU, the one before, or one near the target.
    fn idle_sibling(&mut self, wake: Wake, prev: usize, target: usize) -> usize {
        let util = self.tasks[wake.id].util_est();
        let takes = |this: &Self, cpu: usize| {
            this.is_idle(cpu)
                && wake.task.may_run_on(cpu)
                && (!this.asym || fits(util, this.capacity[cpu]))
        };
        if takes(self, target) {
            return target;
        }
        if self.share_cache(prev, target) && takes(self, prev) {
            return prev;
        }
        let recent = std::mem::replace(&mut self.tasks[wake.id].recent_cpu, prev);
        if recent != prev && self.share_cache(recent, target) && takes(self, recent) {
            return recent;
        }
        let found = match self.asym {
            true => self.idle_by_capacity(wake, target, util),
            false => self.idle_in_cache(wake, target, prev),
        };
        found.unwrap_or(target)
    }

    /// All CPUs, from `from` on and round.
    fn round(&self, from: usize) -> impl Iterator<Item = usize> + use<> {
        let nr = self.cpus.len();
        (0..nr).map(move |nth| (from + nth) % nr)
    }

    /// select_idle_capacity(): the first idle CPU on which it fits, or the largest idle one.
    fn idle_by_capacity(&self, wake: Wake, target: usize, util: f64) -> Option<usize> {
        let idle =
            || self.round(target).filter(|&cpu| self.is_idle(cpu) && wake.task.may_run_on(cpu));
        let largest = |largest: usize, cpu: usize| {
            if self.capacity[cpu] > self.capacity[largest] { cpu } else { largest }
        };
        idle().find(|&cpu| fits(util, self.capacity[cpu])).or_else(|| idle().reduce(largest))
    }

    /// select_idle_cpu() and what is before it: an idle core of the cache, the previous CPU's
    /// sibling, an idle CPU among as many as the cache's utilization allows to look at.
    fn idle_in_cache(&self, wake: Wake, target: usize, prev: usize) -> Option<usize> {
        let near = |cpu: &usize| self.share_cache(*cpu, target) && wake.task.may_run_on(*cpu);
        let threads = !self.cpus[target].siblings.is_empty();
        if threads {
            if let Some(core) =
                self.round(target + 1).filter(near).find(|&cpu| self.is_idle_core(cpu))
            {
                return Some(core);
            }
            let mut siblings = self.cpus[prev].siblings.iter().copied().filter(near);
            if let Some(cpu) = siblings.find(|&cpu| self.is_idle(cpu)) {
                return Some(cpu);
            }
        }
        let scan = self.nr_scan(target);
        self.round(target + 1).filter(near).take(scan).find(|&cpu| self.is_idle(cpu))
    }

    /// update_idle_cpu_scan(): how many CPUs of its LLC are looked at.
    fn nr_scan(&self, target: usize) -> usize {
        let near = || (0..self.cpus.len()).filter(|&cpu| self.share_cache(cpu, target));
        let nr = near().count() as f64;
        let used = near().map(|cpu| self.util(cpu, None, None)).sum::<f64>() / nr / SCALE;
        (nr * (1.0 - used * used * SCAN_STOP).max(0.0)) as usize
    }

    /// sched_balance_find_dst_cpu(): down the levels, the group with the most idle CPUs, then the
    /// least used one, the own one among equals; in it an idle CPU, or the one with the least load.
    /// Another node only if the own one is clearly fuller.
    fn idlest(&self, wake: Wake) -> usize {
        let may = |cpu: &usize| wake.task.may_run_on(*cpu);
        let mut cpu = if may(&wake.here) { wake.here } else { self.tasks[wake.id].cpu };
        for nth in (0..self.domains[cpu].len()).rev() {
            let Some(level) = self.domains[cpu].get(nth) else { continue };
            let group = match level.imb_numa_nr {
                Some(allowed) => self.idlest_node(wake, level, allowed),
                None => self.idlest_group(wake, level),
            };
            let Some(group) = group else { continue };
            let load = |&cpu: &usize| (!self.is_idle(cpu), self.cpus[cpu].signals.load as u64);
            cpu = group.iter().copied().filter(may).min_by_key(load).unwrap_or(cpu);
        }
        cpu
    }

    fn idlest_group<'a>(&self, wake: Wake, level: &'a Level) -> Option<&'a Vec<usize>> {
        let key = |group: &&Vec<usize>| {
            let cpus = || group.iter().copied().filter(|&cpu| wake.task.may_run_on(cpu));
            let idle = cpus().filter(|&cpu| self.is_idle(cpu)).count();
            let util: f64 = cpus().map(|cpu| self.util(cpu, None, None)).sum();
            (cpus().next().is_none(), std::cmp::Reverse(idle), util as u64 / group.len() as u64)
        };
        level.groups.iter().min_by_key(key)
    }

    /// The node to go to, if the task does not stay on its own.
    fn idlest_node<'a>(
        &self,
        wake: Wake,
        level: &'a Level,
        allowed: usize,
    ) -> Option<&'a Vec<usize>> {
        let may_run =
            |cpus: &[usize]| cpus.iter().filter(|&&cpu| wake.task.may_run_on(cpu)).count();
        let sums = |cpus: &Vec<usize>| (may_run(cpus) > 0).then(|| self.group(cpus));
        let nodes: Vec<Option<Group>> = level.groups.iter().map(sums).collect();
        let allowed = allowed.min(may_run(&level.groups[0]));
        destination(level, &nodes, allowed).map(|nth| &level.groups[nth])
    }
}
