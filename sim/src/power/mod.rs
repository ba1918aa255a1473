//! Energy, idle states and frequencies of a machine.

mod clock;
mod governor;
mod idle;
mod pstate;
mod unit;

use std::collections::BTreeSet;

pub use clock::{Domain, FULL};
pub use governor::{Governor, HEADROOM};
use idle::Predictor;
pub use pstate::{Counters, epp_of};
pub use unit::Unit;

use crate::machine::{Clock, Core, Machine, MachineCpu};

/// What a CPU's idle governor knows.
struct Idle {
    predictor: Predictor,
    awake: bool,
    /// The state it is in.
    state: usize,
    /// When it went idle, and when its next timer is due (ns).
    since_ns: u64,
    timer_ns: u64,
}

/// An interrupt on an idle CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blip {
    pub busy_ns: u64,
    /// Whether the cache and the package that it wakes are charged too. A timer's are not: the task that
    /// it wakes keeps them awake, or those of another CPU.
    pub whole: bool,
}

/// Power of a machine, from its cores up.
pub struct Power {
    cpus: Vec<Idle>,
    places: Vec<MachineCpu>,
    cores: Vec<Unit>,
    llcs: Vec<Unit>,
    packages: Vec<Unit>,
    /// By package: how many of its cores are awake,
    awake_cores: Vec<usize>,
    /// and how many were when its limits of frequency were set.
    limited_cores: Vec<usize>,
    /// Up to how many cores each limit of any kind holds, fewest first.
    turbo_steps: Vec<usize>,
    pub(crate) domains: Vec<Domain>,
    domain_of: Vec<usize>,
    /// By core, by LLC and by package.
    cpus_of_core: Vec<Vec<usize>>,
    cpus_of_llc: Vec<Vec<usize>>,
    cpus_of_package: Vec<Vec<usize>>,
    /// By core.
    kinds: Vec<Core>,
}

/// Energy used so far (mJ).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    pub cores_mj: f64,
    pub llcs_mj: f64,
    pub packages_mj: f64,
}

impl Energy {
    pub fn total_mj(&self) -> f64 {
        self.cores_mj + self.llcs_mj + self.packages_mj
    }

    /// Since `before`.
    pub fn since(&self, before: &Energy) -> Energy {
        Energy {
            cores_mj: self.cores_mj - before.cores_mj,
            llcs_mj: self.llcs_mj - before.llcs_mj,
            packages_mj: self.packages_mj - before.packages_mj,
        }
    }
}

/// CPUs by what they share.
fn grouped(places: &[MachineCpu], of: fn(&MachineCpu) -> usize) -> Vec<Vec<usize>> {
    let nr = places.iter().map(of).max().map_or(0, |last| last + 1);
    let mut groups = vec![Vec::new(); nr];
    for place in places {
        groups[of(place)].push(place.cpu);
    }
    groups
}

/// Where the limits of turbo change, of kinds of cores.
fn turbo_steps(kinds: &[Core]) -> Vec<usize> {
    let steps: BTreeSet<usize> =
        kinds.iter().flat_map(|kind| &kind.turbo).map(|limit| limit.cores).collect();
    steps.into_iter().collect()
}

impl Power {
    /// All CPUs idle, at the frequency at which `governor` begins.
    pub fn new(machine: &Machine, governor: Governor) -> Self {
        let places = machine.cpus();
        let cpus_of_core = grouped(&places, |cpu| cpu.core);
        let kinds: Vec<Core> =
            cpus_of_core.iter().map(|cpus| machine.core_of(&places[cpus[0]]).clone()).collect();
        let clock = match machine.clock {
            Clock::Core => |cpu: &MachineCpu| cpu.core,
            Clock::Llc => |cpu: &MachineCpu| cpu.llc,
            Clock::Package => |cpu: &MachineCpu| cpu.package,
            Clock::Kind => |cpu: &MachineCpu| cpu.kind,
        };
        let domain = |cpus: Vec<usize>| {
            let opps = kinds[places[cpus[0]].core].opps.clone();
            Domain::new(cpus, opps, governor, machine.freq_rate_limit_us)
        };
        let idle = |cpu: &MachineCpu| Idle {
            predictor: Predictor::new(machine.idle_governor, kinds[cpu.core].idle.len()),
            awake: false,
            state: 0,
            since_ns: 0,
            timer_ns: 0,
        };
        let uncore = |llc: usize| {
            let uncore = machine.uncore_of_llc(llc);
            Unit::new(uncore.idle, uncore.active_mw)
        };
        let cpus_of_package = grouped(&places, |cpu| cpu.package);
        let package = || Unit::new(machine.package.idle.clone(), machine.package.active_mw);
        let mut power = Power {
            cpus: places.iter().map(idle).collect(),
            cores: kinds.iter().map(|kind| Unit::new(kind.idle.clone(), 0.0)).collect(),
            llcs: (0..machine.nr_llcs()).map(uncore).collect(),
            packages: cpus_of_package.iter().map(|_| package()).collect(),
            awake_cores: vec![0; cpus_of_package.len()],
            limited_cores: vec![0; cpus_of_package.len()],
            turbo_steps: turbo_steps(&kinds),
            domains: grouped(&places, clock).into_iter().map(domain).collect(),
            domain_of: places.iter().map(clock).collect(),
            cpus_of_core,
            cpus_of_llc: grouped(&places, |cpu| cpu.llc),
            cpus_of_package,
            kinds,
            places,
        };
        (0..power.cpus.len()).for_each(|cpu| {
            power.sleep(cpu, 0, u64::MAX);
        });
        power
    }

    /// No clock goes by a point that is not worth it, where the kernel has an energy model: of
    /// machines with several kinds of cores and without threads (a device tree's, for example).
    pub(crate) fn skip_inefficient(&mut self, machine: &Machine) {
        if machine.has_energy_model() {
            self.domains.iter_mut().for_each(Domain::skip_inefficient);
        }
    }

    /// Frequency of `cpu` over its highest, 1..=1024.
    pub fn freq(&self, cpu: usize) -> u64 {
        self.domains[self.domain_of[cpu]].freq()
    }

    pub(crate) fn domain_of(&self, cpu: usize) -> usize {
        self.domain_of[cpu]
    }

    /// Whether any thread of the core of `cpu` is awake.
    pub(crate) fn core_is_awake(&self, cpu: usize) -> bool {
        self.cores[self.places[cpu].core].awake > 0
    }

    /// An interrupt reaches an idle CPU: how long until it can do anything (ns).
    pub fn wake(&mut self, cpu: usize, now_ns: u64) -> u64 {
        if self.cpus[cpu].awake {
            return 0;
        }
        self.reflect(cpu, now_ns);
        self.cpus[cpu].awake = true;
        let place = self.places[cpu];
        let exit_core = self.cores[place.core].wake(now_ns);
        let mut exit_ns = exit_core;
        if self.cores[place.core].awake == 1 {
            self.awake_cores[place.package] += 1;
            exit_ns = exit_ns.max(self.llcs[place.llc].wake(now_ns));
            if self.llcs[place.llc].awake == 1 {
                exit_ns = exit_ns.max(self.packages[place.package].wake(now_ns));
            }
        }
        self.set_core_power(place.core, now_ns);
        exit_ns
    }

    /// Reports to the governor how long `cpu` was idle.
    fn reflect(&mut self, cpu: usize, now_ns: u64) {
        let idle = &mut self.cpus[cpu];
        let states = &self.kinds[self.places[cpu].core].idle;
        let timer_ns = idle.timer_ns.saturating_sub(idle.since_ns);
        idle.predictor.reflect(states, now_ns - idle.since_ns, timer_ns);
    }

    /// `cpu` has nothing to run; its next timer is due at `timer_ns`. When to look
    /// again at the state that was chosen, if the governor has kept the tick.
    pub fn sleep(&mut self, cpu: usize, now_ns: u64, timer_ns: u64) -> bool {
        let place = self.places[cpu];
        let idle = &mut self.cpus[cpu];
        let was_awake = std::mem::take(&mut idle.awake);
        (idle.since_ns, idle.timer_ns) = (now_ns, timer_ns);
        let states = &self.kinds[place.core].idle;
        let (state, unsure) = idle.predictor.select(states, timer_ns - now_ns);
        idle.state = state;
        if was_awake {
            self.cores[place.core].awake -= 1;
        }
        if self.cores[place.core].awake > 0 {
            self.set_core_power(place.core, now_ns);
            return unsure;
        }
        self.core_sleeps(place, was_awake, now_ns);
        unsure
    }

    /// The last thread of a core has gone idle, or chosen another state.
    fn core_sleeps(&mut self, place: MachineCpu, was_awake: bool, now_ns: u64) {
        let threads = self.cpus_of_core[place.core].iter();
        let state = threads.map(|&cpu| self.cpus[cpu].state).min().unwrap_or(0);
        self.cores[place.core].sleep(Some(state), now_ns);
        if was_awake {
            self.awake_cores[place.package] -= 1;
            self.llcs[place.llc].awake -= 1;
        }
        if self.llcs[place.llc].awake > 0 {
            return;
        }
        let until = self.idle_for(&self.cpus_of_llc[place.llc], now_ns);
        self.llcs[place.llc].sleep_for(until, now_ns);
        if was_awake {
            self.packages[place.package].awake -= 1;
        }
        if self.packages[place.package].awake == 0 {
            let until = self.idle_for(&self.cpus_of_package[place.package], now_ns);
            self.packages[place.package].sleep_for(until, now_ns);
        }
    }

    /// How long all of these CPUs are expected to be idle (ns); `None`: one of
    /// them is not in its deepest state.
    fn idle_for(&self, cpus: &[usize], now_ns: u64) -> Option<u64> {
        let each = cpus.iter().map(|&cpu| {
            let idle = &self.cpus[cpu];
            let deepest = self.kinds[self.places[cpu].core].idle.len().saturating_sub(1);
            (idle.state == deepest).then(|| idle.timer_ns.saturating_sub(now_ns))
        });
        each.min().flatten()
    }

    /// An interrupt on an idle CPU that goes back to sleep.
    pub(crate) fn blip(&mut self, cpu: usize, now_ns: u64, blip: Blip, timer_ns: u64) -> bool {
        let busy_ns = blip.busy_ns;
        let exit_ns = self.wake(cpu, now_ns);
        let MachineCpu { core, llc, package, .. } = self.places[cpu];
        let power_mw = self.active_mw(core, 1);
        self.cores[core].energy_pj += power_mw * (exit_ns + busy_ns) as f64;
        let unsure = self.sleep(cpu, now_ns, timer_ns);
        if blip.whole && self.llcs[llc].awake == 0 {
            self.llcs[llc].add_awake(exit_ns + busy_ns);
        }
        if blip.whole && self.packages[package].awake == 0 {
            self.packages[package].add_awake(exit_ns + busy_ns);
        }
        unsure
    }

    fn active_mw(&self, core: usize, threads: usize) -> f64 {
        let more = threads.saturating_sub(1) as f64 * self.kinds[core].smt_power_pct / 100.0;
        self.domains[self.domain_of[self.cpus_of_core[core][0]]].power_mw() * (1.0 + more)
    }

    fn set_core_power(&mut self, core: usize, now_ns: u64) {
        let power_mw = self.active_mw(core, self.cores[core].awake);
        self.cores[core].set_power(power_mw, now_ns);
    }

    /// The frequency of `domain` has changed, which took `change_pj`.
    pub(crate) fn freq_changed(&mut self, domain: usize, now_ns: u64, change_pj: f64) {
        let first = self.places[self.domains[domain].cpus[0]].core;
        self.cores[first].energy_pj += change_pj;
        for nth in 0..self.domains[domain].cpus.len() {
            let core = self.places[self.domains[domain].cpus[nth]].core;
            if self.cores[core].awake > 0 {
                self.set_core_power(core, now_ns);
            }
        }
    }

    /// The package of `cpu` if other limits of frequency may hold there than those that were set.
    pub(crate) fn turbo_changes(&self, cpu: usize) -> Option<usize> {
        let package = self.places[cpu].package;
        let step = |cores: usize| self.turbo_steps.partition_point(|&up_to| up_to < cores);
        let changed = step(self.awake_cores[package]) != step(self.limited_cores[package]);
        changed.then_some(package)
    }

    /// The clocks of `package` whose highest operating point is another one now, by how many cores are awake,
    /// and which it is.
    pub(crate) fn turbo_limits(&mut self, package: usize) -> Vec<(usize, usize)> {
        let awake = self.awake_cores[package];
        self.limited_cores[package] = awake;
        let first = |nr: usize| self.places[self.domains[nr].cpus[0]];
        let here = (0..self.domains.len()).filter(|&nr| first(nr).package == package);
        let limit = |nr: usize| {
            let mhz = self.kinds[first(nr).core].turbo_mhz(awake);
            self.domains[nr].point_up_to(mhz)
        };
        let limits = here.map(|nr| (nr, limit(nr)));
        limits.filter(|&(nr, limit)| self.domains[nr].limit() != limit).collect()
    }

    /// What was used until `now_ns`.
    pub fn energy(&mut self, now_ns: u64) -> Energy {
        let sum = |units: &mut [Unit]| -> f64 {
            units.iter_mut().map(|unit| unit.settle(now_ns)).sum::<f64>() / 1e9
        };
        Energy {
            cores_mj: sum(&mut self.cores),
            llcs_mj: sum(&mut self.llcs),
            packages_mj: sum(&mut self.packages),
        }
    }

    /// Time in each state of each core (ns): awake, then its idle states.
    pub fn core_residency(&mut self, now_ns: u64) -> Vec<Vec<u64>> {
        self.cores.iter_mut().for_each(|unit| {
            unit.settle(now_ns);
        });
        self.cores.iter().map(|unit| unit.residency_ns.clone()).collect()
    }

    /// The same of what all share: LLCs and packages, by name and state.
    pub fn uncore_residency(&mut self, now_ns: u64) -> Vec<Vec<u64>> {
        let units = self.llcs.iter_mut().chain(&mut self.packages);
        units
            .map(|unit| {
                unit.settle(now_ns);
                unit.residency_ns.clone()
            })
            .collect()
    }
}
