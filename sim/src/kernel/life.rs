//! The life of tasks: they wake, run, wait for each other, sleep, end.

use crate::event::Event;
use crate::kernel::{Class, Kernel};
use crate::power::FULL;
use crate::task::{Context, State, Step};

impl Kernel {
    /// The timer of a task, or the interrupt that it waits for.
    pub(crate) fn timer(&mut self, id: usize) {
        let task = &self.tasks[id];
        // Of its timer, which moves from a CPU that goes.
        let here = task.irq_cpu.unwrap_or(task.cpu());
        let here = if self.cpus[here].online { here } else { self.first_online() };
        self.here = here;
        if task.state == State::Asleep && !task.blocked && self.next_step(id) {
            self.wake(id, here, false);
        }
        self.interrupt(here);
    }

    /// Another task, on `here`, wakes this one, now or before it sleeps.
    fn wake_blocked(&mut self, id: usize, here: usize, sync: bool) {
        let task = &mut self.tasks[id];
        if !std::mem::take(&mut task.blocked) {
            task.tokens += 1;
        } else if self.next_step(id) {
            self.wake(id, here, sync);
        }
    }

    fn wake(&mut self, id: usize, here: usize, sync: bool) {
        match self.class {
            Class::Ext(_) => self.ext_wake(id, here, sync),
            Class::Fair(_) => self.fair_wake(id, here, sync),
            Class::Eevdf(_) => self.eevdf_wake(id, here, sync),
        }
    }

    /// Asks the task's program until it has work or goes; false if there is none.
    fn next_step(&mut self, id: usize) -> bool {
        loop {
            let mut context = Context { now_ns: self.now_ns, wakes: Vec::new() };
            let step = self.tasks[id].program.next(&mut context);
            let here = self.tasks[id].cpu();
            for (other, sync) in context.wakes {
                self.wake_blocked(other, here, sync);
            }
            let task = &mut self.tasks[id];
            match step {
                Step::Run(work_ns) => {
                    task.work_left = work_ns * FULL;
                    return true;
                }
                Step::Block if task.tokens > 0 => task.tokens -= 1,
                Step::Block => {
                    task.state = State::Asleep;
                    task.blocked = true;
                    return false;
                }
                Step::SleepUntil(time) => {
                    task.state = State::Asleep;
                    let time = time.max(self.now_ns) + self.timer_late_ns(here, time);
                    self.arm_timer(self.tasks[id].irq_cpu.unwrap_or(here), time);
                    self.events.at(time, Event::Wake(id));
                    return false;
                }
                Step::Exit => {
                    task.state = State::Dead;
                    return false;
                }
            }
        }
    }

    /// How late the timer interrupt of `cpu` at `time_ns` is: the same for all timers
    /// that are due there at that time.
    fn timer_late_ns(&self, cpu: usize, time_ns: u64) -> u64 {
        match self.costs.timer_jitter_ns {
            0 => 0,
            max => fastrand::Rng::with_seed(time_ns ^ (cpu as u64) << 48).u64(..max),
        }
    }

    pub(crate) fn tick(&mut self, cpu: usize, run_seq: u64) {
        let Some(id) = self.cpus[cpu].running.filter(|_| self.cpus[cpu].run_seq == run_seq) else {
            return;
        };
        self.account(cpu);
        self.events.at(self.now_ns + self.costs.tick_ns, Event::Tick(cpu, run_seq));
        match self.class {
            Class::Ext(_) => self.ext_tick(cpu, id),
            Class::Fair(_) => self.fair_tick(cpu),
            Class::Eevdf(_) => self.eevdf_tick(cpu),
        }
        self.util_ticked(cpu);
    }

    pub(crate) fn done(&mut self, cpu: usize, pace: u64) {
        let Some(id) = self.cpus[cpu].running.filter(|_| self.cpus[cpu].pace == pace) else {
            return;
        };
        self.account(cpu);
        if self.tasks[id].work_left > 0 || self.next_step(id) {
            self.expect_done(cpu, id);
            return;
        }
        match self.class {
            Class::Ext(_) => self.ext_sleeps(cpu, id),
            Class::Fair(_) => self.fair_sleeps(cpu, id),
            Class::Eevdf(_) => self.eevdf_sleeps(cpu, id),
        }
        self.schedule(cpu);
        self.util_changed(cpu);
    }
}
