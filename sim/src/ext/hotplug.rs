//! CPUs that go and come.

use super::ffi::CpuMask;
use super::kfuncs::shared;
use crate::kernel::{Class, Kernel};

impl Kernel {
    /// Takes `cpu` offline: the scheduler is notified, then the kernel moves what is
    /// left there, as sched_cpu_deactivate() and balance_push() do.
    pub fn offline(&mut self, cpu: usize) {
        assert!(self.cpus.iter().filter(|cpu| cpu.online).count() > 1, "the last CPU stays");
        self.cpus[cpu].online = false;
        self.op(cpu, |ops| (ops.cpu_offline)(cpu as i32));
        let mut leaving: Vec<usize> = self.stop_running(cpu).into_iter().collect();
        while let Some(task) = shared(|s| s.local[cpu].take(|_| true)) {
            // SAFETY: tasks outlive their being queued.
            leaving.push(unsafe { (*task).id } as usize);
        }
        for task in leaving {
            let to = self.fallback(task);
            self.tasks[task].c_mut().cpu = to as i32;
            self.ext_enqueue(task, to, 0);
        }
        self.caller_sleeps();
    }

    /// Brings `cpu` back, idle.
    pub fn online(&mut self, cpu: usize) {
        self.cpus[cpu].online = true;
        self.op(cpu, |ops| (ops.cpu_online)(cpu as i32));
        self.op(cpu, |ops| (ops.update_idle)(cpu as i32, true));
        // Its own kernel threads have run, and it looks for more.
        self.resched(cpu);
        self.caller_sleeps();
    }

    /// Whoever asked the kernel to plug a CPU does something else now.
    fn caller_sleeps(&mut self) {
        let caller = self.first_online();
        self.resched(caller);
    }

    /// Changes where a task may run; it moves when it is next placed.
    pub fn set_allowed(&mut self, task: usize, allowed: CpuMask) {
        let here = self.first_online();
        let (ptr, mask) = self.tasks[task].allow(allowed);
        if let Class::Ext(_) = self.class {
            self.op(here, |ops| (ops.set_cpumask)(ptr, mask));
        }
    }
}
