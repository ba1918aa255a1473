//! The run queues of a fair class as it was in 2013 (kernel/sched/fair.c of 3.9),
//! from its published description.

use std::collections::BTreeSet;

use crate::cpu::Cpu;
use crate::fair::view::View;
use crate::fair::{Balancer, Comparator, Limit};
use crate::machine::Machine;
use crate::signal::Average;
use crate::task::{Home, Task};

/// sysctl_sched_latency, _min_granularity and _wakeup_granularity on one CPU; they
/// grow with 1 + log2 of the CPUs, of at most 8 (ns).
const LATENCY_NS: u64 = 6_000_000;
const MIN_GRANULARITY_NS: u64 = 750_000;
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;
const CPUS_MAX: usize = 8;
/// sysctl_sched_migration_cost: a task that has run so lately is not pulled, and a CPU
/// that is idle for less does not look for work.
pub(crate) const MIGRATION_COST_NS: u64 = 500_000;
/// A busy CPU balances once in this many ms for each CPU of the machine (busy_factor).
const BUSY_FACTOR_MS: u64 = 32;
const NS_PER_MS: u64 = 1_000_000;

/// What the class knows of a task.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    vruntime: u64,
    /// 1024 = nice 0.
    pub weight: u64,
    /// `cpu.weight` of its cgroup; none: it is in the root.
    pub cgroup_weight: Option<u32>,
    pub cpu: usize,
    /// In a queue, or running.
    pub runnable: bool,
    /// The share of time in which it is runnable (se.avg of 3.8).
    pub load: Average,
    ran_ns: u64,
    slice_from_ns: u64,
    pub stopped_ns: u64,
    is_new: bool,
}

/// What waits for a CPU and what runs there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub tasks: BTreeSet<(u64, usize)>,
    pub current: Option<usize>,
    min_vruntime: u64,
    balance_ns: u64,
    idle_since_ns: u64,
    pub avg_idle_ns: u64,
    /// The share of time in which it runs anything.
    pub util: Average,
}

impl Queue {
    /// ttwu_do_wakeup(): its average moves an eighth of the way to how long it was idle just now, and to
    /// the most at once if that was longer.
    fn was_idle(&mut self, idle_ns: u64) {
        let max_ns = 2 * MIGRATION_COST_NS;
        if idle_ns > max_ns {
            self.avg_idle_ns = max_ns;
        } else if idle_ns > 0 {
            self.avg_idle_ns = self
                .avg_idle_ns
                .saturating_add_signed((idle_ns as i64 - self.avg_idle_ns as i64) / 8);
        }
    }
}

/// The class.
pub struct Fair {
    pub(crate) queues: Vec<Queue>,
    pub(crate) entities: Vec<Entity>,
    /// Of cgroups.
    pub(super) limits: Vec<Limit>,
    balancer: Box<dyn Balancer>,
    factor: u64,
}

impl Fair {
    pub fn new(machine: &Machine, which: Comparator) -> Self {
        let nr = machine.cpus().len();
        Fair {
            queues: vec![Queue { avg_idle_ns: 2 * MIGRATION_COST_NS, ..Queue::default() }; nr],
            entities: Vec::new(),
            limits: Vec::new(),
            balancer: which.balancer(machine),
            factor: 1 + u64::from(nr.min(CPUS_MAX).ilog2()),
        }
    }

    pub fn spawn(&mut self, task: &Task, home: Home) {
        let cgroup_weight = match home {
            Home::Kind(weight, _) => weight,
            Home::Made(_) => None,
        };
        self.entities.push(Entity {
            vruntime: 0,
            weight: home.load_weight(task.c().scx.weight),
            cgroup_weight,
            cpu: task.cpu(),
            runnable: false,
            load: Average::of(1.0, 0),
            ran_ns: 0,
            slice_from_ns: 0,
            stopped_ns: 0,
            is_new: true,
        });
    }

    /// Where the balancer puts a task that wakes or is new.
    pub fn select(
        &mut self,
        now_ns: u64,
        cpus: &[Cpu],
        id: usize,
        here: usize,
        sync: bool,
    ) -> usize {
        let view = View::new(now_ns, &self.queues, &self.entities, cpus);
        if self.entities[id].is_new {
            self.balancer.fork(&view, id)
        } else {
            self.balancer.wake(&view, id, here, sync)
        }
    }

    /// The tasks that wait for `cpu`, beside what runs.
    pub fn waiting(&self, cpu: usize) -> usize {
        self.queues[cpu].tasks.len()
    }

    /// place_entity(): a sleeper comes back half a latency behind the others.
    pub fn enqueue(&mut self, now_ns: u64, cpu: usize, id: usize, wakes: bool) {
        let floor = self.queues[cpu].min_vruntime;
        let left = self.queues[self.entities[id].cpu].min_vruntime;
        let queue = &mut self.queues[cpu];
        let entity = &mut self.entities[id];
        if entity.is_new {
            entity.vruntime = entity.vruntime.max(floor);
        } else if entity.cpu != cpu {
            // task_waking_fair() and enqueue_entity(): each queue has a time of its own.
            let ahead = entity.vruntime as i64 - left as i64;
            entity.vruntime = floor.saturating_add_signed(ahead);
        }
        if wakes && !entity.is_new {
            let thresh = LATENCY_NS * self.factor / 2;
            entity.vruntime = entity.vruntime.max(floor.saturating_sub(thresh));
        }
        if wakes {
            entity.load.update(now_ns, 0.0);
        }
        entity.cpu = cpu;
        entity.is_new = false;
        entity.runnable = true;
        queue.tasks.insert((entity.vruntime, id));
    }

    /// Charges what runs on `cpu`; update_curr().
    pub fn charge(&mut self, cpu: usize, ran_ns: u64) {
        let queue = &mut self.queues[cpu];
        let Some(id) = queue.current else { return };
        let entity = &mut self.entities[id];
        entity.vruntime += ran_ns * 1024 / entity.weight;
        entity.ran_ns += ran_ns;
        let first = queue.tasks.first().map_or(entity.vruntime, |(vruntime, _)| *vruntime);
        queue.min_vruntime = queue.min_vruntime.max(entity.vruntime.min(first));
        self.draw(id, ran_ns);
    }

    /// check_preempt_wakeup(): it is more behind than the granularity.
    pub fn preempts(&self, cpu: usize, id: usize) -> bool {
        let Some(current) = self.queues[cpu].current else { return false };
        let granularity = WAKEUP_GRANULARITY_NS * self.factor * 1024 / self.entities[id].weight;
        self.entities[current].vruntime > self.entities[id].vruntime + granularity
    }

    /// sched_slice(): its share of the latency.
    fn slice_ns(&self, cpu: usize, id: usize) -> u64 {
        let queue = &self.queues[cpu];
        let weights: u64 = queue.tasks.iter().map(|(_, id)| self.entities[*id].weight).sum();
        let (latency, min) = (LATENCY_NS * self.factor, MIN_GRANULARITY_NS * self.factor);
        let period = latency.max(min * (queue.tasks.len() as u64 + 1));
        period * self.entities[id].weight / (weights + self.entities[id].weight)
    }

    /// check_preempt_tick().
    pub fn slice_over(&self, cpu: usize) -> bool {
        let queue = &self.queues[cpu];
        let (Some(id), Some((first, _))) = (queue.current, queue.tasks.first()) else {
            return false;
        };
        let entity = &self.entities[id];
        let (ran, slice) = (entity.ran_ns - entity.slice_from_ns, self.slice_ns(cpu, id));
        ran > slice
            || ran >= MIN_GRANULARITY_NS * self.factor
                && entity.vruntime > first.saturating_add(slice)
    }

    /// Whether a waiting task is more behind than `id`, which runs.
    pub fn waits_before(&self, cpu: usize, id: usize) -> bool {
        let first = self.queues[cpu].tasks.first();
        first.is_some_and(|(vruntime, _)| *vruntime < self.entities[id].vruntime)
    }

    pub fn begin_slice(&mut self, cpu: usize) {
        if let Some(id) = self.queues[cpu].current {
            self.entities[id].slice_from_ns = self.entities[id].ran_ns;
        }
    }

    pub fn put_back(&mut self, cpu: usize, id: usize) {
        self.queues[cpu].tasks.insert((self.entities[id].vruntime, id));
    }

    pub fn take_first(&mut self, cpu: usize) -> Option<usize> {
        self.queues[cpu].tasks.pop_first().map(|(_, id)| id)
    }

    /// What ran on `cpu` does not any more.
    fn stop(&mut self, now_ns: u64, cpu: usize) {
        let queue = &mut self.queues[cpu];
        let Some(id) = queue.current.take() else { return };
        queue.util.update(now_ns, 1.0);
        let entity = &mut self.entities[id];
        entity.load.update(now_ns, 1.0);
        entity.stopped_ns = now_ns;
        queue.idle_since_ns = now_ns;
    }

    /// What runs on `cpu` from now on.
    pub fn set_current(&mut self, now_ns: u64, cpu: usize, next: Option<usize>) {
        self.stop(now_ns, cpu);
        let Some(id) = next else { return };
        let queue = &mut self.queues[cpu];
        queue.was_idle(now_ns - queue.idle_since_ns);
        queue.util.update(now_ns, 0.0);
        queue.current = next;
        let entity = &mut self.entities[id];
        entity.slice_from_ns = entity.ran_ns;
    }

    /// It sleeps, or is moved away while it ran.
    pub fn leaves(&mut self, now_ns: u64, cpu: usize, id: usize) {
        self.stop(now_ns, cpu);
        self.entities[id].runnable = false;
    }

    /// Whether a CPU that has just run out of work is idle for long enough.
    pub fn worth_looking(&self, cpu: usize) -> bool {
        self.queues[cpu].avg_idle_ns >= MIGRATION_COST_NS
    }

    /// Whether it is time for a busy CPU to balance.
    pub fn balance_due(&mut self, now_ns: u64, cpu: usize) -> bool {
        let interval_ns = BUSY_FACTOR_MS * NS_PER_MS * self.queues.len() as u64;
        let due = now_ns >= self.queues[cpu].balance_ns;
        if due {
            self.queues[cpu].balance_ns = now_ns + interval_ns;
        }
        due
    }

    /// Moves a task that waits to `to`, from where the balancer says.
    pub fn pull(
        &mut self,
        now_ns: u64,
        cpus: &[Cpu],
        to: usize,
        idle: bool,
        allowed: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let view = View::new(now_ns, &self.queues, &self.entities, cpus);
        let from = self.balancer.pull(&view, to, idle)?;
        let mut waiting = self.queues[from].tasks.iter().rev();
        let (vruntime, id) = *waiting.find(|(_, id)| allowed(*id) && !view.is_hot(*id))?;
        self.queues[from].tasks.remove(&(vruntime, id));
        let behind = vruntime.saturating_sub(self.queues[from].min_vruntime);
        self.entities[id].vruntime = self.queues[to].min_vruntime + behind;
        self.entities[id].cpu = to;
        self.queues[to].tasks.insert((self.entities[id].vruntime, id));
        Some(id)
    }
}
