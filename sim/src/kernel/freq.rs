//! When frequency governors are asked, and what they see.

use crate::event::Event;
use crate::kernel::{Class, Kernel};
use crate::power::{Counters, FULL, Governor};

/// How often a package looks at how many of its cores are awake, as the power control unit of Haswell-EP
/// does: Hackenberg et al., An Energy Efficiency Feature Survey of the Intel Haswell Processor, 2015.
const TURBO_PERIOD_NS: u64 = 500_000;

impl Kernel {
    /// The utilization of `cpu` has changed: cpufreq_update_util().
    pub(crate) fn util_changed(&mut self, cpu: usize) {
        // Of sched_ext's tasks the kernel calls it for a new target alone.
        if !matches!(self.class, Class::Ext(_)) {
            self.sample_pstate(cpu);
        }
        let nr = self.power.domain_of(cpu);
        let domain = &self.power.domains[nr];
        if !domain.governor.follows() || !domain.scales() || !domain.state.may_change(self.now_ns) {
            return;
        }
        let util = self.highest_util(nr);
        let may_fall = self.may_fall(nr);
        self.change_freq(nr, |domain, now_ns| domain.follow(util, may_fall, now_ns));
    }

    /// The same at a tick, where schedfreq asks for everything as soon as its headroom is used:
    /// sched_freq_tick(), from memory.
    pub(crate) fn util_ticked(&mut self, cpu: usize) {
        let nr = self.power.domain_of(cpu);
        let domain = &self.power.domains[nr];
        let jumps = domain.governor == Governor::Schedfreq
            && domain.state.may_change(self.now_ns)
            && domain.lacks_headroom(self.highest_util(nr));
        if jumps {
            self.change_freq(nr, |domain, now_ns| domain.follow(1.0, true, now_ns));
        } else {
            self.util_changed(cpu);
        }
    }

    fn highest_util(&self, nr: usize) -> f64 {
        let domain = &self.power.domains[nr];
        let utils = domain.cpus.iter().map(|&cpu| self.util_of(cpu, domain.governor));
        utils.fold(0.0, f64::max)
    }

    /// sugov_hold_freq(): the frequency of a CPU with a clock of its own does not fall before it has
    /// been idle, under the kernel's own class of today.
    fn may_fall(&mut self, nr: usize) -> bool {
        match (&mut self.class, &self.power.domains[nr].cpus[..]) {
            (Class::Eevdf(eevdf), &[cpu]) => eevdf.was_idle(cpu),
            _ => true,
        }
    }

    /// What schedutil takes a CPU's utilization to be, 0..=1 of its capacity. Of
    /// sched_ext it receives the target (scx_bpf_cpuperf_set()), and nothing else.
    fn util_of(&self, cpu: usize, governor: Governor) -> f64 {
        let state = &self.cpus[cpu];
        if let Class::Ext(_) = self.class {
            return f64::from(crate::ext::perf_target(cpu)) / state.place.capacity as f64;
        }
        let running = state.running.is_some();
        let input = |full: f64| if running { full } else { 0.0 };
        if let (Class::Eevdf(eevdf), Governor::Schedutil) = (&self.class, governor) {
            return eevdf.governor_util(cpu);
        }
        if governor == Governor::SchedutilRaw {
            return state.util_raw.at(self.now_ns, input(1.0));
        }
        state.util.at(self.now_ns, input(self.power.freq(cpu) as f64 / FULL as f64))
    }

    /// A CPU has become busy: those that look from time to time, and not while all
    /// is idle, do now what they have put off.
    pub(crate) fn arm_look(&mut self, cpu: usize) {
        let nr = self.power.domain_of(cpu);
        let domain = &mut self.power.domains[nr];
        let Some(period_ns) = domain.governor.period_ns() else { return };
        if domain.state.armed || !domain.scales() {
            return;
        }
        domain.state.armed = true;
        let due_ns = domain.state.looked_ns + period_ns;
        self.events.at(due_ns.max(self.now_ns), Event::Look(nr));
    }

    pub(crate) fn look(&mut self, nr: usize) {
        let cpus = self.power.domains[nr].cpus.clone();
        for &cpu in &cpus {
            self.account(cpu);
        }
        let busy_ns: Vec<u64> = cpus.iter().map(|&cpu| self.cpus[cpu].non_idle_ns).collect();
        let now_ns = self.now_ns;
        let state = &mut self.power.domains[nr].state;
        let passed_ns = now_ns.saturating_sub(state.looked_ns).max(1);
        let before = std::mem::replace(&mut state.busy_ns, busy_ns.clone());
        let load = |(nth, busy): (usize, &u64)| {
            (busy - before.get(nth).copied().unwrap_or(0)) as f64 / passed_ns as f64
        };
        let loads: Vec<f64> = busy_ns.iter().enumerate().map(load).collect();
        state.looked_ns = now_ns;
        state.armed = false;
        self.change_freq(nr, |domain, now_ns| domain.look(&loads, passed_ns, now_ns));
        if let Some(&cpu) = cpus.iter().find(|&&cpu| self.cpus[cpu].running.is_some()) {
            self.arm_look(cpu);
        }
    }

    /// intel_pstate_update_util() on `cpu`. The driver ignores calls for another CPU than the one that
    /// calls; a task that wakes an idle CPU is queued there, by that CPU itself.
    pub(crate) fn sample_pstate(&mut self, cpu: usize) {
        let nr = self.power.domain_of(cpu);
        let domain = &self.power.domains[nr];
        let remote = cpu != self.here && self.cpus[cpu].running.is_some();
        if domain.governor != Governor::IntelPstate || !domain.scales() || remote {
            return;
        }
        self.account(cpu);
        let state = &self.cpus[cpu];
        let counters = Counters {
            now_ns: self.now_ns,
            busy_ns: state.non_idle_ns,
            busy_freq: state.busy_freq,
        };
        // A core that sleeps has no say.
        let cpus = self.power.domains[nr].cpus.iter().copied();
        let awake: Vec<usize> = cpus.filter(|&cpu| self.power.core_is_awake(cpu)).collect();
        let wanted = self.power.domains[nr].requested(cpu, counters, |cpu| awake.contains(&cpu));
        if self.power.domains[nr].would_change(wanted) {
            self.change_freq(nr, |domain, _| domain.set(wanted));
        }
    }

    /// Lets a domain choose. It runs at that at once, or, if it is more, when the voltage is there.
    pub(super) fn change_freq(
        &mut self,
        nr: usize,
        choose: impl FnOnce(&mut crate::power::Domain, u64) -> bool,
    ) {
        self.account_clock(nr);
        if !choose(&mut self.power.domains[nr], self.now_ns) {
            return;
        }
        if self.costs.freq_ramp_ns > 0 && self.power.domains[nr].rises() {
            self.events.at(self.now_ns + self.costs.freq_ramp_ns, Event::Clock(nr));
        } else {
            self.switch_clock(nr);
        }
    }

    /// A core may have woken, or gone to sleep: its package will look at that.
    pub(crate) fn arm_turbo(&mut self, cpu: usize) {
        let Some(package) = self.power.turbo_changes(cpu) else { return };
        if !std::mem::replace(&mut self.turbo_armed[package], true) {
            let next = (self.now_ns / TURBO_PERIOD_NS + 1) * TURBO_PERIOD_NS;
            self.events.at(next, Event::Turbo(package));
        }
    }

    pub(crate) fn turbo(&mut self, package: usize) {
        self.turbo_armed[package] = false;
        for (nr, limit) in self.power.turbo_limits(package) {
            self.change_freq(nr, |domain, _| domain.set_limit(limit));
        }
    }

    pub(crate) fn clock(&mut self, nr: usize) {
        self.account_clock(nr);
        self.switch_clock(nr);
    }

    fn account_clock(&mut self, nr: usize) {
        for nth in 0..self.power.domains[nr].cpus.len() {
            self.account(self.power.domains[nr].cpus[nth]);
        }
    }

    /// All CPUs of a domain stop, and go on at the speed that has been chosen. What they do is accounted
    /// until now.
    fn switch_clock(&mut self, nr: usize) {
        if !self.power.domains[nr].switch() {
            return;
        }
        let stall_ns = self.costs.freq_stall_ns;
        self.power.freq_changed(nr, self.now_ns, self.costs.freq_change_pj);
        self.power.domains[nr].stalled_until_ns = self.now_ns + stall_ns;
        for nth in 0..self.power.domains[nr].cpus.len() {
            let cpu = self.power.domains[nr].cpus[nth];
            self.class.freq_changed(cpu, self.power.freq(cpu) as u32);
            if let Some(task) = self.cpus[cpu].running {
                self.lose(task, stall_ns * self.speed(cpu));
                self.expect_done(cpu, task);
            }
        }
        if let Some(trace) = &mut self.trace {
            let domain = &self.power.domains[nr];
            trace.frequency(self.now_ns, domain.cpus[0], domain.mhz().unwrap_or(0));
        }
    }
}
