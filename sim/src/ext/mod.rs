//! Our scheduler under sched_ext: its ops are called when and as
//! kernel/sched/ext.c does.

mod cgroup;
mod dsq;
mod ffi;
mod hotplug;
mod kfuncs;
mod native;
mod schedule;

use std::collections::HashMap;

pub use ffi::{CpuMask, MAX_CPUS, SchedExtEntity, TaskPtr, TaskStruct};
pub use native::{PolicyBytes, Sabotage, TopologyBytes};

use crate::costs;
use crate::event::Event;
use crate::kernel::{Class, Kernel};
use crate::power::FULL;
use crate::task::{Home, State, Task};
use cgroup::Cgroups;
use dsq::Dsq;
use ffi::{DSQ_GLOBAL, DSQ_LOCAL_ON, ENQ_WAKEUP, KICK_PREEMPT, Ops, TASK_QUEUED, WAKE_SYNC};
use kfuncs::{Shared, may_run, shared};
use native::Native;

/// A scheduler is loaded some time after the machine has booted.
const BOOTED_NS: u64 = 10_000_000_000;

/// The scheduler, loaded.
pub(crate) struct Ext {
    native: Native,
    ops: &'static Ops,
    cgroups: Cgroups,
    /// How often each timer has been started.
    timers: HashMap<u32, u64>,
}

/// The performance target that the scheduler has set for `cpu`, 0..=1024 of the
/// fastest one's highest: all of it until it says otherwise.
pub(crate) fn perf_target(cpu: usize) -> u32 {
    shared(|s| s.perf_target[cpu])
}

impl Ext {
    pub fn load(topology: &TopologyBytes, policy: &PolicyBytes) -> Self {
        let native = Native::load(topology, policy);
        Ext { ops: native.ops(), native, cgroups: Cgroups::default(), timers: HashMap::new() }
    }

    pub fn nr_active(&self) -> usize {
        self.native.nr_active()
    }

    pub fn longest_jump(&self) -> u64 {
        self.native.longest_jump()
    }

    pub fn is_active(&self, cpu: usize) -> bool {
        self.native.is_active(cpu)
    }
}

impl Class {
    fn ext(&mut self) -> &mut Ext {
        match self {
            Class::Ext(ext) => ext,
            Class::Fair(_) | Class::Eevdf(_) => panic!("another class schedules"),
        }
    }

    /// The kernel reports them on request.
    pub(crate) fn freq_changed(&self, cpu: usize, freq: u32) {
        if let Class::Ext(_) = self {
            shared(|s| s.freq[cpu] = freq);
        }
    }
}

/// What a simulation's checks look at.
impl Kernel {
    /// How many tasks wait in a queue of the scheduler's own.
    pub fn waiting_in(&self, dsq: usize) -> usize {
        shared(|s| s.user.get(dsq).and_then(Option::as_ref).map_or(0, Dsq::len))
    }

    /// Whether a task, `which` of them, waits in a queue of the scheduler's own that may run on `cpu`.
    pub fn waits_for(&self, dsq: usize, cpu: usize, which: impl Fn(&Task) -> bool) -> bool {
        // SAFETY: tasks outlive their being queued.
        let task_of = |task: TaskPtr| &self.tasks[unsafe { (*task).id } as usize];
        let fits = |task| may_run(task, cpu) && which(task_of(task));
        shared(|s| s.user.get(dsq).and_then(Option::as_ref).is_some_and(|dsq| dsq.has(fits)))
    }

    /// How many tasks wait in the local queue of `cpu`, or in its queue of the kernel's own class.
    pub fn waiting_on(&self, cpu: usize) -> usize {
        if let Class::Eevdf(eevdf) = &self.class {
            return eevdf.nr_waiting(cpu);
        }
        shared(|s| s.local[cpu].len())
    }

    /// How many tasks wait in queues, wherever.
    pub fn waiting(&self) -> usize {
        if let Class::Eevdf(_) = self.class {
            return (0..self.cpus.len()).map(|cpu| self.waiting_on(cpu)).sum();
        }
        shared(|s| {
            let user = s.user.iter().flatten().map(Dsq::len).sum::<usize>();
            user + s.global.len() + s.local.iter().map(Dsq::len).sum::<usize>()
        })
    }
}

impl Kernel {
    pub(crate) fn ext_boot(&mut self) {
        let nr = self.cpus.len();
        let freq = (0..nr).map(|cpu| self.power.freq(cpu) as u32).collect();
        shared(|s| {
            *s = Shared {
                local: (0..nr).map(|_| Dsq::default()).collect(),
                running: vec![std::ptr::null_mut(); nr],
                freq,
                perf_target: vec![FULL as u32; nr],
                ..Shared::default()
            }
        });
        self.op(0, |ops| (ops.init)());
    }

    /// Puts `policy` in force, as the agent does from `cpu`.
    pub fn apply(&mut self, policy: &PolicyBytes, cpu: usize) {
        self.set_here(cpu);
        self.class.ext().native.apply(policy);
        self.after_op();
    }

    /// Makes the scheduler bad on purpose.
    pub fn sabotage(&mut self, how: Sabotage) {
        self.class.ext().native.sabotage(how);
    }

    fn set_here(&self, cpu: usize) {
        let now_ns = BOOTED_NS + self.now_ns;
        shared(|s| (s.now_ns, s.here) = (now_ns, cpu));
    }

    /// Calls an op on `cpu`, then does what it asked for.
    fn op<T>(&mut self, cpu: usize, call: impl FnOnce(&Ops) -> T) -> T {
        self.set_here(cpu);
        costs::begin(cpu);
        let result = call(self.class.ext().ops);
        costs::end();
        self.after_op();
        result
    }

    fn after_op(&mut self) {
        let (kicks, timers, retargeted, error) = shared(|s| {
            let (kicks, timers) = (std::mem::take(&mut s.kicks), std::mem::take(&mut s.timers));
            (kicks, timers, std::mem::take(&mut s.retargeted), s.error.take())
        });
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
        for (key, ns) in timers {
            let starts = self.class.ext().timers.entry(key).or_default();
            *starts += 1;
            let event = Event::Timer(key, *starts);
            self.events.at(self.now_ns + ns, event);
        }
        for cpu in retargeted {
            self.sample_pstate(cpu);
            self.util_changed(cpu);
        }
    }

    /// On any CPU: here the first.
    pub(crate) fn ext_timer(&mut self, key: u32, start: u64) {
        if self.class.ext().timers.get(&key) != Some(&start) {
            return;
        }
        self.set_here(0);
        self.class.ext().native.timer_fires(key);
        self.after_op();
    }

    pub(crate) fn ext_spawn(&mut self, id: usize, home: Home) {
        let cgroup = match home {
            Home::Made(cgroup) => self.cgroup_at(cgroup),
            Home::Kind(weight, workload) => self.cgroup_of(weight, workload),
        };
        let task = &mut self.tasks[id];
        task.c_mut().cgroup = cgroup;
        let task = task.ptr();
        // A `struct scx_init_task_args` that says no more than that no task was forked.
        let mut args = [0u64; 2];
        self.op(0, |ops| (ops.init_task)(task, args.as_mut_ptr().cast()));
        self.op(0, |ops| (ops.enable)(task));
    }

    /// select_task_rq_scx(), then enqueue_task_scx().
    pub(crate) fn ext_wake(&mut self, id: usize, here: usize, sync: bool) {
        costs::was_for_nothing();
        let task = &mut self.tasks[id];
        let (ptr, prev) = (task.ptr(), task.cpu());
        let mut cpu = prev;
        if self.tasks[id].c().nr_cpus_allowed > 1 {
            let flags = if sync { WAKE_SYNC } else { 0 };
            cpu = self.op(here, |ops| (ops.select_cpu)(ptr, prev as i32, flags)) as usize;
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
        self.ext_enqueue(id, here, ENQ_WAKEUP);
        costs::was_for(costs::Event::Wakeup);
        // wakeup_preempt(): anything goes before the idle task.
        let cpu = self.tasks[id].cpu();
        if self.cpus[cpu].running.is_none() {
            self.resched(cpu);
        }
    }

    /// Where ops.select_cpu put it, or ops.enqueue does.
    fn ext_enqueue(&mut self, id: usize, here: usize, flags: u64) {
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

    pub(crate) fn ext_tick(&mut self, cpu: usize, id: usize) {
        let task = self.tasks[id].ptr();
        costs::was_for_nothing();
        self.op(cpu, |ops| (ops.tick)(task));
        costs::was_for(costs::Event::Tick);
        if self.tasks[id].c().scx.slice_ns == 0 {
            self.resched(cpu);
        }
    }

    /// dequeue_task_scx().
    pub(crate) fn ext_sleeps(&mut self, cpu: usize, id: usize) {
        let task = self.tasks[id].ptr();
        self.tasks[id].c_mut().state = ffi::TASK_INTERRUPTIBLE;
        costs::was_for_nothing();
        self.op(cpu, |ops| (ops.stopping)(task, false));
        costs::was_for(costs::Event::Switch);
        self.tasks[id].c_mut().state = 0;
        self.tasks[id].c_mut().scx.flags &= !TASK_QUEUED;
        if self.tasks[id].state == State::Dead {
            self.op(cpu, |ops| (ops.disable)(task));
        }
    }
}
