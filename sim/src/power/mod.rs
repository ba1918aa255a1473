//! Energy, idle states and frequencies of a machine.

mod clock;
mod governor;
mod idle;
mod unit;

pub use clock::{Domain, FULL};
pub use governor::Governor;
use idle::Predictor;
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

/// Power of a machine, from its cores up.
pub struct Power {
    cpus: Vec<Idle>,
    places: Vec<MachineCpu>,
    cores: Vec<Unit>,
    llcs: Vec<Unit>,
    packages: Vec<Unit>,
    pub(crate) domains: Vec<Domain>,
    domain_of: Vec<usize>,
    /// By LLC and by package.
    cpus_of_llc: Vec<Vec<usize>>,
    cpus_of_package: Vec<Vec<usize>>,
    /// By core: its first CPU, and what kind it is.
    first_cpu: Vec<usize>,
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

impl Power {
    /// All CPUs idle, at the frequency at which `governor` begins.
    pub fn new(machine: &Machine, governor: Governor) -> Self {
        let places = machine.cpus();
        let count = |of: fn(&MachineCpu) -> usize| places.iter().map(of).max().unwrap_or(0) + 1;
        let (nr_cores, nr_packages) = (count(|cpu| cpu.core), count(|cpu| cpu.package));
        let first_cpu: Vec<usize> = (0..nr_cores)
            .map(|core| places.iter().position(|cpu| cpu.core == core).expect("a core has a CPU"))
            .collect();
        let kinds: Vec<Core> =
            first_cpu.iter().map(|&cpu| machine.core_of(&places[cpu]).clone()).collect();
        let key = |cpu: &MachineCpu| match machine.clock {
            Clock::Core => cpu.core,
            Clock::Llc => cpu.llc,
            Clock::Package => cpu.package,
        };
        let domain_of: Vec<usize> = places.iter().map(key).collect();
        let nr_domains = domain_of.iter().max().map_or(0, |last| last + 1);
        let domain = |nr: usize| {
            let cpus = (0..places.len()).filter(|&cpu| domain_of[cpu] == nr).collect();
            let opps = kinds[places[domain_of.iter().position(|&of| of == nr).unwrap_or(0)].core]
                .opps
                .clone();
            Domain::new(cpus, opps, governor, machine.freq_rate_limit_us)
        };
        let idle = |cpu: &MachineCpu| Idle {
            predictor: Predictor::new(machine.idle_governor, kinds[cpu.core].idle.len()),
            awake: false,
            state: 0,
            since_ns: 0,
            timer_ns: 0,
        };
        Power {
            cpus: places.iter().map(idle).collect(),
            cores: kinds.iter().map(|kind| Unit::new(kind.idle.clone())).collect(),
            llcs: (0..machine.nr_llcs())
                .map(|llc| Unit::new(machine.uncore_of_llc(llc).idle))
                .collect(),
            packages: (0..nr_packages).map(|_| Unit::new(machine.package.idle.clone())).collect(),
            cpus_of_llc: grouped(&places, |cpu| cpu.llc),
            cpus_of_package: grouped(&places, |cpu| cpu.package),
            domains: (0..nr_domains).map(domain).collect(),
            domain_of,
            first_cpu,
            kinds,
            places,
        }
        .begin(machine)
    }

    fn begin(mut self, machine: &Machine) -> Self {
        for (llc, unit) in self.llcs.iter_mut().enumerate() {
            unit.active_mw = machine.uncore_of_llc(llc).active_mw;
        }
        for unit in &mut self.packages {
            unit.active_mw = machine.package.active_mw;
        }
        for cpu in 0..self.cpus.len() {
            let place = self.places[cpu];
            self.cores[place.core].members += 1;
            if self.first_cpu[place.core] == cpu {
                self.llcs[place.llc].members += 1;
            }
            if self.cpus_of_llc[place.llc][0] == cpu {
                self.packages[place.package].members += 1;
            }
        }
        for cpu in 0..self.cpus.len() {
            self.sleep(cpu, 0, u64::MAX);
        }
        self
    }

    /// Frequency of `cpu` over its highest, 1..=1024.
    pub fn freq(&self, cpu: usize) -> u64 {
        self.domains[self.domain_of[cpu]].freq()
    }

    pub(crate) fn domain_of(&self, cpu: usize) -> usize {
        self.domain_of[cpu]
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
            exit_ns = exit_ns.max(self.llcs[place.llc].wake(now_ns));
            if self.llcs[place.llc].awake == 1 {
                exit_ns = exit_ns.max(self.packages[place.package].wake(now_ns));
            }
        }
        self.set_core_power(place.core, now_ns);
        exit_ns
    }

    /// Tells the governor how long `cpu` was idle.
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
        let threads = self.first_cpu[place.core]..;
        let threads = threads.take(self.cores[place.core].members);
        let state = threads.map(|cpu| self.cpus[cpu].state).min().unwrap_or(0);
        self.cores[place.core].sleep(Some(state), now_ns);
        if was_awake {
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

    /// An interrupt of `busy_ns` on an idle CPU that goes back to sleep.
    pub fn blip(&mut self, cpu: usize, now_ns: u64, busy_ns: u64, timer_ns: u64) -> bool {
        let exit_ns = self.wake(cpu, now_ns);
        let core = self.places[cpu].core;
        let power_mw = self.active_mw(core, 1);
        self.cores[core].energy_pj += power_mw * (exit_ns + busy_ns) as f64;
        self.sleep(cpu, now_ns, timer_ns)
    }

    fn active_mw(&self, core: usize, threads: usize) -> f64 {
        let more = threads.saturating_sub(1) as f64 * self.kinds[core].smt_power_pct / 100.0;
        self.domains[self.domain_of[self.first_cpu[core]]].power_mw() * (1.0 + more)
    }

    fn set_core_power(&mut self, core: usize, now_ns: u64) {
        let power_mw = self.active_mw(core, self.cores[core].awake);
        self.cores[core].set_power(power_mw, now_ns);
    }

    /// The frequency of `domain` has changed.
    pub(crate) fn freq_changed(&mut self, domain: usize, now_ns: u64) {
        for nth in 0..self.domains[domain].cpus.len() {
            let core = self.places[self.domains[domain].cpus[nth]].core;
            if self.cores[core].awake > 0 {
                self.set_core_power(core, now_ns);
            }
        }
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
