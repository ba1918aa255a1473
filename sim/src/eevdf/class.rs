//! The state of the class: queues, signals and what is derived from them.

use super::domains::{Level, levels};
use super::energy::{PerfDomain, perf_domains};
use super::queue::{Entity, Queue};
use super::signals::{Inputs, PeltClock, Signals, estimate};
use crate::machine::{Machine, MachineCpu};
use crate::power::Domain;
use crate::task::{Home, Task};

/// sysctl_sched_base_slice of one CPU (6.12; 0.75 ms before 6.6.18); it grows with 1 + log2 of the
/// CPUs, of at most 8.
const BASE_SLICE_NS: u64 = 700_000;
const CPUS_MAX: usize = 8;
/// How often idle CPUs' utilization is decayed while others are busy: LOAD_AVG_PERIOD.
const BLOCKED_PERIOD_NS: u64 = 32_000_000;

/// A task, beside what its queue knows.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskState {
    /// Where it is, or was last.
    pub cpu: usize,
    /// Where it was before that (recent_used_cpu).
    pub recent_cpu: usize,
    pub signals: Signals,
    /// Utilization remembered across sleep.
    pub estimate: f64,
    /// Waits or runs.
    pub runnable: bool,
    pub stopped_ns: u64,
}

impl TaskState {
    /// task_util_est().
    pub fn util_est(&self) -> f64 {
        self.signals.util.max(self.estimate)
    }
}

/// A CPU, beside its queue.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuState {
    clock: PeltClock,
    pub signals: Signals,
    pub siblings: Vec<usize>,
    /// It has been idle since the governor looked: sugov_hold_freq().
    was_idle: bool,
}

/// The class.
pub(crate) struct Eevdf {
    pub(super) queues: Vec<Queue>,
    pub(super) entities: Vec<Entity>,
    pub(super) tasks: Vec<TaskState>,
    pub(super) cpus: Vec<CpuState>,
    pub(super) places: Vec<MachineCpu>,
    /// As the kernel has it: all the same where cores have threads.
    pub(super) capacity: Vec<f64>,
    /// CPUs have different capacities.
    pub(super) asym: bool,
    /// By CPU, lowest first.
    pub(super) domains: Vec<Vec<Level>>,
    /// With energy-aware placement.
    pub(super) energy: Option<Vec<PerfDomain>>,
    /// Some CPU has more than it can carry: tasks are placed and balanced without regard to energy.
    pub(super) overutilized: bool,
    /// A task has waited somewhere since the whole machine was last balanced (rd->overloaded).
    pub(super) overloaded: bool,
    blocked_ns: u64,
}

impl Eevdf {
    /// `clocks`: CPUs that share one; `energy`: with EAS, where the machine allows it.
    pub fn new(machine: &Machine, clocks: &[Domain], energy: bool) -> Self {
        let places = machine.cpus();
        let threads = places.iter().any(|place| machine.core_of(place).threads > 1);
        // intel_pstate, for one, gives hybrid machines no capacities while SMT is on.
        let of = |place: &MachineCpu| if threads { 1024.0 } else { place.capacity as f64 };
        let capacity: Vec<f64> = places.iter().map(of).collect();
        let slice_ns = BASE_SLICE_NS * (1 + u64::from(places.len().min(CPUS_MAX).ilog2()));
        let tick_ns = machine.costs().tick_ns;
        let cpu = |place: &MachineCpu| {
            let core = places.iter().filter(|other| other.core == place.core);
            let siblings = core.map(|other| other.cpu).filter(|&cpu| cpu != place.cpu).collect();
            CpuState { siblings, was_idle: true, ..CpuState::default() }
        };
        Eevdf {
            queues: vec![Queue::new(slice_ns, tick_ns); places.len()],
            entities: Vec::new(),
            tasks: Vec::new(),
            cpus: places.iter().map(cpu).collect(),
            asym: capacity.iter().any(|other| *other != capacity[0]),
            domains: (0..places.len()).map(|cpu| levels(&places, &capacity, cpu)).collect(),
            energy: energy.then(|| perf_domains(machine, clocks)).flatten(),
            capacity,
            places,
            overutilized: false,
            overloaded: false,
            blocked_ns: 0,
        }
    }

    pub fn spawn(&mut self, task: &Task, home: Home) {
        self.entities.push(Entity::new(home.load_weight(task.c().scx.weight)));
        let cpu = task.cpu();
        self.tasks.push(TaskState { cpu, recent_cpu: cpu, ..TaskState::default() });
    }

    /// What `cpu` has been doing. A CPU that has been idle begins when it is awake: there the kernel
    /// puts into the queue what has woken it.
    fn inputs(&self, cpu: usize) -> Inputs {
        if self.cpus[cpu].clock.is_idle() {
            return Inputs::default();
        }
        let queue = &self.queues[cpu];
        Inputs {
            running: queue.current().is_some(),
            runnable: self.nr_runnable(cpu),
            load: queue.waiting().chain(queue.current()).map(|id| self.entities[id].weight).sum(),
        }
    }

    fn inputs_of(&self, id: usize) -> Inputs {
        let cpu = self.tasks[id].cpu;
        if self.cpus[cpu].clock.is_idle() {
            return Inputs::default();
        }
        let running = self.queues[cpu].current() == Some(id);
        let runnable = self.tasks[id].runnable;
        let queued = runnable || self.entities[id].delayed;
        let load = if queued { self.entities[id].weight } else { 0 };
        Inputs { running, runnable: usize::from(runnable), load }
    }

    /// Brings the signals of `cpu` up to date, and those of what runs there.
    fn settle(&mut self, now_ns: u64, cpu: usize) {
        let pelt_ns = self.cpus[cpu].clock.at(now_ns);
        let inputs = self.inputs(cpu);
        self.cpus[cpu].signals.update(pelt_ns, inputs);
        if let Some(id) = self.queues[cpu].current() {
            self.settle_task(now_ns, id);
        }
    }

    fn settle_task(&mut self, now_ns: u64, id: usize) {
        let inputs = self.inputs_of(id);
        let task = &mut self.tasks[id];
        task.signals.update(self.cpus[task.cpu].clock.at(now_ns), inputs);
    }

    /// What runs on `cpu` has run for `ran_ns` until `now_ns`, at `speed` (1024 = full).
    pub fn charge(&mut self, now_ns: u64, cpu: usize, ran_ns: u64, speed: u64) {
        self.cpus[cpu].clock.run(ran_ns, speed);
        self.settle(now_ns, cpu);
        self.queues[cpu].charge(&mut self.entities, ran_ns);
    }

    /// Task `id` sleeps, but is still in its queue.
    pub fn is_delayed(&self, id: usize) -> bool {
        self.entities[id].delayed
    }

    /// Task `id` wakes on `cpu`. Whether it preempts what runs there.
    pub fn enqueue(&mut self, now_ns: u64, cpu: usize, id: usize) -> bool {
        self.settle(now_ns, cpu);
        self.settle_task(now_ns, id);
        let is_new = self.entities[id].is_new;
        if is_new {
            self.tasks[id].cpu = cpu;
            let (capacity, weight) = (self.capacity[cpu], self.entities[id].weight);
            let signals = &mut self.cpus[cpu].signals;
            self.tasks[id].signals = signals.of_new_task(capacity, weight);
            signals.attach(&mut self.tasks[id].signals);
        } else if self.tasks[id].cpu != cpu {
            self.rehome(id, cpu);
        }
        if self.entities[id].delayed {
            self.queues[cpu].wake_delayed(&mut self.entities, id);
        } else {
            self.queues[cpu].enqueue(&mut self.entities, id);
        }
        self.tasks[id].runnable = true;
        self.overloaded |= self.queues[cpu].nr() > 1;
        self.overutilized |= !is_new && self.is_overutilized(cpu);
        self.queues[cpu].must_schedule || self.queues[cpu].pick(&self.entities) == Some(id)
    }

    /// The utilization of task `id` leaves with it.
    fn rehome(&mut self, id: usize, to: usize) {
        let task = &mut self.tasks[id];
        self.cpus[task.cpu].signals.detach(&task.signals);
        self.cpus[to].signals.attach(&mut task.signals);
        task.cpu = to;
    }

    /// Task `id`, which waits elsewhere, waits for `to`.
    pub(super) fn move_waiting(&mut self, now_ns: u64, id: usize, to: usize) {
        let from = self.tasks[id].cpu;
        self.settle(now_ns, from);
        self.settle_task(now_ns, id);
        self.settle(now_ns, to);
        self.queues[from].move_away(&mut self.entities, id);
        self.rehome(id, to);
        self.queues[to].enqueue(&mut self.entities, id);
    }

    /// The same of a task that runs.
    pub fn move_running(&mut self, now_ns: u64, id: usize, to: usize) {
        self.tasks[id].stopped_ns = now_ns;
        self.move_waiting(now_ns, id, to);
    }

    /// What is to run on `cpu`. What slept, and stayed until it is its turn, leaves.
    pub fn pick(&mut self, now_ns: u64, cpu: usize) -> Option<usize> {
        loop {
            let id = self.queues[cpu].pick(&self.entities)?;
            if !self.entities[id].delayed {
                return Some(id);
            }
            self.settle(now_ns, cpu);
            self.settle_task(now_ns, id);
            self.queues[cpu].finish_sleep(&mut self.entities, id);
        }
    }

    /// `next` runs on `cpu` from now on.
    pub fn switch_to(&mut self, now_ns: u64, cpu: usize, next: Option<usize>) {
        self.settle(now_ns, cpu);
        if let Some(id) = next {
            self.settle_task(now_ns, id);
        }
        if let Some(prev) = self.queues[cpu].current().filter(|_| next.is_some()) {
            self.tasks[prev].stopped_ns = now_ns;
        }
        let state = &mut self.cpus[cpu];
        match next {
            Some(_) => state.clock.begin(now_ns),
            None => {
                state.clock.end(now_ns, state.signals.util);
                state.was_idle = true;
            }
        }
        self.queues[cpu].switch_to(&self.entities, next);
    }

    /// Task `id`, which runs on `cpu`, goes to sleep.
    pub fn sleeps(&mut self, now_ns: u64, cpu: usize, id: usize) {
        self.settle(now_ns, cpu);
        let task = &mut self.tasks[id];
        task.estimate = estimate(task.estimate, &task.signals, self.capacity[cpu]);
        task.runnable = false;
        task.stopped_ns = now_ns;
        self.queues[cpu].sleep(&mut self.entities);
    }

    /// A tick of `cpu`. Whether it is to choose again.
    pub fn tick(&mut self, cpu: usize) -> bool {
        self.overutilized |= self.is_overutilized(cpu);
        self.queues[cpu].must_schedule
    }

    /// Whether any CPU has too much now: update_sd_lb_stats() of the whole machine.
    pub(super) fn look_for_overutilized(&mut self) {
        self.overutilized = (0..self.cpus.len()).any(|cpu| self.is_overutilized(cpu));
    }

    /// Idle CPUs' utilization decays where somebody looks: _nohz_idle_balance(). A kernel finds out
    /// at about the same time that it is no longer overutilized: some CPU looks at the whole machine,
    /// as kernel threads, which are not in the model, wait for each other now and then.
    pub(super) fn refresh_blocked(&mut self, now_ns: u64) {
        if now_ns < self.blocked_ns {
            return;
        }
        self.blocked_ns = now_ns + BLOCKED_PERIOD_NS;
        for cpu in 0..self.cpus.len() {
            if self.is_idle(cpu) {
                self.settle(now_ns, cpu);
            }
        }
        self.look_for_overutilized();
    }

    /// Whether `cpu` has been idle since this was last asked.
    pub fn was_idle(&mut self, cpu: usize) -> bool {
        std::mem::take(&mut self.cpus[cpu].was_idle)
    }
}
