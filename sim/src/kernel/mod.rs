//! The simulated kernel: CPUs, tasks and time. What a scheduler decides is in
//! ext/ (ours, under sched_ext), eevdf/ (the fair class of today) and fair/ (the earlier
//! systems, under a model of CFS). docs/simulator.md lists where it does less than a kernel.

#[cfg(test)]
mod by_hand;
mod device;
mod freq;
mod life;
mod pace;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cpu::{Costs, Cpu, cpus_of};
use crate::eevdf::Eevdf;
use crate::event::{Event, Events};
use crate::ext::{CpuMask, Ext, PolicyBytes, TopologyBytes};
use crate::fair::{Comparator, Fair};
use crate::machine::Machine;
use crate::power::{Governor, Power};
use crate::task::{Task, TaskSpec};
use crate::trace::Trace;
use device::Device;

/// What schedules.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// Ours: the machine as it is ranked, and the policy.
    Powerpack(Box<TopologyBytes>, PolicyBytes),
    /// One of the earlier systems.
    Comparator(Comparator),
    /// The kernel's own, of today.
    Eevdf {
        /// With energy-aware placement, where the machine allows it.
        energy_aware: bool,
    },
}

/// What schedules, and what chooses frequencies.
#[derive(Clone, Debug)]
pub struct System {
    pub scheduler: Scheduler,
    /// `None`: the machine's own.
    pub governor: Option<Governor>,
}

/// The state of what schedules.
pub(crate) enum Class {
    Ext(Ext),
    Fair(Box<Fair>),
    Eevdf(Box<Eevdf>),
}

/// A machine that runs.
pub struct Kernel {
    pub(crate) now_ns: u64,
    pub cpus: Vec<Cpu>,
    pub tasks: Vec<Task>,
    pub(crate) events: Events,
    /// The CPU where something happens now.
    pub(crate) here: usize,
    pub(crate) costs: Costs,
    pub(crate) class: Class,
    pub power: Power,
    machine: Machine,
    /// By CPU: when its timers are due (ns).
    timers: Vec<BinaryHeap<Reverse<u64>>>,
    /// By package: how many run that share data.
    sharing: Vec<usize>,
    /// By package: whether its limits of frequency are to be set.
    turbo_armed: Vec<bool>,
    devices: Vec<Device>,
    pub(crate) trace: Option<Trace>,
    /// Events that have happened.
    pub events_done: u64,
}

impl Kernel {
    /// Loads the scheduler on a machine that does nothing.
    pub fn boot(machine: &Machine, system: &System) -> Self {
        let cpus = cpus_of(machine);
        let governor = system.governor.unwrap_or(machine.governor);
        let packages = cpus.iter().map(|cpu| cpu.place.package).max().map_or(0, |last| last + 1);
        let mut power = Power::new(machine, governor);
        if !matches!(system.scheduler, Scheduler::Comparator(_)) {
            power.skip_inefficient(machine);
        }
        let class = match &system.scheduler {
            Scheduler::Powerpack(topology, policy) => Class::Ext(Ext::load(topology, policy)),
            Scheduler::Comparator(which) => Class::Fair(Box::new(Fair::new(machine, *which))),
            Scheduler::Eevdf { energy_aware } => {
                Class::Eevdf(Box::new(Eevdf::new(machine, &power.domains, *energy_aware)))
            }
        };
        let devices = machine.interrupt.iter().enumerate();
        let mut kernel = Kernel {
            now_ns: 0,
            tasks: Vec::new(),
            events: Events::default(),
            here: 0,
            costs: machine.costs(),
            class,
            power,
            machine: machine.clone(),
            timers: vec![BinaryHeap::new(); cpus.len()],
            sharing: vec![0; packages],
            turbo_armed: vec![false; packages],
            devices: devices.map(|(nth, spec)| Device::new(nth, spec)).collect(),
            trace: None,
            events_done: 0,
            cpus,
        };
        if matches!(kernel.class, Class::Ext(_)) {
            kernel.ext_boot();
        }
        (0..kernel.devices.len()).for_each(|nth| kernel.plan_interrupt(nth));
        kernel
    }

    /// Records what happens from now on.
    pub fn record(&mut self) {
        self.trace = Some(Trace::new(&self.cpus));
    }

    /// What has been recorded.
    pub fn recorded(&mut self) -> Option<Trace> {
        self.trace.take()
    }

    /// Time since the simulation began.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How many ranks are active; `None` if it is not our scheduler.
    pub fn nr_active(&self) -> Option<usize> {
        match &self.class {
            Class::Ext(ext) => Some(ext.nr_active()),
            Class::Fair(_) | Class::Eevdf(_) => None,
        }
    }

    /// The furthest that a clock of our scheduler's has gone at a time (virtual ns).
    pub fn longest_jump(&self) -> Option<u64> {
        match &self.class {
            Class::Ext(ext) => Some(ext.longest_jump()),
            Class::Fair(_) | Class::Eevdf(_) => None,
        }
    }

    /// Whether `cpu` is active; no CPU is if it is not our scheduler.
    pub fn is_active(&self, cpu: usize) -> bool {
        match &self.class {
            Class::Ext(ext) => ext.is_active(cpu),
            Class::Fair(_) | Class::Eevdf(_) => false,
        }
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

    /// Makes a task, which begins to run at `time_ns`; its number.
    pub fn spawn(&mut self, spec: TaskSpec, time_ns: u64) -> usize {
        let id = self.tasks.len();
        let home = spec.home;
        self.tasks.push(Task::new(id, spec));
        match &mut self.class {
            Class::Ext(_) => self.ext_spawn(id, home),
            Class::Fair(fair) => fair.spawn(&self.tasks[id], home),
            Class::Eevdf(eevdf) => eevdf.spawn(&self.tasks[id], home),
        }
        self.events.at(time_ns, Event::Wake(id));
        id
    }

    /// Lets time pass until `until_ns`.
    pub fn run_until(&mut self, until_ns: u64) {
        while let Some((time, event)) = self.events.pop_until(until_ns) {
            self.now_ns = time;
            self.events_done += 1;
            match event {
                Event::Wake(task) => self.timer(task),
                Event::Tick(cpu, run_seq) => self.on(cpu).tick(cpu, run_seq),
                Event::Done(cpu, pace) => self.on(cpu).done(cpu, pace),
                Event::Schedule(cpu) => self.on(cpu).schedule(cpu),
                Event::Look(domain) => self.look(domain),
                Event::Clock(domain) => self.clock(domain),
                Event::Turbo(package) => self.turbo(package),
                Event::Interrupt(nth) => self.device_interrupt(nth),
                Event::IdleTick(cpu, run_seq) => self.on(cpu).idle_tick(cpu, run_seq),
                Event::Timer(key, start) => self.ext_timer(key, start),
                Event::Period(weight) => self.fair_period(weight),
            }
        }
        self.now_ns = until_ns;
        for cpu in 0..self.cpus.len() {
            self.account(cpu);
        }
    }

    /// What happens next happens on `cpu`.
    pub(crate) fn on(&mut self, cpu: usize) -> &mut Self {
        self.here = cpu;
        self
    }

    /// `cpu` looks for what to run.
    pub(crate) fn schedule(&mut self, cpu: usize) {
        self.cpus[cpu].schedule_pending = false;
        self.account(cpu);
        match self.class {
            Class::Ext(_) => self.ext_schedule(cpu),
            Class::Fair(_) => self.fair_schedule(cpu),
            Class::Eevdf(_) => self.eevdf_schedule(cpu),
        }
    }

    pub(crate) fn first_online(&self) -> usize {
        self.cpus.iter().position(|cpu| cpu.online).expect("a CPU is online")
    }

    /// select_fallback_rq(): an online CPU where the task may run; if there is
    /// none it may run everywhere from now on.
    pub(crate) fn fallback(&mut self, task: usize) -> usize {
        let may = |kernel: &Self, cpu: usize| {
            kernel.cpus[cpu].online && kernel.tasks[task].may_run_on(cpu)
        };
        if let Some(cpu) = (0..self.cpus.len()).find(|&cpu| may(self, cpu)) {
            return cpu;
        }
        let everywhere = CpuMask::of(0..self.cpus.len());
        self.set_allowed(task, everywhere);
        self.first_online()
    }
}

impl Class {
    /// What runs on `cpu` has run for `ran_ns` more, until `now_ns`, at `speed` (capacity and
    /// frequency, 1024 = full).
    pub(crate) fn charge(&mut self, now_ns: u64, cpu: usize, ran_ns: u64, speed: u64) {
        match self {
            Class::Ext(_) => {}
            Class::Fair(fair) => fair.charge(cpu, ran_ns),
            Class::Eevdf(eevdf) => eevdf.charge(now_ns, cpu, ran_ns, speed),
        }
    }
}
