//! The machine as sysfs describes it (through scx_utils), and the ranks: the order
//! in which its CPUs are filled.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::catch_unwind;

use anyhow::{Context, Result, anyhow, bail, ensure};
use powerpack_workload::parse_cpu_list;
use scx_utils::Topology;
use scx_utils::compat::ROOT_PREFIX;

use crate::bpf_intf as intf;
use crate::machine::energy_model;

/// Of equal cores this many are one efficient one: what stays on those must not fill the
/// machine, and on four cores one is the minimum.
const EFFICIENT_DIV: usize = 4;

/// A CPU and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedCpu {
    /// The kernel's number.
    pub cpu: usize,
    pub core: usize,
    pub llc: usize,
    pub package: usize,
    pub node: usize,
    /// 1..=1024, of the fastest CPU.
    pub capacity: usize,
    /// Was online when the topology was read.
    pub online: bool,
    /// The user keeps it free (`isolcpus`, `nohz_full`): only tasks bound to it run there.
    pub isolated: bool,
}

/// All CPUs that can ever be online, in the order in which they are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    cpus: Vec<RankedCpu>,
}

impl Ranks {
    /// Reads the topology and ranks it. `SCX_SYSFS_PREFIX` makes it read a
    /// recorded tree. Fails when sysfs cannot be read or the machine is too large.
    pub fn read() -> Result<Self> {
        let possible = read_cpu_list("possible")?;
        let mut isolated = read_cpu_list("isolated").unwrap_or_default();
        isolated.extend(read_cpu_list("nohz_full").unwrap_or_default());
        let topology = read_topology()?;
        let mut cpus: Vec<RankedCpu> = topology
            .all_cpus
            .values()
            .map(|cpu| RankedCpu {
                cpu: cpu.id,
                core: cpu.core_id,
                llc: cpu.llc_id,
                package: cpu.package_id,
                node: cpu.node_id,
                capacity: cpu.cpu_capacity.clamp(1, intf::pp_limits_PP_CAPACITY_MAX as usize),
                online: true,
                isolated: isolated.contains(&cpu.id),
            })
            .collect();
        ensure!(
            !cpus.is_empty(),
            "the memory nodes in {}/sys/devices/system/node have no CPU that is online: nothing can be ranked",
            *ROOT_PREFIX
        );
        order(&mut cpus, &energy_model::by_cpu());
        append_offline(&mut cpus, &possible, &isolated);
        cpus.sort_by_key(|cpu| cpu.isolated);
        Self::checked(cpus)
    }

    /// Ranks CPUs that are all online. Fails when there are too many.
    pub fn of(mut cpus: Vec<RankedCpu>) -> Result<Self> {
        order(&mut cpus, &BTreeMap::new());
        Self::checked(cpus)
    }

    fn checked(cpus: Vec<RankedCpu>) -> Result<Self> {
        let max = intf::pp_limits_PP_MAX_CPUS as usize;
        let ranks = Ranks { cpus };
        if ranks.cpus.len() > max || ranks.cpus.iter().any(|cpu| cpu.cpu >= max) {
            bail!("this machine has more than the {max} CPUs that scx_powerpack can handle");
        }
        Ok(ranks)
    }

    /// The CPUs, rank 0 first.
    pub fn cpus(&self) -> &[RankedCpu] {
        &self.cpus
    }

    /// Number of ranks that tasks free to move may use: all but the isolated ones, which
    /// come last.
    pub fn nr_free(&self) -> usize {
        self.cpus.iter().filter(|cpu| !cpu.isolated).count()
    }

    /// Number of cores that were online, and are not isolated.
    pub fn nr_cores(&self) -> usize {
        self.core_starts().len()
    }

    /// How many ranks the first `cores` cores have.
    pub fn ranks_in_cores(&self, cores: usize) -> usize {
        let usable = self.cpus.iter().filter(|cpu| cpu.online && !cpu.isolated).count();
        self.core_starts().get(cores).copied().unwrap_or(usable)
    }

    /// The ranks at which the online cores begin, but for isolated ones.
    fn core_starts(&self) -> Vec<usize> {
        let online = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.online && !cpu.isolated);
        let mut starts = Vec::new();
        let mut last = None;
        for (rank, cpu) in online {
            if last != Some((cpu.package, cpu.core)) {
                starts.push(rank);
                last = Some((cpu.package, cpu.core));
            }
        }
        starts
    }

    /// The rank of the first CPU of each rank's core.
    pub fn core_of_rank(&self) -> Vec<usize> {
        let starts = self.core_starts();
        (0..self.cpus.len())
            .map(|rank| {
                if !self.cpus[rank].online || self.cpus[rank].isolated {
                    return rank;
                }
                starts[starts.partition_point(|&start| start <= rank) - 1]
            })
            .collect()
    }

    /// By rank: whether the next one is on the same core.
    pub fn next_is_sibling(&self) -> Vec<bool> {
        let cores = self.core_of_rank();
        (0..cores.len()).map(|rank| cores.get(rank + 1) == Some(&cores[rank])).collect()
    }

    /// The max number of SMT siblings of a core.
    pub fn threads_per_core(&self) -> usize {
        let cores = self.core_of_rank();
        (0..cores.len()).map(|rank| rank - cores[rank] + 1).max().unwrap_or(1)
    }

    /// By rank: which kind of core it is, smallest first. Offline CPUs count as of
    /// the largest kind, and so do kinds beyond those that the BPF side distinguishes.
    pub fn kinds(&self) -> Vec<usize> {
        let online = self.cpus.iter().filter(|cpu| cpu.online);
        let mut capacities: Vec<usize> = online.map(|cpu| cpu.capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let kind_max = intf::pp_limits_PP_MAX_KINDS as usize - 1;
        self.cpus.iter().map(|cpu| kind_of(cpu.capacity, &capacities).min(kind_max)).collect()
    }

    /// How many of the lowest ranks are the efficient ones: the smallest kind of core
    /// or, where all are of one kind, a quarter of the cores.
    pub fn nr_efficient(&self) -> usize {
        let kinds = self.kinds();
        let smallest = kinds.iter().take_while(|&&kind| kind == kinds[0]).count();
        let quarter = self.ranks_in_cores(self.nr_cores().div_ceil(EFFICIENT_DIV));
        if kinds.iter().max() == Some(&kinds[0]) { quarter } else { smallest }
    }

    /// The LLCs as half-open spans of ranks, in rank order. One that memory nodes share
    /// (sub-NUMA clusters) counts as several.
    pub fn llcs(&self) -> Vec<(usize, usize)> {
        spans_of(&self.cpus, |cpu| (cpu.llc, cpu.node))
    }

    /// The memory nodes as half-open spans of the ranks that are not isolated, in rank
    /// order. Just one where the ranks of a node are not neighbours, as with several kinds
    /// of cores, or where there are more of them than the BPF side knows.
    pub fn nodes(&self) -> Vec<(usize, usize)> {
        let free = &self.cpus[..self.nr_free()];
        let spans = spans_of(free, |cpu| cpu.node);
        let nodes: BTreeSet<usize> = free.iter().map(|cpu| cpu.node).collect();
        if spans.len() == nodes.len() && nodes.len() <= intf::pp_limits_PP_MAX_NODES as usize {
            spans
        } else {
            vec![(0, free.len())]
        }
    }

    /// By rank: which of the nodes it is of. Isolated CPUs are of the last one.
    pub fn node_of_rank(&self) -> Vec<usize> {
        let nodes = self.nodes();
        let node = |rank| nodes.partition_point(|&(_, end)| end <= rank).min(nodes.len() - 1);
        (0..self.cpus.len()).map(node).collect()
    }
}

/// Neighbours that are of the same group, as half-open spans.
fn spans_of<K: PartialEq>(
    cpus: &[RankedCpu],
    group: impl Fn(&RankedCpu) -> K,
) -> Vec<(usize, usize)> {
    let mut begin = 0;
    let groups = cpus.chunk_by(|one, other| group(one) == group(other));
    groups
        .map(|cpus| {
            begin += cpus.len();
            (begin - cpus.len(), begin)
        })
        .collect()
}

/// Most efficient kind of core first: by the energy that its work takes, if the kernel has
/// an energy model, else the smaller one. Within a kind fill a node, a package and an LLC
/// before the next, and a core before the next; the one with the fastest core comes first
/// (firmware prefers some: ITMT, amd-pstate), as a single busy CPU is that one. The number
/// decides between equals, so that CPU 0, which takes most interrupts anyway, comes first.
fn order(cpus: &mut [RankedCpu], energy_of_cpu: &BTreeMap<usize, u64>) {
    let mut capacities: Vec<usize> = cpus.iter().map(|cpu| cpu.capacity).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let kinds: BTreeMap<usize, usize> =
        cpus.iter().map(|cpu| (cpu.cpu, kind_of(cpu.capacity, &capacities))).collect();
    let kind = |cpu: &RankedCpu| kinds[&cpu.cpu];
    // The energy model is of use only if it knows all.
    let known = cpus.iter().all(|cpu| energy_of_cpu.contains_key(&cpu.cpu));
    let energy = |cpu: &RankedCpu| if known { energy_of_cpu[&cpu.cpu] } else { 0 };
    let energies = max_by(cpus, kind, energy);
    let nodes = max_by(cpus, |cpu| (kind(cpu), cpu.node), |cpu| cpu.capacity);
    let packages = max_by(cpus, |cpu| (kind(cpu), cpu.package), |cpu| cpu.capacity);
    let llcs = max_by(cpus, |cpu| (kind(cpu), cpu.llc), |cpu| cpu.capacity);
    let cores = max_by(cpus, |cpu| (cpu.package, cpu.core), |cpu| cpu.capacity);
    cpus.sort_by_key(|cpu| {
        let kind = kind(cpu);
        let node = (Reverse(nodes[&(kind, cpu.node)]), cpu.node);
        let package = (Reverse(packages[&(kind, cpu.package)]), cpu.package);
        let llc = (Reverse(llcs[&(kind, cpu.llc)]), cpu.llc);
        let core = (Reverse(cores[&(cpu.package, cpu.core)]), cpu.core);
        (energies[&kind], kind, node, package, llc, core, cpu.cpu)
    });
}

/// The largest `value` of each group of CPUs.
fn max_by<K: Ord, V: Ord + Copy>(
    cpus: &[RankedCpu],
    group: impl Fn(&RankedCpu) -> K,
    value: impl Fn(&RankedCpu) -> V,
) -> BTreeMap<K, V> {
    let mut best_of = BTreeMap::new();
    for cpu in cpus {
        let best = best_of.entry(group(cpu)).or_insert(value(cpu));
        *best = value(cpu).max(*best);
    }
    best_of
}

/// Which kind of core a capacity belongs to, smallest first. Kinds are a gap of
/// an eighth apart: preferred cores (ITMT, amd-pstate) of one kind differ by
/// less from their neighbours, big from little ones by more.
fn kind_of(capacity: usize, sorted: &[usize]) -> usize {
    sorted.windows(2).filter(|pair| pair[1] <= capacity && pair[1] * 8 > pair[0] * 9).count()
}

/// CPUs that are offline come last: nothing is known of where they are, so they
/// are taken for full-size cores next to the last one.
fn append_offline(cpus: &mut Vec<RankedCpu>, possible: &[usize], isolated: &[usize]) {
    let Some(last) = cpus.last().cloned() else { return };
    for &cpu in possible {
        if cpus.iter().all(|known| known.cpu != cpu) {
            let core = cpus.iter().map(|known| known.core).max().unwrap_or(0) + 1;
            let capacity = intf::pp_limits_PP_CAPACITY_MAX as usize;
            let (online, isolated) = (false, isolated.contains(&cpu));
            cpus.push(RankedCpu { cpu, core, capacity, online, isolated, ..last.clone() });
        }
    }
}

/// A list of CPUs that the kernel keeps: `possible`, `isolated`, ..
/// The CPUs of a list in sysfs, as `online`. Fails if it cannot be read.
pub fn read_cpu_list(name: &str) -> Result<Vec<usize>> {
    let path = format!("{}/sys/devices/system/cpu/{name}", *ROOT_PREFIX);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_cpu_list(text.trim()).with_context(|| format!("cannot understand {path}"))
}

/// scx_utils panics on some trees it cannot read; the user gets a sentence.
fn read_topology() -> Result<Topology> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let read = catch_unwind(Topology::new);
    std::panic::set_hook(hook);
    read.map_err(|_| anyhow!("unexpected contents"))
        .and_then(|topology| topology)
        .with_context(|| format!("cannot read the topology from {}/sys", *ROOT_PREFIX))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A machine of equal cores behind one LLC.
    pub fn flat(cores: usize, threads: usize) -> Ranks {
        machine(1, cores, threads)
    }

    /// Packages with an LLC each; siblings numbered as Linux on x86 does, the
    /// first threads of all cores before the second ones.
    pub fn machine(packages: usize, cores: usize, threads: usize) -> Ranks {
        let mut cpus = Vec::new();
        for cpu in 0..packages * cores * threads {
            let core = cpu % (packages * cores);
            let package = core / cores;
            cpus.push(RankedCpu {
                cpu,
                core,
                llc: package,
                package,
                node: package,
                capacity: 1024,
                online: true,
                isolated: false,
            });
        }
        order(&mut cpus, &BTreeMap::new());
        Ranks { cpus }
    }

    fn numbers(ranks: &Ranks) -> Vec<usize> {
        ranks.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    #[test]
    fn a_core_is_filled_before_the_next_and_an_llc_before_the_next() {
        let ranks = machine(2, 2, 2);
        assert_eq!(numbers(&ranks), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(ranks.llcs(), [(0, 4), (4, 8)]);
        assert_eq!(ranks.core_of_rank(), [0, 0, 2, 2, 4, 4, 6, 6]);
        assert_eq!(ranks.threads_per_core(), 2);
        assert_eq!((ranks.nr_cores(), ranks.ranks_in_cores(3)), (4, 6));
    }

    #[test]
    fn small_cores_come_first() {
        let mut cpus = flat(4, 1).cpus;
        cpus[0].capacity = 1000;
        cpus[2].capacity = 410;
        cpus[3].capacity = 400;
        order(&mut cpus, &BTreeMap::new());
        assert_eq!(numbers(&Ranks { cpus }), [2, 3, 1, 0], "by kind, the faster of a kind first");
    }

    #[test]
    fn offline_cpus_come_last_and_are_not_counted_as_cores() {
        let mut cpus = flat(2, 1).cpus;
        append_offline(&mut cpus, &[0, 1, 2, 3], &[3]);
        let ranks = Ranks::checked(cpus).unwrap();
        assert_eq!(numbers(&ranks), [0, 1, 2, 3]);
        assert_eq!((ranks.nr_cores(), ranks.ranks_in_cores(2)), (2, 2));
        assert_eq!(ranks.llcs(), [(0, 4)]);
        assert_eq!(ranks.nr_free(), 3, "one that is kept free stays so when it comes");
    }

    #[test]
    fn a_machine_too_large_is_refused() {
        assert!(Ranks::checked(flat(1025, 1).cpus).is_err());
        assert!(Ranks::checked(flat(1024, 1).cpus).is_ok());
        assert!(Ranks::checked(machine(1024, 1, 1).cpus).is_ok(), "a cache for each CPU");
    }

    #[test]
    fn cpu_lists_parse() {
        assert_eq!(parse_cpu_list("0-2,5,7-8").unwrap(), [0, 1, 2, 5, 7, 8]);
        for bad in ["", "a", "1-", "-"] {
            assert!(parse_cpu_list(bad).is_err(), "'{bad}' was accepted");
        }
    }
}
