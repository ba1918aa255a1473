//! What must hold.

use powerpack_sim::{Kernel, State, Task};

use super::MS;
use super::world::{EFFICIENT, PACKED};
use crate::bpf_intf as intf;
use crate::machine::topology::Ranks;

/// An idle CPU of the active set may leave a shared queue alone for this long: a
/// kick is under way, or the task has just come.
const LEFT_ALONE_MAX_MS: u32 = 2;
/// A slice ends at the first tick after 3 ms.
const SLICE_MAX_NS: u64 = 8 * MS;
/// A queue is overdue with 15 ms of work for each CPU (PP_OVERDUE_BUDGETS) or if it
/// has not been empty for as long. Then each tick of 4 ms wakes an idle surplus CPU,
/// one after the other.
const OVERDUE_NS: u64 = 25 * MS;
const RELIEF_NS: u64 = 5 * MS;
/// Sleepers come back ahead of those that wait, and so may have a second turn before
/// them, and a CPU that goes costs one; an LLC that has no CPU of its own is served
/// every eighth time (PP_STEAL_FIRST_EVERY in dispatch.bpf.h).
const TURNS: u64 = 3;
const TURNS_OF_OTHER_LLCS: u64 = 10;
const CPU_QUEUE_BASE: usize = intf::pp_limits_PP_CPU_QUEUE_BASE as usize;
/// The active set is sized for an average with a half-life of 32 ms: after ten of
/// them it is what it is.
const SETTLED_MS: u64 = 320;
/// The active set carries what runs if all but this share of it fits (of a CPU).
const CARRIED_SLACK: f64 = 0.5;

/// Looks at a machine each millisecond.
pub struct Watch {
    order: Vec<usize>,
    /// By rank.
    nodes: Vec<usize>,
    llcs: Vec<(usize, usize)>,
    nr_efficient: usize,
    left_alone_ms: u32,
    settled_ms: u64,
    busy_ns: u64,
    packs_all: bool,
}

impl Watch {
    /// `packs_all`: all tasks may run everywhere, and none may use surplus CPUs by right.
    pub fn new(ranks: &Ranks, packs_all: bool) -> Self {
        let order = ranks.cpus().iter().map(|cpu| cpu.cpu).collect();
        let (nodes, llcs, nr_efficient) =
            (ranks.node_of_rank(), ranks.llcs(), ranks.nr_efficient());
        let (left_alone_ms, settled_ms, busy_ns) = (0, 0, 0);
        Watch { order, nodes, llcs, nr_efficient, left_alone_ms, settled_ms, busy_ns, packs_all }
    }

    /// The policy or the CPUs have changed.
    pub fn disturbed(&mut self) {
        self.settled_ms = 0;
    }

    pub fn look(&mut self, kernel: &Kernel) {
        check_tasks(kernel);
        let left_alone = self.leaves_alone(kernel);
        self.left_alone_ms = if left_alone { self.left_alone_ms + 1 } else { 0 };
        assert!(
            self.left_alone_ms <= LEFT_ALONE_MAX_MS,
            "an idle CPU leaves tasks waiting: {}",
            self.describe(kernel)
        );
        self.check_waits_beside_idle(kernel);
        self.check_active_set(kernel);
    }

    /// Whether an idle CPU leaves what only it can run alone, or an active one what
    /// its memory node shares: but while all are active, what is to be packed waits for the CPUs that it is
    /// packed on.
    fn leaves_alone(&self, kernel: &Kernel) -> bool {
        let own = |&cpu: &usize| {
            kernel.is_idle(cpu)
                && kernel.waiting_on(cpu) + kernel.waiting_in(CPU_QUEUE_BASE + cpu) > 0
        };
        let all_active =
            self.order.iter().all(|&cpu| kernel.is_active(cpu) || !kernel.cpus[cpu].online);
        let is_for_any = |task: &Task| !all_active || task.name != PACKED;
        let shared = |rank: usize| {
            let (cpu, mut llcs) = (self.order[rank], self.llcs.iter().enumerate());
            let of_node = |begin: usize| self.nodes[begin] == self.nodes[rank];
            kernel.is_active(cpu)
                && kernel.is_idle(cpu)
                && llcs.any(|(llc, span)| of_node(span.0) && kernel.waits_for(llc, cpu, is_for_any))
        };
        self.order.iter().any(own) || (0..self.order.len()).any(shared)
    }

    /// No task waits for long while a CPU is idle that it is for.
    fn check_waits_beside_idle(&self, kernel: &Kernel) {
        let equal = kernel.tasks.iter().all(|task| task.c().scx.weight == 100);
        if !equal || !self.order.iter().any(|&cpu| kernel.is_idle(cpu)) {
            return;
        }
        let bound_ns = OVERDUE_NS + RELIEF_NS * self.order.len() as u64;
        for (id, task) in kernel.tasks.iter().enumerate() {
            let waits = task.state == State::Queued;
            let waited_ns = if waits { kernel.now_ns() - task.queued_since_ns } else { 0 };
            if waited_ns > bound_ns {
                let idle = self.cpus_for(kernel, task).into_iter().find(|&cpu| kernel.is_idle(cpu));
                assert!(
                    idle.is_none(),
                    "task {id} waits for {} ms although CPU {idle:?} is idle: {}",
                    waited_ns / MS,
                    self.describe(kernel)
                );
            }
        }
    }

    /// The CPUs that a task is for: what it may run on, of the efficient ones if it is to stay on those
    /// and one of them is online. While some wait for these alone others leave their queues alone, and with them
    /// whom else they hold: takeable_by() in steal.bpf.h.
    fn cpus_for(&self, kernel: &Kernel, task: &Task) -> Vec<usize> {
        let allowed = |cpus: &[usize]| -> Vec<usize> {
            let usable = |&&cpu: &&usize| kernel.cpus[cpu].online && task.may_run_on(cpu);
            cpus.iter().filter(usable).copied().collect()
        };
        let is_on_efficient = |task: &Task| {
            let may_use = |&cpu: &usize| kernel.cpus[cpu].online && task.may_run_on(cpu);
            task.name == EFFICIENT && self.order[..self.nr_efficient].iter().any(may_use)
        };
        if is_on_efficient(task) {
            return allowed(&self.order[..self.nr_efficient]);
        }
        let waits = |task: &Task| task.state == State::Queued && is_on_efficient(task);
        if kernel.tasks.iter().any(waits) { vec![] } else { allowed(&self.order) }
    }

    /// The active set has the capacity for what ran since things have settled.
    fn check_active_set(&mut self, kernel: &Kernel) {
        let busy_ns = |kernel: &Kernel| kernel.cpus.iter().map(|cpu| cpu.non_idle_ns).sum();
        if self.settled_ms == 0 {
            self.busy_ns = busy_ns(kernel);
        }
        self.settled_ms += 1;
        if self.settled_ms < SETTLED_MS || !self.packs_all {
            return;
        }
        let now: u64 = busy_ns(kernel);
        let busy = (now - self.busy_ns) as f64 / (self.settled_ms - 1) as f64 / MS as f64;
        self.settled_ms = 0;
        let active = kernel.nr_active().unwrap() as f64;
        assert!(
            busy <= active + CARRIED_SLACK,
            "{busy:.2} CPUs are busy, and {active} active: {}",
            self.describe(kernel)
        );
    }

    /// Among equals none waited for more than a slice of everyone else, `turns` times.
    pub fn check_waits(&self, kernel: &Kernel) {
        let turns = if self.llcs.len() > 1 { TURNS_OF_OTHER_LLCS } else { TURNS };
        let bound_ns = (kernel.tasks.len() as u64 + 1) * SLICE_MAX_NS * turns;
        for (id, task) in kernel.tasks.iter().enumerate() {
            let waits = task.state == State::Queued;
            let waited_ns = if waits { kernel.now_ns() - task.queued_since_ns } else { 0 };
            let longest_ns = waited_ns.max(task.longest_wait_ns);
            assert!(longest_ns <= bound_ns, "task {id} waited for {longest_ns} of {bound_ns} ns");
        }
    }

    /// Which CPUs are idle, and what waits where.
    fn describe(&self, kernel: &Kernel) -> String {
        let cpus = self.order.iter().map(|&cpu| {
            let state = if !kernel.cpus[cpu].online {
                "offline"
            } else if kernel.is_idle(cpu) {
                "idle"
            } else {
                "busy"
            };
            let own = kernel.waiting_in(CPU_QUEUE_BASE + cpu);
            format!("CPU {cpu} {state} local {} own {own}", kernel.waiting_on(cpu))
        });
        let shared: Vec<usize> = (0..self.llcs.len()).map(|llc| kernel.waiting_in(llc)).collect();
        let cpus: Vec<String> = cpus.collect();
        let active = kernel.nr_active().unwrap();
        let ms = kernel.now_ns() / MS;
        format!("{ms} ms: {active} active of {}; shared {shared:?}", cpus.join(", "))
    }
}

/// Every task is where its state says, and none is in two places or nowhere.
pub fn check_tasks(kernel: &Kernel) {
    let of = |state| kernel.tasks.iter().filter(|task| task.state == state).count();
    assert_eq!(of(State::Queued), kernel.waiting(), "a task is lost");
    let busy = (0..kernel.cpus.len()).filter(|&cpu| kernel.is_running(cpu)).count();
    assert_eq!(of(State::Running), busy, "a task is lost");
}
