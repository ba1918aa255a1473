//! What placement, balance and governors ask of the class.

use super::Eevdf;
use super::energy::fits;
use super::imbalance::Group;
use crate::task::Task;

impl Eevdf {
    /// cpu_util(): utilization of `cpu`, if task `id` wakes on `to` or nowhere; not above capacity.
    pub(super) fn util(&self, cpu: usize, id: Option<usize>, to: Option<usize>) -> f64 {
        self.util_of(cpu, id, to, false)
    }

    /// The same for the frequency: what waits counts as if it ran.
    pub(super) fn util_boosted(&self, cpu: usize, id: Option<usize>, to: Option<usize>) -> f64 {
        self.util_of(cpu, id, to, true)
    }

    fn util_of(&self, cpu: usize, id: Option<usize>, to: Option<usize>, boosted: bool) -> f64 {
        let with = |sum: f64, of_task: f64| match id.map(|id| self.tasks[id].cpu == cpu) {
            Some(true) if to != Some(cpu) => (sum - of_task).max(0.0),
            Some(false) if to == Some(cpu) => sum + of_task,
            _ => sum,
        };
        let (signals, task) = (&self.cpus[cpu].signals, id.map(|id| &self.tasks[id].signals));
        let mut util = with(signals.util, task.map_or(0.0, |task| task.util));
        if boosted {
            util = util.max(with(signals.runnable, task.map_or(0.0, |task| task.runnable)));
        }
        let queue = &self.queues[cpu];
        let queued = queue.waiting().chain(queue.current());
        let runnable = queued.filter(|&id| self.tasks[id].runnable);
        let comes = id.filter(|_| to == Some(cpu));
        let estimated: f64 = runnable.chain(comes).map(|id| self.tasks[id].estimate).sum();
        util.max(estimated).min(self.capacity[cpu])
    }

    /// What schedutil takes for the utilization of `cpu`, 0..=1 of its capacity.
    pub fn governor_util(&self, cpu: usize) -> f64 {
        self.util_boosted(cpu, None, None) / self.capacity[cpu]
    }

    pub(super) fn is_overutilized(&self, cpu: usize) -> bool {
        self.energy.is_some() && !fits(self.util(cpu, None, None), self.capacity[cpu])
    }

    pub(super) fn task_fits(&self, id: usize, cpu: usize) -> bool {
        fits(self.tasks[id].util_est(), self.capacity[cpu])
    }

    /// The load of what runs on `cpu` if it is too large for it, and a larger one exists where it may
    /// run; else 0. update_misfit_status().
    pub(super) fn misfit(&self, tasks: &[Task], cpu: usize) -> f64 {
        let Some(id) = self.queues[cpu].current().filter(|_| self.asym) else { return 0.0 };
        let larger = |&other: &usize| self.capacity[other] > self.capacity[cpu];
        let may = |other: usize| tasks[id].may_run_on(other);
        if self.task_fits(id, cpu) || !(0..self.cpus.len()).filter(larger).any(may) {
            return 0.0;
        }
        self.tasks[id].signals.load.max(1.0)
    }

    /// Nothing waits or runs there (available_idle_cpu()).
    pub fn is_idle(&self, cpu: usize) -> bool {
        self.queues[cpu].nr() == 0
    }

    pub(super) fn is_idle_core(&self, cpu: usize) -> bool {
        self.is_idle(cpu) && self.cpus[cpu].siblings.iter().all(|&other| self.is_idle(other))
    }

    /// Tasks that wait or run there.
    pub(super) fn nr_runnable(&self, cpu: usize) -> usize {
        let queue = &self.queues[cpu];
        queue.waiting().chain(queue.current()).filter(|&id| self.tasks[id].runnable).count()
    }

    /// Tasks that wait there, without those that sleep and have not left yet.
    pub fn nr_waiting(&self, cpu: usize) -> usize {
        self.nr_runnable(cpu) - usize::from(self.queues[cpu].current().is_some())
    }

    pub(super) fn share_cache(&self, a: usize, b: usize) -> bool {
        self.places[a].llc == self.places[b].llc
    }

    /// Sums over these CPUs, without misfit tasks.
    pub(super) fn group(&self, cpus: &[usize]) -> Group {
        let mut group = Group { capacity_min: f64::INFINITY, ..Group::default() };
        for &cpu in cpus {
            let (capacity, signals) = (self.capacity[cpu], &self.cpus[cpu].signals);
            group.nr_cpus += 1;
            group.nr_idle += usize::from(self.is_idle(cpu));
            group.nr_running += self.queues[cpu].nr();
            group.load += signals.load;
            group.util += self.util(cpu, None, None);
            group.runnable += signals.runnable;
            group.capacity += capacity;
            group.capacity_min = group.capacity_min.min(capacity);
            group.capacity_max = group.capacity_max.max(capacity);
        }
        group
    }
}
