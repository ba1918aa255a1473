//! The simulated kernel: it calls the scheduler's ops when and as
//! kernel/sched/ext.c does, and lets time pass. docs/simulator.md lists where it
//! does less.

use crate::cpu::{Costs, Cpu, cpus_of};
use crate::dsq::Dsq;
use crate::event::{Event, Events};
use crate::ffi::{DSQ_GLOBAL, DSQ_LOCAL_ON, ENQ_WAKEUP, KICK_PREEMPT, Ops, TASK_QUEUED};
use crate::kfuncs::{Shared, may_run, shared};
use crate::machine::Machine;
use crate::native::{Native, PolicyBytes, RankedCpu};
use crate::task::{State, Step, Task, TaskSpec};

/// Capacity of the fastest CPU at its highest frequency.
const FULL: u64 = 1024;

/// A scheduler is loaded some time after the machine has booted.
const BOOTED_NS: u64 = 10_000_000_000;

/// A machine that runs.
pub struct Kernel {
    pub(crate) now_ns: u64,
    pub cpus: Vec<Cpu>,
    pub tasks: Vec<Task>,
    pub(crate) events: Events,
    pub(crate) costs: Costs,
    pub(crate) ops: &'static Ops,
    native: Native,
}

impl Kernel {
    /// Loads the scheduler on a machine that does nothing.
    /// `ranked`: all CPUs of it in the order in which they are filled.
    pub fn boot(machine: &Machine, ranked: &[RankedCpu], policy: &PolicyBytes) -> Self {
        let native = Native::load(ranked, policy);
        let cpus = cpus_of(machine);
        let costs = machine.costs();
        shared(|s| {
            *s = Shared {
                local: cpus.iter().map(|_| Dsq::default()).collect(),
                running: vec![std::ptr::null_mut(); cpus.len()],
                freq: vec![FULL as u32; cpus.len()],
                ..Shared::default()
            }
        });
        let ops = native.ops();
        let (tasks, events) = (Vec::new(), Events::default());
        let mut kernel = Kernel { now_ns: 0, cpus, tasks, events, costs, ops, native };
        kernel.op(0, |ops| (ops.init)());
        kernel
    }

    /// Time since the simulation began.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How many ranks are active.
    pub fn nr_active(&self) -> usize {
        self.native.nr_active()
    }

    /// Whether `cpu` runs a task.
    pub fn is_running(&self, cpu: usize) -> bool {
        self.cpus[cpu].running.is_some()
    }

    /// Whether `cpu` runs nothing and is not about to.
    pub fn is_idle(&self, cpu: usize) -> bool {
        let state = &self.cpus[cpu];
        state.online && state.running.is_none() && !state.schedule_pending
    }

    /// How many tasks wait in a queue of the scheduler's own.
    pub fn waiting_in(&self, dsq: usize) -> usize {
        shared(|s| s.user.get(dsq).and_then(Option::as_ref).map_or(0, Dsq::len))
    }

    /// How many tasks wait in the local queue of `cpu`.
    pub fn waiting_on(&self, cpu: usize) -> usize {
        shared(|s| s.local[cpu].len())
    }

    /// How many tasks wait in queues, wherever.
    pub fn waiting(&self) -> usize {
        shared(|s| {
            let user = s.user.iter().flatten().map(Dsq::len).sum::<usize>();
            user + s.global.len() + s.local.iter().map(Dsq::len).sum::<usize>()
        })
    }

    /// Puts `policy` in force, as the agent does from `cpu`.
    pub fn apply(&mut self, policy: &PolicyBytes, cpu: usize) {
        self.set_here(cpu);
        self.native.apply(policy);
        self.after_op();
    }

    /// Makes a task, which begins to run at `time_ns`.
    pub fn spawn(&mut self, spec: TaskSpec, time_ns: u64) -> usize {
        let id = self.tasks.len();
        self.tasks.push(Task::new(id, spec));
        let task = self.tasks[id].ptr();
        self.op(0, |ops| (ops.init_task)(task, std::ptr::null_mut()));
        self.op(0, |ops| (ops.enable)(task));
        self.events.at(time_ns, Event::Wake(id));
        id
    }

    /// Lets time pass until `until_ns`.
    pub fn run_until(&mut self, until_ns: u64) {
        while let Some((time, event)) = self.events.pop_until(until_ns) {
            self.now_ns = time;
            match event {
                Event::Wake(task) => self.wake(task),
                Event::Tick(cpu, stint) => self.tick(cpu, stint),
                Event::Done(cpu, pace) => self.done(cpu, pace),
                Event::Schedule(cpu) => self.schedule(cpu),
            }
        }
        self.now_ns = until_ns;
        for cpu in 0..self.cpus.len() {
            self.account(cpu);
        }
    }

    fn set_here(&self, cpu: usize) {
        let now_ns = BOOTED_NS + self.now_ns;
        shared(|s| (s.now_ns, s.here) = (now_ns, cpu));
    }

    /// Calls an op on `cpu`, then does what it asked for.
    pub(crate) fn op<T>(&mut self, cpu: usize, call: impl FnOnce(&Ops) -> T) -> T {
        self.set_here(cpu);
        let result = call(self.ops);
        self.after_op();
        result
    }

    fn after_op(&mut self) {
        let (kicks, error) = shared(|s| (std::mem::take(&mut s.kicks), s.error.take()));
        if let Some(error) = error {
            panic!("the scheduler did what the kernel does not allow: {error}");
        }
        for (cpu, flags) in kicks {
            if flags & KICK_PREEMPT != 0
                && let Some(task) = self.cpus[cpu].running
            {
                self.account(cpu);
                self.tasks[task].c_mut().scx.slice_ns = 0;
            }
            self.resched(cpu);
        }
    }

    /// Work done in a ns (1/1024 of what the fastest CPU does).
    pub(crate) fn speed(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        let shared = state.siblings.iter().any(|&other| self.cpus[other].running.is_some());
        let pct = if shared { state.smt_share_pct } else { 100 };
        (state.capacity * pct / 100).max(1)
    }

    /// What `cpu` runs is about to change: its siblings are charged at their old
    /// speed, and then go on at the new one.
    pub(crate) fn change_running(&mut self, cpu: usize, to: Option<usize>) {
        if self.cpus[cpu].running.is_some() == to.is_some() {
            self.cpus[cpu].running = to;
            return;
        }
        let siblings = self.cpus[cpu].siblings.clone();
        for &other in &siblings {
            self.account(other);
        }
        self.cpus[cpu].running = to;
        for other in siblings {
            if let Some(task) = self.cpus[other].running {
                self.expect_done(other, task);
            }
        }
    }

    /// Charges what runs on `cpu` for the time since it was last charged.
    pub(crate) fn account(&mut self, cpu: usize) {
        let speed = self.speed(cpu);
        let state = &mut self.cpus[cpu];
        let ran = self.now_ns.saturating_sub(state.accounted_ns);
        let Some(task) = state.running else { return };
        if ran == 0 {
            return;
        }
        state.accounted_ns = self.now_ns;
        state.non_idle_ns += ran;
        let task = &mut self.tasks[task];
        task.ran_ns += ran;
        task.work_left = task.work_left.saturating_sub(ran * speed);
        let slice = &mut task.c_mut().scx.slice_ns;
        *slice = slice.saturating_sub(ran);
    }

    /// `cpu` is to look for what to run: at once if it is busy, else as it wakes.
    pub(crate) fn resched(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        if state.schedule_pending {
            return;
        }
        state.schedule_pending = true;
        let delay = if state.running.is_some() { 0 } else { self.costs.wake_ns };
        self.events.at(self.now_ns + delay, Event::Schedule(cpu));
    }

    fn wake(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.state != State::Asleep || !self.next_step(id) {
            return;
        }
        let task = &mut self.tasks[id];
        let (ptr, prev) = (task.ptr(), task.cpu());
        // The interrupt of its timer, which moves from a CPU that goes.
        let here = if self.cpus[prev].online { prev } else { self.first_online() };
        let mut cpu = prev;
        if self.tasks[id].c().nr_cpus_allowed > 1 {
            cpu = self.op(here, |ops| (ops.select_cpu)(ptr, prev as i32, 0)) as usize;
        }
        assert!(
            self.tasks[id].may_run_on(cpu),
            "ops.select_cpu chose CPU {cpu}, where task {id} may not run"
        );
        if !self.cpus[cpu].online {
            cpu = self.fallback(id);
        }
        let task = &mut self.tasks[id];
        task.c_mut().cpu = cpu as i32;
        task.c_mut().scx.flags |= TASK_QUEUED;
        self.enqueue(id, here, ENQ_WAKEUP);
        // wakeup_preempt(): anything goes before the idle task.
        let cpu = self.tasks[id].cpu();
        if self.cpus[cpu].running.is_none() {
            self.resched(cpu);
        }
    }

    /// Asks the task's program until it has work or goes; false if there is none.
    fn next_step(&mut self, id: usize) -> bool {
        let task = &mut self.tasks[id];
        match task.program.next(self.now_ns) {
            Step::Run(work_ns) => {
                task.work_left = work_ns * FULL;
                true
            }
            Step::SleepUntil(time) => {
                task.state = State::Asleep;
                self.events.at(time.max(self.now_ns), Event::Wake(id));
                false
            }
            Step::Exit => {
                task.state = State::Dead;
                false
            }
        }
    }

    /// Where ops.select_cpu put it, or ops.enqueue does.
    pub(crate) fn enqueue(&mut self, id: usize, here: usize, flags: u64) {
        let task = &mut self.tasks[id];
        task.state = State::Queued;
        task.queued_since_ns = self.now_ns;
        let ptr = task.ptr();
        if shared(|s| s.insertion.is_none()) {
            self.op(here, |ops| (ops.enqueue)(ptr, flags));
        }
        let Some(insertion) = shared(|s| s.insertion.take()) else {
            panic!("ops.enqueue put task {id} nowhere");
        };
        assert!(insertion.task == ptr, "another task than the one asked about was inserted");
        if insertion.dsq != DSQ_GLOBAL && insertion.dsq & DSQ_LOCAL_ON == DSQ_LOCAL_ON {
            let cpu = (insertion.dsq & !DSQ_LOCAL_ON) as usize;
            assert!(may_run(ptr, cpu), "task {id} was put on CPU {cpu}, where it may not run");
            assert!(self.cpus[cpu].online, "task {id} was put on CPU {cpu}, which is offline");
        }
        let local = shared(|s| s.insert(insertion));
        if let Some(cpu) = local
            && self.cpus[cpu].running.is_none()
        {
            self.resched(cpu);
        }
    }

    fn tick(&mut self, cpu: usize, stint: u64) {
        let Some(id) = self.cpus[cpu].running.filter(|_| self.cpus[cpu].stint == stint) else {
            return;
        };
        self.account(cpu);
        let task = self.tasks[id].ptr();
        self.op(cpu, |ops| (ops.tick)(task));
        self.events.at(self.now_ns + self.costs.tick_ns, Event::Tick(cpu, stint));
        if self.tasks[id].c().scx.slice_ns == 0 {
            self.resched(cpu);
        }
    }

    fn done(&mut self, cpu: usize, pace: u64) {
        let Some(id) = self.cpus[cpu].running.filter(|_| self.cpus[cpu].pace == pace) else {
            return;
        };
        self.account(cpu);
        if self.tasks[id].work_left > 0 || self.next_step(id) {
            self.expect_done(cpu, id);
            return;
        }
        // dequeue_task_scx(): it sleeps.
        let task = self.tasks[id].ptr();
        self.op(cpu, |ops| (ops.stopping)(task, false));
        self.tasks[id].c_mut().scx.flags &= !TASK_QUEUED;
        if self.tasks[id].state == State::Dead {
            self.op(cpu, |ops| (ops.disable)(task));
        }
        self.schedule(cpu);
    }

    pub(crate) fn expect_done(&mut self, cpu: usize, id: usize) {
        let time = self.tasks[id].work_left.div_ceil(self.speed(cpu)).max(1);
        let state = &mut self.cpus[cpu];
        state.pace += 1;
        self.events.at(state.accounted_ns.max(self.now_ns) + time, Event::Done(cpu, state.pace));
    }
}
