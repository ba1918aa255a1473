//! The kernel's scheduling domains: threads of a core, cores of an LLC, LLCs of a node, nodes. (Its
//! level of packages, PKG, spans a node: cpu_cpu_mask().) A level with one group does not exist.
//! All nodes are equally far from each other, and near enough (RECLAIM_DISTANCE) that new tasks and
//! wake-ups may go from one to another.

use super::numa;
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
    /// Its groups are NUMA nodes (SD_NUMA), and up to so many tasks on one of them it may be
    /// imbalanced (imb_numa_nr).
    pub imb_numa_nr: Option<usize>,
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
        u32::from(!self.smt) + u32::from(self.imb_numa_nr.is_some())
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
    (|cpu| cpu.llc, |cpu| cpu.node),
    (|cpu| cpu.node, |_| 0),
];

/// The groups of CPUs of a level, that of `here` first.
fn groups(
    places: &[MachineCpu],
    here: &MachineCpu,
    group_of: Key,
    span_of: Key,
) -> Vec<Vec<usize>> {
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
    groups
}

/// The levels of `cpu`, lowest first; `capacity`: of each CPU.
pub fn levels(places: &[MachineCpu], capacity: &[f64], cpu: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let here = &places[cpu];
    for (group_of, span_of) in LEVELS {
        let groups = groups(places, here, group_of, span_of);
        if groups.len() == 1 {
            continue;
        }
        let all = |has: &dyn Fn(usize) -> bool| groups.iter().flatten().all(|&other| has(other));
        let smt = all(&|other| places[other].core == here.core);
        let asym = !all(&|other| capacity[other] == capacity[cpu]);
        let one_node = all(&|other| places[other].node == here.node);
        let of_llc = |other: &&usize| places[**other].llc == here.llc;
        let imb_numa_nr =
            || numa::allowed(groups[0].len(), groups[0].iter().filter(of_llc).count());
        let level = Level {
            asym,
            smt,
            shares_cache: all(&|other| places[other].llc == here.llc),
            prefers_siblings: !levels.is_empty() && !asym,
            imb_numa_nr: (!one_node).then(imb_numa_nr),
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
    fn threads_cores_caches_and_nodes_are_levels() {
        let levels = of("epyc-2s", 0);
        let groups: Vec<usize> = levels.iter().map(|level| level.groups.len()).collect();
        assert_eq!((groups[0], levels.len()), (2, 4), "{groups:?}");
        assert!(levels[0].smt && levels[1].prefers_siblings && !levels[0].prefers_siblings);
    }

    #[test]
    fn only_a_level_of_nodes_allows_an_imbalance() {
        let allowed = |machine| -> Vec<Option<usize>> {
            of(machine, 0).iter().map(|level| level.imb_numa_nr).collect()
        };
        assert_eq!(allowed("epyc-2s"), [None, None, None, Some(8)]);
        assert_eq!(allowed("snb-4s"), [None, None, Some(2)]);
        assert_eq!(allowed("dual-quad"), [None, None], "two packages, one node");
        let tries: Vec<u32> = of("epyc-2s", 0).iter().map(Level::failures_max).collect();
        assert_eq!(tries, [0, 1, 1, 2]);
    }
}
