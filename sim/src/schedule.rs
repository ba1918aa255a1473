//! What a CPU runs next: balance_one(), pick_task_scx(), put_prev_task_scx() and
//! set_next_task_scx() of kernel/sched/ext.c.

use std::ptr;

use crate::event::Event;
use crate::ffi::{ENQ_LAST, TASK_QUEUED};
use crate::kernel::Kernel;
use crate::kfuncs::{may_run, shared};
use crate::task::State;

/// The slice that the kernel gives who has none (SCX_SLICE_DFL).
const SLICE_DEFAULT_NS: u64 = 20_000_000;

impl Kernel {
    /// __schedule(): balance_one(), pick_task_scx(), put_prev_set_next_task().
    pub(crate) fn schedule(&mut self, cpu: usize) {
        self.cpus[cpu].schedule_pending = false;
        self.account(cpu);
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
        self.op(cpu, |ops| (ops.dispatch)(cpu as i32, ptr));
        if has_slice(self) {
            return true;
        }
        if !local() {
            self.take_global(cpu);
        }
        false
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
        self.op(cpu, |ops| (ops.stopping)(task, true));
        self.enqueue(id, cpu, if last { ENQ_LAST } else { 0 });
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
        self.change_running(cpu, next);
        self.cpus[cpu].stint += 1;
        let now_ns = self.now_ns;
        let ptr = next.map_or(ptr::null_mut(), |id| self.tasks[id].ptr());
        shared(|s| s.running[cpu] = ptr);
        if was_idle != next.is_none() {
            self.op(cpu, |ops| (ops.update_idle)(cpu as i32, next.is_none()));
        }
        let Some(id) = next else { return };
        let state = &mut self.cpus[cpu];
        state.switches += 1;
        state.accounted_ns = now_ns;
        let stint = state.stint;
        let task = &mut self.tasks[id];
        task.longest_wait_ns = task.longest_wait_ns.max(now_ns - task.queued_since_ns);
        task.state = State::Running;
        task.c_mut().cpu = cpu as i32;
        if self.tasks[id].c().scx.slice_ns == 0 {
            self.tasks[id].c_mut().scx.slice_ns = SLICE_DEFAULT_NS;
        }
        // The switch is time on the CPU in which no work is done.
        self.tasks[id].work_left += self.costs.switch_ns * self.speed(cpu);
        self.op(cpu, |ops| (ops.running)(ptr));
        self.expect_done(cpu, id);
        let tick_ns = self.costs.tick_ns;
        self.events.at((now_ns / tick_ns + 1) * tick_ns, Event::Tick(cpu, stint));
    }
}
