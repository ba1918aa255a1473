//! Power-aware scheduling (Alex Shi, 2012 and 2013): tasks go to the fullest group of CPUs that still has
//! room, until the domain is full; then it does as Linux 3.9.
//!
//! The rules are those of the last tree of its author (github alexshi/power-scheduling, kernel/sched/fair.c
//! at 4e2673b63ea4, and word for word imoseyon/leanKernel-shamu at 02e63d32ac50), which knows one
//! power policy and counts a group's power. v7 as posted had two, "powersaving" by a group's number
//! of CPUs (group_weight) and "balance" by its capacity (group_capacity): the mails of v5, and
//! "Re: [patch v7 0/21]" of 17 May 2013. Its code was not found: that the rest is as in the last tree, and
//! the factor of "balance", are approximations. There is no real-time work here to subtract.

use super::Balancer;
use super::baseline::Spread;
use super::view::View;
use crate::eevdf::domains::{Level, levels};
use crate::machine::Machine;

/// A core with several threads has so much power in all, of that of a core with one (smt_gain: 1178 of
/// 1024).
const CORE_POWER: f64 = 1178.0 / 1024.0;
/// A CPU that is expected to be idle for less has a burst of wakeups (sysctl_sched_burst_threshold).
const BURST_NS: u64 = 100_000;
/// Power balancing waits for this many balances of a domain without one for performance, and allows
/// `RARE` in as many before.
const CALM: u32 = 32;
const RARE: u32 = 4;
/// A domain that has not been balanced for so long begins again (8 * sd->max_interval, 4 ms).
const FORGET_NS: u64 = 32_000_000;

/// What a group is taken to carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Room {
    /// Its number of CPUs (group_weight).
    Weight,
    /// Its power as a whole number of CPUs (group_capacity).
    Capacity,
    /// Its power (sgp->power).
    Power,
}

/// A policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// When tasks are placed.
    pub places: Room,
    /// When the domain is balanced.
    pub balances: Room,
    /// A task goes to a used CPU if that has this many times the task's utilization left.
    pub headroom: f64,
}

impl Policy {
    /// v7's "powersaving": tasks below a quarter of a CPU are packed.
    pub const POWERSAVING: Policy =
        Policy { places: Room::Weight, balances: Room::Weight, headroom: 4.0 };
    /// v7's "balance": by capacity, and, from memory, tasks below an eighth.
    pub const BALANCE: Policy =
        Policy { places: Room::Capacity, balances: Room::Capacity, headroom: 8.0 };
    /// "powersaving" as the mail of 17 May 2013 wants it: by capacity.
    pub const CAPACITY: Policy =
        Policy { places: Room::Capacity, balances: Room::Capacity, headroom: 4.0 };
    /// The last tree's "powersaving".
    pub const FINAL: Policy = Policy { places: Room::Power, balances: Room::Weight, headroom: 4.0 };
}

/// A domain as one CPU sees it.
struct Domain {
    level: Level,
    /// Its last 64 balances, the newest lowest: 1 was one for performance (perf_lb_record).
    performance: u64,
    balanced_ns: u64,
}

/// The domains of all CPUs under a policy.
pub(crate) struct PowerAware {
    pub spread: Spread,
    policy: Policy,
    /// By CPU: its domains, lowest first.
    domains: Vec<Vec<Domain>>,
    /// By CPU: its power, of a core with one thread.
    power: Vec<f64>,
    /// "FULL_UTIL - utilization" is of an unsigned type: a long, of 32 bits, and an unsigned int.
    unsigned: bool,
}

impl PowerAware {
    pub fn new(spread: Spread, policy: Policy, machine: &Machine) -> Self {
        let places = machine.cpus();
        let capacity: Vec<f64> = places.iter().map(|place| place.capacity as f64).collect();
        let of = |level| Domain { level, performance: 0, balanced_ns: 0 };
        let domains = |cpu| levels(&places, &capacity, cpu).into_iter().map(of).collect();
        let power = |&threads: &usize| if threads == 1 { 1.0 } else { CORE_POWER / threads as f64 };
        let threads = places.iter().map(|place| machine.core_of(place).threads);
        PowerAware {
            spread,
            policy,
            domains: (0..places.len()).map(domains).collect(),
            power: threads.map(|threads| power(&threads)).collect(),
            unsigned: machine.word_bits == 32,
        }
    }

    /// What `group` carries, in CPUs.
    fn room(&self, room: Room, group: &[usize]) -> f64 {
        let power: f64 = group.iter().map(|&cpu| self.power[cpu]).sum();
        match room {
            Room::Weight => group.len() as f64,
            // A thread alone counts as one (fix_small_capacity()).
            Room::Capacity => power.round().max(1.0),
            Room::Power => power,
        }
    }

    /// get_cpu_for_power_policy(): where `id` goes in a domain that is not full.
    fn place(
        &self,
        view: &View,
        level: &Level,
        id: usize,
        here: usize,
        wakes: bool,
    ) -> Option<usize> {
        let leader = self.leader(view, level, view.task_load(id), wakes)?;
        let packed = if wakes && !level.smt { self.pack(view, leader, id, here) } else { None };
        packed.or_else(|| {
            let key = |&cpu: &usize| (view.load(cpu) as u64, cpu != here, cpu);
            leader.iter().copied().min_by_key(key)
        })
    }

    /// is_sd_full(): the group with the least room that has any, unless the domain has none for a task of
    /// utilization `putil`.
    fn leader<'a>(
        &self,
        view: &View,
        level: &'a Level,
        putil: f64,
        wakes: bool,
    ) -> Option<&'a [usize]> {
        let used = |group: &[usize]| group.iter().map(|&cpu| demand(view, cpu, wakes)).sum::<f64>();
        let domain: Vec<usize> = level.groups.iter().flatten().copied().collect();
        if used(&domain) + putil >= self.room(self.policy.places, &domain) {
            return None;
        }
        let left = |group: &Vec<usize>| self.room(self.policy.places, group) - used(group);
        let with_room = level.groups.iter().filter(|group| left(group) > 0.0);
        with_room.min_by(|a, b| left(a).total_cmp(&left(b))).map(Vec::as_slice)
    }

    /// find_leader_cpu(): the waking CPU, wherever it is, else the fullest of `leader` with enough left.
    /// The first is compared without a sign where a long has 32 bits: it always has enough there, but for
    /// exactly nothing.
    fn pack(&self, view: &View, leader: &[usize], id: usize, here: usize) -> Option<usize> {
        let needs = self.policy.headroom * view.task_load(id);
        let vacancy = |cpu: usize| 1.0 - demand(view, cpu, true) - needs;
        if self.unsigned || vacancy(here) > 0.0 {
            return Some(here);
        }
        let vacant = leader.iter().copied().filter(|&cpu| vacancy(cpu) > 0.0);
        vacant.min_by(|&a, &b| vacancy(a).total_cmp(&vacancy(b)))
    }

    /// From where idle CPU `to` pulls in its domain number `nth`, which has cores or more as groups.
    fn balance(&mut self, view: &View, to: usize, nth: usize) -> Option<usize> {
        let used = |group: &[usize]| group.iter().map(|&cpu| demand(view, cpu, false)).sum::<f64>();
        let groups = &self.domains[to][nth].level.groups;
        let room = |group: &[usize]| self.room(self.policy.balances, group);
        if groups.iter().any(|group| used(group) > room(group)) {
            let from = self.spread.busiest(view, to, true, groups.iter().flatten().copied());
            self.domains[to][nth].record(true, view.now_ns());
            return from;
        }
        let busy = |group: &&Vec<usize>| used(group) > 0.0;
        let by_use = |a: &Vec<usize>, b: &Vec<usize>| used(a).total_cmp(&used(b));
        // Of equals the last one gives, and the first one takes.
        let least = groups.iter().filter(busy).min_by(|a, b| by_use(a, b).then(b[0].cmp(&a[0])));
        let fits = groups.iter().filter(busy).filter(|group| used(group) + 1.0 <= room(group));
        let leader = fits.max_by(|a, b| by_use(a, b).then(b[0].cmp(&a[0])));
        let local_leads = leader.is_some_and(|leader| leader == &groups[0]);
        let waiting = |&&cpu: &&usize| view.nr_running(cpu) > 1;
        let from = least
            .filter(|least| local_leads && *least != &groups[0])
            .and_then(|least| least.iter().filter(waiting).max_by_key(|&&cpu| view.nr_running(cpu)))
            .copied();
        let domain = &mut self.domains[to][nth];
        let calm = domain.is_calm(view.now_ns());
        domain.record(false, view.now_ns());
        from.filter(|_| calm)
    }
}

impl Domain {
    /// Whether it has not been balanced for performance lately.
    fn is_calm(&mut self, now_ns: u64) -> bool {
        if now_ns > self.balanced_ns + FORGET_NS {
            self.performance = 0;
        }
        (self.performance << CALM) == 0 && (self.performance >> CALM).count_ones() <= RARE
    }

    fn record(&mut self, performance: bool, now_ns: u64) {
        self.performance = self.performance << 1 | u64::from(performance);
        self.balanced_ns = now_ns;
    }
}

/// max_cfs_util(): the most that the tasks of `cpu` may need, in CPUs: its utilization times their number,
/// or, as tasks wake in a burst, their number.
fn demand(view: &View, cpu: usize, wakes: bool) -> f64 {
    let nr_running = view.nr_running(cpu) as f64;
    if wakes && view.avg_idle_ns(cpu) < BURST_NS {
        return nr_running;
    }
    view.util(cpu) * nr_running
}

impl Balancer for PowerAware {
    /// In the lowest domain with both CPUs.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let prev = view.prev(id);
        let both = |domain: &&Domain| domain.level.groups.iter().flatten().any(|&cpu| cpu == prev);
        let affine = self.domains[here].iter().find(both);
        let power = affine.and_then(|domain| self.place(view, &domain.level, id, here, true));
        power.unwrap_or_else(|| self.spread.wake(view, id, here, sync))
    }

    /// From its parent's lowest domain upwards, in the first that is not full.
    fn fork(&mut self, view: &View, id: usize) -> usize {
        let here = view.prev(id);
        let place = |domain: &Domain| self.place(view, &domain.level, id, here, false);
        self.domains[here].iter().find_map(place).unwrap_or_else(|| view.idlest(id))
    }

    /// A busy CPU, and threads of a core, balance as Linux 3.9.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        if !idle {
            return self.spread.pull(view, to, idle);
        }
        (0..self.domains[to].len()).find_map(|nth| {
            let level = &self.domains[to][nth].level;
            if level.smt {
                return self.spread.busiest(view, to, idle, level.groups.iter().flatten().copied());
            }
            self.balance(view, to, nth)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::tests::outcome;

    #[test]
    fn a_domain_is_calm_32_balances_after_the_last_for_performance() {
        let level = levels(&Machine::find("tc2-a7").unwrap().cpus(), &[1.0; 3], 0).remove(0);
        let mut domain = Domain { level, performance: 0, balanced_ns: 0 };
        (0..5).for_each(|_| domain.record(true, 1));
        assert!(!domain.is_calm(1));
        (0..32).for_each(|_| domain.record(false, 1));
        assert!(!domain.is_calm(1), "five in the 32 before");
        domain.record(false, 1);
        assert!(!domain.is_calm(1), "still five");
        (0..27).for_each(|_| domain.record(false, 1));
        assert!(domain.is_calm(1), "four");
        domain.record(true, 1);
        assert!(!domain.is_calm(1) && domain.is_calm(2 + FORGET_NS), "all is forgotten");
    }

    #[test]
    fn a_group_counts_by_its_cpus_or_by_its_power() {
        let machine = Machine::find("power7").unwrap();
        let pas = PowerAware::new(Spread { runnable: false }, Policy::FINAL, &machine);
        let core = [0, 1, 2, 3];
        assert_eq!((pas.room(Room::Weight, &core), pas.room(Room::Capacity, &core)), (4.0, 1.0));
        assert!((pas.room(Room::Power, &core) - CORE_POWER).abs() < 1e-9);
        assert_eq!(pas.room(Room::Capacity, &[5]), 1.0);
    }

    /// Two threads of ebizzy share a core by its number of threads, and have one each by its capacity.
    #[test]
    fn powersaving_and_balance_are_two_policies() {
        let used = |system| {
            let pct = outcome("power7", "ebizzy-2", system).non_idle_pct;
            pct.chunks(4).filter(|core| core.iter().sum::<f64>() > 1.0).count()
        };
        assert_eq!((used("pas-v7"), used("pas-v7-balance"), used("3.9")), (1, 2, 2));
    }

    /// A thread stays where it was started, and so two CPUs work ("pas-v7 fails to pack cyclictest").
    #[test]
    fn what_wakes_stays_on_the_waking_cpu() {
        let pct = outcome("tc2-a7", "cyclictest", "pas-v7").non_idle_pct;
        assert_eq!(pct.iter().filter(|&&pct| pct > 5.0).count(), 2, "{pct:?}");
    }
}
