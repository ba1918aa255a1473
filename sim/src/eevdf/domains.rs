//! The kernel's scheduling domains: threads of a core, cores of an LLC, LLCs of a package, packages.
//! A level with one group does not exist.

use crate::machine::MachineCpu;

/// A busier group is left alone unless it is busier by this (imbalance_pct 117, of threads 110).
const IMBALANCE: f64 = 1.17;
const IMBALANCE_SMT: f64 = 1.10;

/// A level as one CPU sees it.
#[derive(Clone, Debug)]
pub struct Level {
    /// Its groups of CPUs, that of the CPU first.
    pub groups: Vec<Vec<usize>>,
    /// CPUs of different capacity (SD_ASYM_CPUCAPACITY).
    pub asym: bool,
    pub smt: bool,
    /// All share a cache (SD_SHARE_LLC).
    pub shares_cache: bool,
    /// Tasks are spread evenly over its groups (SD_PREFER_SIBLING of the level below).
    pub prefers_siblings: bool,
    pub imbalance: f64,
    /// When it was last balanced (ns), and how long it then waits while its CPU is idle (ms).
    pub balanced_ns: u64,
    pub interval_ms: u64,
    /// How often in a row nothing was moved (nr_balance_failed).
    pub failed: u32,
}

impl Level {
    /// After more failures a task is moved that has just run (cache_nice_tries).
    pub fn failures_max(&self) -> u32 {
        u32::from(!self.smt)
    }

    /// The shortest interval, in ms: one for each of its CPUs. The longest is twice that.
    pub fn interval_min_ms(&self) -> u64 {
        self.groups.iter().map(Vec::len).sum::<usize>() as u64
    }
}

/// What a level's groups have in common, and its CPUs.
type Key = fn(&MachineCpu) -> usize;

const LEVELS: [(Key, Key); 4] = [
    (|cpu| cpu.cpu, |cpu| cpu.core),
    (|cpu| cpu.core, |cpu| cpu.llc),
    (|cpu| cpu.llc, |cpu| cpu.package),
    (|cpu| cpu.package, |_| 0),
];

/// The levels of `cpu`, lowest first; `capacity`: of each CPU.
pub fn levels(places: &[MachineCpu], capacity: &[f64], cpu: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for (group_of, span_of) in LEVELS {
        let here = &places[cpu];
        let span = places.iter().filter(|place| span_of(place) == span_of(here));
        let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
        for place in span {
            let key = group_of(place);
            if key == group_of(here) {
                groups[0].push(place.cpu);
                continue;
            }
            match groups[1..].iter_mut().find(|group| group_of(&places[group[0]]) == key) {
                Some(group) => group.push(place.cpu),
                None => groups.push(vec![place.cpu]),
            }
        }
        if groups.len() == 1 {
            continue;
        }
        let smt = groups.iter().flatten().all(|&other| places[other].core == here.core);
        let asym = groups.iter().flatten().any(|&other| capacity[other] != capacity[cpu]);
        let level = Level {
            asym,
            smt,
            shares_cache: groups.iter().flatten().all(|&other| places[other].llc == here.llc),
            prefers_siblings: !levels.is_empty() && !asym,
            imbalance: if smt { IMBALANCE_SMT } else { IMBALANCE },
            balanced_ns: 0,
            interval_ms: 0,
            failed: 0,
            groups,
        };
        levels.push(Level { interval_ms: level.interval_min_ms(), ..level });
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn of(machine: &str, cpu: usize) -> Vec<Level> {
        let places = Machine::find(machine).unwrap().cpus();
        let capacity: Vec<f64> = places.iter().map(|place| place.capacity as f64).collect();
        levels(&places, &capacity, cpu)
    }

    #[test]
    fn a_machine_of_two_clusters_has_two_levels_and_one_cache_one() {
        let levels = of("chromebook2", 5);
        assert_eq!(levels.len(), 2);
        assert_eq!(levels[0].groups, [[5], [4], [6], [7]]);
        assert_eq!(levels[1].groups, [[4, 5, 6, 7], [0, 1, 2, 3]]);
        assert!(!levels[0].asym && levels[0].shares_cache);
        assert!(levels[1].asym && !levels[1].shares_cache && !levels[1].prefers_siblings);
        assert_eq!((levels[1].interval_ms, of("phone", 0).len()), (8, 1));
    }

    #[test]
    fn threads_cores_caches_and_packages_are_levels() {
        let levels = of("epyc-2s", 0);
        let groups: Vec<usize> = levels.iter().map(|level| level.groups.len()).collect();
        assert_eq!((groups[0], levels.len()), (2, 4), "{groups:?}");
        assert!(levels[0].smt && levels[1].prefers_siblings && !levels[0].prefers_siblings);
    }
}
