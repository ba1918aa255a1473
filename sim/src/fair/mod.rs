//! The earlier systems, under a model of the kernel's fair class of 2013: a queue
//! by virtual runtime for each CPU. Each of them is a `Balancer`, which says where a
//! task goes that wakes, and from where an idle or a busy CPU pulls one.

mod bandwidth;
mod baseline;
mod comparator;
mod pas;
mod pst;
mod queue;
mod sched_mc;
mod view;

pub(crate) use bandwidth::Limit;
pub use comparator::Comparator;
pub use queue::Fair;

use crate::kernel::{Class, Kernel};
use crate::task::State;
use view::View;

/// What makes one system differ from another.
pub(crate) trait Balancer {
    /// Where task `id` goes, which wakes on `here`.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize;

    /// Where a new one goes.
    fn fork(&mut self, view: &View, id: usize) -> usize {
        view.idlest(id)
    }

    /// From which CPU `to` pulls a task; `idle`: it has nothing to run.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize>;
}

impl Class {
    fn fair(&mut self) -> &mut Fair {
        match self {
            Class::Fair(fair) => fair,
            Class::Ext(_) | Class::Eevdf(_) => panic!("another class schedules"),
        }
    }
}

impl Kernel {
    pub(crate) fn fair_wake(&mut self, id: usize, here: usize, sync: bool) {
        let now_ns = self.now_ns;
        let Class::Fair(fair) = &mut self.class else { return };
        let wanted = fair.select(now_ns, &self.cpus, id, here, sync);
        let cpu = if self.tasks[id].may_run_on(wanted) { wanted } else { self.fallback(id) };
        self.account(cpu);
        let task = &mut self.tasks[id];
        task.state = State::Queued;
        task.queued_since_ns = now_ns;
        task.c_mut().cpu = cpu as i32;
        let fair = self.class.fair();
        fair.enqueue(now_ns, cpu, id, true);
        if self.cpus[cpu].running.is_none() || self.class.fair().preempts(cpu, id) {
            self.resched(cpu);
        }
    }

    /// __schedule(): the task that is most behind runs next; if none waits, one is pulled.
    pub(crate) fn fair_schedule(&mut self, cpu: usize) {
        let now_ns = self.now_ns;
        let fair = self.class.fair();
        let prev = self.cpus[cpu].running.filter(|&id| self.tasks[id].state == State::Running);
        if let Some(prev) = prev {
            let used_up = fair.is_used_up(now_ns, prev);
            if !used_up && !fair.waits_before(cpu, prev) {
                fair.begin_slice(cpu);
                return;
            }
            if !used_up {
                fair.put_back(cpu, prev);
            }
            self.tasks[prev].state = State::Queued;
            self.tasks[prev].queued_since_ns = now_ns;
            if used_up {
                self.fair_hold(prev);
            }
        }
        let mut next = self.fair_take(cpu);
        if next.is_none() && self.class.fair().worth_looking(cpu) {
            // newidle_balance(): it has run out of work.
            self.fair_pull(cpu, true);
            next = self.fair_take(cpu);
        }
        self.switch_to(cpu, next);
        self.class.fair().set_current(now_ns, cpu, next);
        if let Some(id) = next {
            self.expect_done(cpu, id);
        }
    }

    /// The first one that waits for `cpu` and may run.
    fn fair_take(&mut self, cpu: usize) -> Option<usize> {
        let now_ns = self.now_ns;
        loop {
            let id = self.class.fair().take_first(cpu)?;
            if !self.class.fair().is_used_up(now_ns, id) {
                return Some(id);
            }
            self.fair_hold(id);
        }
    }

    /// load_balance(): one waiting task, from where the balancer says.
    fn fair_pull(&mut self, to: usize, idle: bool) -> bool {
        let now_ns = self.now_ns;
        let tasks = &mut self.tasks;
        let Class::Fair(fair) = &mut self.class else { return false };
        let allowed = |id: usize| tasks[id].may_run_on(to);
        let Some(id) = fair.pull(now_ns, &self.cpus, to, idle, allowed) else { return false };
        tasks[id].c_mut().cpu = to as i32;
        true
    }

    pub(crate) fn fair_tick(&mut self, cpu: usize) {
        let now_ns = self.now_ns;
        let fair = self.class.fair();
        let used_up = self.cpus[cpu].running.is_some_and(|id| fair.is_used_up(now_ns, id));
        if used_up || fair.slice_over(cpu) {
            self.resched(cpu);
        }
        if self.class.fair().balance_due(now_ns, cpu) {
            self.fair_pull(cpu, false);
        }
        if self.class.fair().waiting(cpu) > 0
            && let Some(idle) = self.idle_cpu_near(cpu)
            && self.fair_pull(idle, true)
        {
            self.resched(idle);
        }
    }

    /// nohz_balancer_kick(): an idle CPU looks on behalf of a busy one.
    fn idle_cpu_near(&self, cpu: usize) -> Option<usize> {
        let place = self.cpus[cpu].place;
        let idle = |llc: bool| {
            (0..self.cpus.len()).find(|&other| {
                self.is_idle(other) && (self.cpus[other].place.llc == place.llc) == llc
            })
        };
        idle(true).or_else(|| idle(false))
    }

    pub(crate) fn fair_sleeps(&mut self, cpu: usize, id: usize) {
        let now_ns = self.now_ns;
        self.class.fair().leaves(now_ns, cpu, id);
    }
}

#[cfg(test)]
mod tests {
    use powerpack_workload::Workload;

    use crate::{Machine, Outcome, Scheduler, Setup, System, run};

    /// Ten seconds under an earlier system.
    pub(super) fn outcome(machine: &str, workload: &str, system: &str) -> Outcome {
        let (machine, workload) = (Machine::find(machine), Workload::find(workload));
        let (machine, workload) = (machine.unwrap(), workload.unwrap());
        let scheduler = Scheduler::Comparator(system.parse().unwrap());
        let setup = Setup::new(&machine, &workload, 10.0, 1);
        run(&setup, &System { scheduler, governor: None }).unwrap().0
    }
}
