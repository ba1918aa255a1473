//! The ranked machine as BPF reads it.

use crate::bpf_intf as intf;
use crate::machine::power_model::{FLOOR_DEFAULT_PCT, PowerModel};
use crate::machine::topology::Ranks;

/// BPF keeps sets of ranks in words of this many bits.
pub const WORD_BITS: usize = intf::pp_limits_PP_WORD_BITS as usize;

fn set(ranks: &mut [u64], rank: usize) {
    ranks[rank / WORD_BITS] |= 1 << (rank % WORD_BITS);
}

/// What is uploaded before the scheduler is loaded: by the agent to the kernel, by the
/// simulator to the same code. `tick_ns` is 1 s / HZ.
pub fn of(ranks: &Ranks, tick_ns: u32, power: &PowerModel) -> Box<intf::pp_topology> {
    // SAFETY: integers alone, of which 0 is one.
    let mut topology: Box<intf::pp_topology> = Box::new(unsafe { std::mem::zeroed() });
    let cpus = ranks.cpus();
    topology.nr_ranks = cpus.len() as u32;
    topology.nr_words = cpus.len().div_ceil(WORD_BITS) as u32;
    topology.nr_free = ranks.nr_free() as u32;
    topology.efficient_end = ranks.nr_efficient() as u32;
    topology.threads_per_core = ranks.threads_per_core() as u32;
    topology.tick_ns = tick_ns;
    topology.has_cpufreq = power.has_cpufreq.into();
    for (rank, cpu) in cpus.iter().enumerate() {
        topology.cpu_of_rank[rank] = cpu.cpu as u16;
        topology.rank_of_cpu[cpu.cpu] = rank as u16;
        topology.capacity_of_rank[rank] = cpu.capacity as u16;
        let floor_pct = power.floor_pct.get(&cpu.cpu).copied().unwrap_or(FLOOR_DEFAULT_PCT);
        topology.perf_floor_of_rank[rank] = (cpu.capacity as u32 * floor_pct / 100) as u16;
        if cpu.online {
            set(&mut topology.online, rank);
        }
    }
    let siblings = ranks.next_is_sibling().into_iter().enumerate();
    siblings.filter(|&(_, is)| is).for_each(|(rank, _)| set(&mut topology.siblings, rank));
    add_kinds(&mut topology, ranks);
    add_nodes(&mut topology, ranks);
    add_llcs(&mut topology, ranks);
    add_groups(&mut topology, ranks, power.worth_waking_us);
    topology
}

fn add_kinds(topology: &mut intf::pp_topology, ranks: &Ranks) {
    let kinds = ranks.kinds();
    topology.nr_kinds = kinds.iter().max().map_or(1, |&max| max + 1) as u32;
    for (rank, &kind) in kinds.iter().enumerate() {
        let capacity = ranks.cpus()[rank].capacity as u32;
        let min = &mut topology.capacity_of_kind[kind];
        *min = if *min == 0 { capacity } else { capacity.min(*min) };
        topology.ranks_from_kind[..=kind].iter_mut().for_each(|ranks| set(ranks, rank));
    }
}

fn add_nodes(topology: &mut intf::pp_topology, ranks: &Ranks) {
    for (node, &(from, to)) in ranks.nodes().iter().enumerate() {
        topology.nr_nodes = node as u32 + 1;
        (topology.node_begin[node], topology.node_end[node]) = (from as u16, to as u16);
        (from..to).for_each(|rank| set(&mut topology.node_ranks[node], rank));
    }
}

fn add_llcs(topology: &mut intf::pp_topology, ranks: &Ranks) {
    let node_of_rank = ranks.node_of_rank();
    for (llc, &(from, to)) in ranks.llcs().iter().enumerate() {
        topology.nr_llcs = llc as u32 + 1;
        topology.node_of_llc[llc] = node_of_rank[from] as u16;
        (topology.llc_begin[llc], topology.llc_end[llc]) = (from as u16, to as u16);
        for rank in from..to {
            set(&mut topology.llc_ranks[llc], rank);
            topology.llc_of_cpu[ranks.cpus()[rank].cpu] = llc as u16;
        }
    }
}

/// A group is what shares both a kind of core and an LLC, where a run can be worth waking another of
/// its CPUs; else each CPU is one.
fn add_groups(topology: &mut intf::pp_topology, ranks: &Ranks, worth_waking_us: Option<f64>) {
    let kinds = ranks.kinds();
    // 0 says that there are no groups.
    topology.group_run_ns = worth_waking_us.map_or(0, |us| (us * 1e3) as u64 + 1);
    for (from, to) in ranks.llcs() {
        let mut end = to;
        for rank in (from..to).rev() {
            let ends = worth_waking_us.is_none() || rank + 1 < to && kinds[rank] != kinds[rank + 1];
            if ends {
                end = rank + 1;
            }
            topology.group_end[rank] = end as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::RankedCpu;

    /// Two small and two large cores in one LLC, and two large ones in another.
    fn groups(worth_waking_us: Option<f64>) -> (Vec<u16>, u64) {
        let cpus = [400, 400, 1024, 1024, 1024, 1024].into_iter().enumerate();
        let cpus = cpus.map(|(cpu, capacity)| RankedCpu {
            cpu,
            core: cpu,
            llc: cpu / 4,
            package: 0,
            node: 0,
            capacity,
            online: true,
            isolated: false,
        });
        let power = PowerModel { worth_waking_us, ..PowerModel::default() };
        let topology = of(&Ranks::of(cpus.collect()).unwrap(), 4_000_000, &power);
        (topology.group_end[..6].to_vec(), topology.group_run_ns)
    }

    #[test]
    fn a_group_is_of_one_kind_and_in_one_llc() {
        assert_eq!(groups(Some(300.0)), (vec![2, 2, 4, 4, 6, 6], 300_001));
        assert_eq!(groups(Some(0.0)).1, 1, "every run is worth it");
        assert_eq!(groups(None), (vec![1, 2, 3, 4, 5, 6], 0));
    }
}
