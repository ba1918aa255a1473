//! How fast work is done, and what has been done.

use std::cmp::Reverse;

use crate::event::Event;
use crate::kernel::{Class, Kernel};
use crate::power::{Blip, FULL};
use crate::task::State;

impl Kernel {
    /// Work done in a ns (1/1024 of what the fastest CPU does).
    pub(crate) fn speed(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        let capacity = state.place.capacity as u64 * self.power.freq(cpu) / FULL;
        let mut speed = capacity * self.smt_share_pct(cpu) / 100;
        let shares = state.running.is_some_and(|task| self.tasks[task].shares_data);
        if shares && self.data_is_far() {
            speed = speed * self.costs.far_data_pct / 100;
        }
        speed.max(1)
    }

    fn smt_share_pct(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        if state.siblings.is_empty() {
            return 100;
        }
        let others = state.siblings.iter().filter(|&&other| self.cpus[other].running.is_some());
        self.machine.core_of(&state.place).share_pct(others.count() + 1)
    }

    /// Whether tasks that share data run in more than one package.
    fn data_is_far(&self) -> bool {
        self.sharing.iter().filter(|&&running| running > 0).count() > 1
    }

    /// What `cpu` runs is about to change: each CPU whose speed depends on it is charged at
    /// the old one, and then goes on at the new one.
    fn change_running(&mut self, cpu: usize, to: Option<usize>) {
        let from = self.cpus[cpu].running;
        let shares = |task: Option<usize>| task.is_some_and(|id| self.tasks[id].shares_data);
        let (left, came) = (shares(from), shares(to));
        let others = if left || came {
            (0..self.cpus.len()).filter(|&other| other != cpu).collect()
        } else if from.is_some() != to.is_some() && !self.cpus[cpu].siblings.is_empty() {
            self.cpus[cpu].siblings.clone()
        } else {
            Vec::new()
        };
        for &other in &others {
            self.account(other);
        }
        let package = self.cpus[cpu].place.package;
        self.sharing[package] += usize::from(came);
        self.sharing[package] -= usize::from(left);
        self.cpus[cpu].running = to;
        for other in others {
            if let Some(task) = self.cpus[other].running {
                self.expect_done(other, task);
            }
        }
    }

    /// Charges what runs on `cpu` for the time since it was last charged.
    pub(crate) fn account(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].running else { return };
        let ran = self.now_ns.saturating_sub(self.cpus[cpu].accounted_ns);
        if ran == 0 {
            return;
        }
        let (speed, freq) = (self.speed(cpu), self.power.freq(cpu));
        let state = &mut self.cpus[cpu];
        state.accounted_ns = self.now_ns;
        state.was_busy(ran, freq);
        state.util.update(self.now_ns, freq as f64 / FULL as f64);
        state.util_raw.update(self.now_ns, 1.0);
        let task = &mut self.tasks[task];
        task.c_mut().ran_ns += ran;
        let work = (ran * speed).min(task.work_left);
        task.work_left -= work;
        task.work_done += work;
        let slice = &mut task.c_mut().scx.slice_ns;
        *slice = slice.saturating_sub(ran);
        let capacity = state.place.capacity as u64;
        self.class.charge(self.now_ns, cpu, ran, freq * capacity / FULL);
    }

    /// Time on its CPU in which a task does nothing, as work that would be done in it.
    pub(crate) fn lose(&mut self, id: usize, work: u64) {
        let task = &mut self.tasks[id];
        task.work_left += work;
        task.work_done -= task.work_done.min(work);
    }

    pub(crate) fn expect_done(&mut self, cpu: usize, id: usize) {
        let time = self.tasks[id].work_left.div_ceil(self.speed(cpu)).max(1);
        let state = &mut self.cpus[cpu];
        state.pace += 1;
        self.events.at(state.accounted_ns.max(self.now_ns) + time, Event::Done(cpu, state.pace));
    }

    /// `cpu` is to look for what to run: at once if it is busy, else as it wakes.
    pub(crate) fn resched(&mut self, cpu: usize) {
        if self.cpus[cpu].schedule_pending {
            return;
        }
        self.cpus[cpu].schedule_pending = true;
        let ipi_ns = if cpu == self.here { 0 } else { self.costs.ipi_ns };
        let delay = match self.cpus[cpu].running {
            Some(_) => 0,
            None => self.costs.wake_ns + self.power.wake(cpu, self.now_ns),
        };
        self.events.at(self.now_ns + ipi_ns + delay, Event::Schedule(cpu));
    }

    /// What `cpu` runs from now on. Its class has chosen.
    pub(crate) fn switch_to(&mut self, cpu: usize, next: Option<usize>) {
        let from = self.cpus[cpu].running;
        self.change_running(cpu, next);
        self.cpus[cpu].run_seq += 1;
        self.cpus[cpu].idle_tick_ns = 0;
        self.traced(cpu, from, next);
        let Some(id) = next else {
            self.go_idle(cpu);
            self.arm_turbo(cpu);
            return;
        };
        let now_ns = self.now_ns;
        self.power.wake(cpu, now_ns);
        self.arm_turbo(cpu);
        let costs = self.costs;
        let freq = self.power.freq(cpu);
        let state = &mut self.cpus[cpu];
        if from.is_none() {
            state.was_busy(costs.idle_ns, freq);
            state.util.update(now_ns, 0.0);
            state.util_raw.update(now_ns, 0.0);
        }
        state.switches += 1;
        state.accounted_ns = now_ns;
        let run_seq = state.run_seq;
        let stalled_until_ns = self.power.domains[self.power.domain_of(cpu)].stalled_until_ns;
        let stall_ns = stalled_until_ns.saturating_sub(now_ns);
        let lost_ns = self.cold_cache_ns(id, cpu) + costs.switch_ns + stall_ns;
        // The switch is time on the CPU in which no work of the task is done.
        self.lose(id, lost_ns * self.speed(cpu) + costs.switch_work_ns * FULL);
        let task = &mut self.tasks[id];
        let waited_ns = now_ns - task.queued_since_ns;
        task.longest_wait_ns = task.longest_wait_ns.max(waited_ns);
        task.waits += 1;
        task.waited_ns += waited_ns;
        task.state = State::Running;
        task.c_mut().cpu = cpu as i32;
        task.migrations += u64::from(task.last_cpu.is_some_and(|last| last != cpu));
        task.last_cpu = Some(cpu);
        self.events.at((now_ns / costs.tick_ns + 1) * costs.tick_ns, Event::Tick(cpu, run_seq));
        self.arm_look(cpu);
    }

    /// What a task loses because it comes from elsewhere (ns).
    pub(super) fn cold_cache_ns(&self, id: usize, cpu: usize) -> u64 {
        let Some(last) = self.tasks[id].last_cpu else { return 0 };
        let (from, to) = (self.cpus[last].place, self.cpus[cpu].place);
        if from.llc != to.llc {
            self.costs.migrate_far_ns + self.tasks[id].cache_kib * self.costs.refill_ns_per_kib
        } else if from.core != to.core {
            self.costs.migrate_ns
        } else {
            0
        }
    }

    fn go_idle(&mut self, cpu: usize) {
        let timer_ns = self.next_timer(cpu);
        if self.power.sleep(cpu, self.now_ns, timer_ns) {
            self.keep_tick(cpu);
        }
    }

    /// The idle governor is not sure: its tick will wake it to look again. There is one tick, however
    /// many interrupts come before it.
    fn keep_tick(&mut self, cpu: usize) {
        let tick_ns = self.costs.tick_ns;
        let next = (self.now_ns / tick_ns + 1) * tick_ns;
        if self.cpus[cpu].idle_tick_ns != next {
            self.cpus[cpu].idle_tick_ns = next;
            self.events.at(next, Event::IdleTick(cpu, self.cpus[cpu].run_seq));
        }
    }

    pub(crate) fn idle_tick(&mut self, cpu: usize, run_seq: u64) {
        if self.cpus[cpu].run_seq == run_seq && self.is_idle(cpu) {
            self.interrupt(cpu);
            if let Class::Eevdf(_) = self.class {
                self.eevdf_balance(cpu);
            }
        }
    }

    /// A timer's interrupt on `cpu` that does not make it schedule.
    pub(crate) fn interrupt(&mut self, cpu: usize) {
        self.interrupt_for(cpu, Blip { busy_ns: self.costs.irq_ns, whole: false });
    }

    /// Any interrupt on `cpu` that does not make it schedule.
    pub(crate) fn interrupt_for(&mut self, cpu: usize, blip: Blip) {
        if !self.is_idle(cpu) {
            return;
        }
        let timer_ns = self.next_timer(cpu);
        self.cpus[cpu].was_busy(blip.busy_ns, self.power.freq(cpu));
        if self.power.blip(cpu, self.now_ns, blip, timer_ns) {
            self.keep_tick(cpu);
        }
    }

    /// When the next timer of `cpu` is due (ns).
    fn next_timer(&mut self, cpu: usize) -> u64 {
        let timers = &mut self.timers[cpu];
        while timers.peek().is_some_and(|Reverse(time)| *time <= self.now_ns) {
            timers.pop();
        }
        timers.peek().map_or(u64::MAX, |Reverse(time)| *time)
    }

    pub(crate) fn arm_timer(&mut self, cpu: usize, time_ns: u64) {
        self.timers[cpu].push(Reverse(time_ns));
    }

    fn traced(&mut self, cpu: usize, from: Option<usize>, to: Option<usize>) {
        let nr_active = self.nr_active();
        let Some(trace) = &mut self.trace else { return };
        let name = |id: usize| format!("{} {id}", self.tasks[id].name);
        trace.switch(self.now_ns, cpu, from.map(name), to.is_some(), nr_active);
    }
}
