//! What a CPU runs next: balance_one(), pick_task_scx(), put_prev_task_scx() and
//! set_next_task_scx() of kernel/sched/ext.c.

use std::ptr;

use super::ffi::{ENQ_LAST, TASK_QUEUED};
use super::kfuncs::{may_run, shared};
use crate::costs::{self, Event};
use crate::kernel::Kernel;

/// The slice that the kernel gives a task that has none (SCX_SLICE_DFL).
const SLICE_DEFAULT_NS: u64 = 20_000_000;

impl Kernel {
    /// __schedule(): balance_one(), pick_task_scx(), put_prev_set_next_task().
    pub(crate) fn ext_schedule(&mut self, cpu: usize) {
        let prev = self.cpus[cpu].running;
        if self.keeps(cpu, prev) {
            return;
        }
        let next = shared(|s| s.local[cpu].take(|_| true));
        let next = next.map(|task| unsafe { (*task).id } as usize);
        if let Some(prev) = prev {
            self.put_prev(cpu, prev, next.is_none());
        }
        self.set_next(cpu, prev.is_none(), next);
    }

    /// Fills the local queue; true if `prev` goes on instead.
    fn keeps(&mut self, cpu: usize, prev: Option<usize>) -> bool {
        let queued = |k: &Self| prev.filter(|&id| k.tasks[id].c().scx.flags & TASK_QUEUED != 0);
        let has_slice = |k: &Self| queued(k).is_some_and(|id| k.tasks[id].c().scx.slice_ns > 0);
        let local = || shared(|s| s.local[cpu].len() > 0);
        if has_slice(self) {
            return true;
        }
        if local() || self.take_global(cpu) || !self.cpus[cpu].online {
            return false;
        }
        let ptr = prev.map_or(ptr::null_mut(), |id| self.tasks[id].ptr());
        costs::was_for_nothing();
        self.op(cpu, |ops| (ops.dispatch)(cpu as i32, ptr));
        let goes_on = has_slice(self);
        if !goes_on && !local() {
            self.take_global(cpu);
        }
        let found = goes_on || local();
        costs::was_for(if found { Event::Dispatch } else { Event::IdleEntry });
        goes_on
    }

    fn take_global(&mut self, cpu: usize) -> bool {
        shared(|s| {
            let taken = s.global.take(|task| may_run(task, cpu));
            taken.inspect(|&task| s.local[cpu].push_back(task)).is_some()
        })
    }

    /// put_prev_task_scx(): it stops, and waits again if it is not asleep.
    fn put_prev(&mut self, cpu: usize, id: usize, last: bool) {
        let task = self.tasks[id].ptr();
        if self.tasks[id].c().scx.flags & TASK_QUEUED == 0 {
            return;
        }
        costs::was_for_nothing();
        self.op(cpu, |ops| (ops.stopping)(task, true));
        costs::was_for(Event::Switch);
        self.ext_enqueue(id, cpu, if last { ENQ_LAST } else { 0 });
        costs::was_for(Event::Requeue);
    }

    /// What `cpu` ran, if anything, which stops at once.
    pub(crate) fn stop_running(&mut self, cpu: usize) -> Option<usize> {
        self.account(cpu);
        let id = self.cpus[cpu].running?;
        let task = self.tasks[id].ptr();
        self.op(cpu, |ops| (ops.stopping)(task, true));
        self.set_next(cpu, false, None);
        Some(id)
    }

    /// set_next_task_scx(), or idle.
    fn set_next(&mut self, cpu: usize, was_idle: bool, next: Option<usize>) {
        let ptr = next.map_or(ptr::null_mut(), |id| self.tasks[id].ptr());
        shared(|s| s.running[cpu] = ptr);
        self.switch_to(cpu, next);
        if was_idle != next.is_none() {
            self.op(cpu, |ops| (ops.update_idle)(cpu as i32, next.is_none()));
        }
        let Some(id) = next else { return };
        if self.tasks[id].c().scx.slice_ns == 0 {
            self.tasks[id].c_mut().scx.slice_ns = SLICE_DEFAULT_NS;
        }
        costs::was_for_nothing();
        self.op(cpu, |ops| (ops.running)(ptr));
        costs::was_for(Event::Switch);
        self.expect_done(cpu, id);
    }
}
