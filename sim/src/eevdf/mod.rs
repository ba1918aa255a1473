//! The fair class of today, Linux 6.12 to 7.x: EEVDF queues, PELT utilization, wake-up placement and
//! load balance; with energy-aware placement (EAS) where the machine has several kinds of cores.
//! Written from kernel/sched/fair.c; docs/simulator.md says what is left out.

mod balance;
mod class;
pub(crate) mod domains;
mod energy;
mod imbalance;
mod numa;
mod queue;

mod signals;
mod view;
mod wake;

pub(crate) use class::Eevdf;

use crate::kernel::{Class, Kernel};
use crate::task::{State, Task};
use balance::Pulled;
use wake::Wake;

impl Class {
    fn eevdf(&mut self) -> &mut Eevdf {
        match self {
            Class::Eevdf(eevdf) => eevdf,
            Class::Ext(_) | Class::Fair(_) => panic!("another class schedules"),
        }
    }
}

impl Kernel {
    /// The class, and the tasks that it decides about.
    fn eevdf_and_tasks(&mut self) -> (&mut Eevdf, &mut Vec<Task>) {
        (self.class.eevdf(), &mut self.tasks)
    }

    /// try_to_wake_up() and wake_up_new_task().
    pub(crate) fn eevdf_wake(&mut self, id: usize, here: usize, sync: bool) {
        let (eevdf, tasks) = self.eevdf_and_tasks();
        let stays = eevdf.is_delayed(id);
        let wanted = match stays {
            true => tasks[id].cpu(),
            false => eevdf.select(Wake { task: &tasks[id], id, here, sync }),
        };
        let fits = self.cpus[wanted].online && self.tasks[id].may_run_on(wanted);
        let cpu = if fits || stays { wanted } else { self.fallback(id) };
        self.account(cpu);
        let now_ns = self.now_ns;
        let task = &mut self.tasks[id];
        task.state = State::Queued;
        task.queued_since_ns = now_ns;
        task.c_mut().cpu = cpu as i32;
        if self.class.eevdf().enqueue(now_ns, cpu, id) || self.cpus[cpu].running.is_none() {
            self.resched(cpu);
        }
        self.util_changed(cpu);
    }

    /// __schedule(): the eligible task with the earliest deadline runs next; if none waits, one is
    /// pulled.
    pub(crate) fn eevdf_schedule(&mut self, cpu: usize) {
        let prev = self.cpus[cpu].running.filter(|&id| self.tasks[id].state == State::Running);
        let now_ns = self.now_ns;
        let mut next = self.class.eevdf().pick(now_ns, cpu);
        if next.is_none() {
            let (eevdf, tasks) = self.eevdf_and_tasks();
            let pulled = eevdf.balance_newly_idle(now_ns, tasks, cpu);
            self.eevdf_pulled(cpu, pulled);
            next = self.class.eevdf().pick(now_ns, cpu);
        }
        if prev.is_some() && prev == next {
            self.class.eevdf().switch_to(now_ns, cpu, next);
            return;
        }
        if let Some(prev) = prev {
            self.tasks[prev].state = State::Queued;
            self.tasks[prev].queued_since_ns = now_ns;
        }
        self.switch_to(cpu, next);
        self.class.eevdf().switch_to(now_ns, cpu, next);
        if let Some(id) = next {
            self.expect_done(cpu, id);
        }
    }

    /// Tasks have come to `to`, or what runs elsewhere is to come.
    fn eevdf_pulled(&mut self, to: usize, pulled: Pulled) {
        match pulled {
            Pulled::Nothing => {}
            Pulled::Waiting(ids) => {
                ids.into_iter().for_each(|id| self.tasks[id].c_mut().cpu = to as i32);
                self.util_changed(to);
            }
            Pulled::Running(from) => self.eevdf_push(from, to),
        }
    }

    /// active_load_balance_cpu_stop(): what runs on `from` goes to `to`.
    fn eevdf_push(&mut self, from: usize, to: usize) {
        self.account(from);
        let running = self.cpus[from].running.filter(|&id| self.tasks[id].state == State::Running);
        let Some(id) = running else { return };
        let now_ns = self.now_ns;
        self.class.eevdf().move_running(now_ns, id, to);
        let task = &mut self.tasks[id];
        task.state = State::Queued;
        task.queued_since_ns = now_ns;
        task.c_mut().cpu = to as i32;
        let next = self.class.eevdf().pick(now_ns, from);
        self.switch_to(from, next);
        self.class.eevdf().switch_to(now_ns, from, next);
        if let Some(id) = next {
            self.expect_done(from, id);
        }
        self.util_changed(to);
    }

    /// sched_tick(): the slice, and balancing.
    pub(crate) fn eevdf_tick(&mut self, cpu: usize) {
        let now_ns = self.now_ns;
        if self.class.eevdf().tick(cpu) {
            self.resched(cpu);
        }
        self.eevdf_balance(cpu);
        let (eevdf, tasks) = self.eevdf_and_tasks();
        if !eevdf.kicks_idle(now_ns, tasks, cpu) {
            return;
        }
        // nohz_balancer_kick(): an idle CPU is woken to look on behalf of all idle ones.
        let idle: Vec<usize> = (0..self.cpus.len()).filter(|&cpu| self.is_idle(cpu)).collect();
        let Some(&first) = idle.first() else { return };
        self.interrupt(first);
        for cpu in idle {
            self.eevdf_balance(cpu);
        }
    }

    /// sched_balance_softirq(), at a tick of `to`, busy or idle, or on behalf of it.
    pub(crate) fn eevdf_balance(&mut self, to: usize) {
        let now_ns = self.now_ns;
        let (eevdf, tasks) = self.eevdf_and_tasks();
        for pulled in eevdf.balance_due(now_ns, tasks, to) {
            self.eevdf_pulled(to, pulled);
        }
        if self.is_idle(to) && !self.class.eevdf().is_idle(to) {
            self.resched(to);
        }
    }

    pub(crate) fn eevdf_sleeps(&mut self, cpu: usize, id: usize) {
        let now_ns = self.now_ns;
        self.class.eevdf().sleeps(now_ns, cpu, id);
    }
}
