//! What a balancer sees of the machine.

use crate::cpu::Cpu;
use crate::fair::queue::{Entity, MIGRATION_COST_NS, Queue};
use crate::machine::MachineCpu;

/// The machine at an instant.
pub(crate) struct View<'a> {
    now_ns: u64,
    queues: &'a [Queue],
    entities: &'a [Entity],
    cpus: &'a [Cpu],
}

impl<'a> View<'a> {
    pub fn new(now_ns: u64, queues: &'a [Queue], entities: &'a [Entity], cpus: &'a [Cpu]) -> Self {
        View { now_ns, queues, entities, cpus }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    pub fn place(&self, cpu: usize) -> MachineCpu {
        self.cpus[cpu].place
    }

    pub fn prev(&self, id: usize) -> usize {
        self.entities[id].cpu
    }

    /// Tasks that run or wait there.
    pub fn nr_running(&self, cpu: usize) -> usize {
        self.queues[cpu].tasks.len() + usize::from(self.queues[cpu].current.is_some())
    }

    pub fn is_idle(&self, cpu: usize) -> bool {
        self.nr_running(cpu) == 0
    }

    fn runnable(&self, cpu: usize) -> impl Iterator<Item = &Entity> {
        let queue = &self.queues[cpu];
        let waiting = queue.tasks.iter().map(|(_, id)| *id);
        waiting.chain(queue.current).map(|id| &self.entities[id])
    }

    /// Summed weight, 1024 for each task of nice 0.
    pub fn load(&self, cpu: usize) -> f64 {
        self.runnable(cpu).map(|entity| entity.weight as f64).sum()
    }

    /// The same, each by the share of time in which it has been runnable.
    pub fn runnable_load(&self, cpu: usize) -> f64 {
        let load = |entity: &Entity| entity.weight as f64 * entity.load.at(self.now_ns, 1.0);
        self.runnable(cpu).map(load).sum()
    }

    /// The share of time in which a task has been runnable, 0..=1.
    pub fn task_load(&self, id: usize) -> f64 {
        self.entities[id].load.at(self.now_ns, f64::from(u8::from(self.entities[id].runnable)))
    }

    /// The share of time in which `cpu` has run anything, 0..=1.
    pub fn util(&self, cpu: usize) -> f64 {
        let queue = &self.queues[cpu];
        queue.util.at(self.now_ns, if queue.current.is_some() { 1.0 } else { 0.0 })
    }

    /// Where a new task goes: the least load, then an idle core, then the one that has run the
    /// least of late (a kernel would look at more of its history).
    pub fn idlest(&self, id: usize) -> usize {
        let prev = self.prev(id);
        let key = |&cpu: &usize| {
            let (core, util) = (self.core_is_idle(cpu), (self.util(cpu) * 1e6) as u64);
            (self.load(cpu) as u64, !core, util, cpu != prev)
        };
        (0..self.nr_cpus()).min_by_key(key).unwrap_or(prev)
    }

    /// The idle time that is expected of `cpu`, from its last ones (rq->avg_idle, ns).
    pub fn avg_idle_ns(&self, cpu: usize) -> u64 {
        self.queues[cpu].avg_idle_ns
    }

    pub fn core_is_idle(&self, cpu: usize) -> bool {
        self.is_idle(cpu) && self.cpus[cpu].siblings.iter().all(|&other| self.is_idle(other))
    }

    /// task_hot(): it has run so lately that it is not moved.
    pub fn is_hot(&self, id: usize) -> bool {
        let stopped_ns = self.entities[id].stopped_ns;
        stopped_ns > 0 && self.now_ns - stopped_ns < MIGRATION_COST_NS
    }

    pub fn shares_cache(&self, a: usize, b: usize) -> bool {
        self.place(a).llc == self.place(b).llc
    }
}
