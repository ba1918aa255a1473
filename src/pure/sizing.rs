//! Tests of src/bpf/sizing.h.

use super::*;

/// The sizes of nodes of as many ranks each, and the ceiling.
fn sized(
    policy: &pp_policy,
    capacity: &[u32],
    threads: u32,
    demands: &[u64],
) -> (Vec<Sizing>, usize) {
    let (nr, nr_nodes) = (capacity.len(), demands.len());
    let node = |(node, &demand): (usize, &u64)| {
        let begin = ((node * nr).div_ceil(nr_nodes)) as u32;
        Sizing { demand, needed: begin, packed: begin, ..Sizing::default() }
    };
    let mut nodes: Vec<Sizing> = demands.iter().enumerate().map(node).collect();
    let (capacity, nodes_at) = (capacity.as_ptr(), nodes.as_mut_ptr());
    // SAFETY: the lengths belong to the pointers.
    let ceiling =
        unsafe { native_size(policy, capacity, nr as u32, threads, nodes_at, nr_nodes as u32) };
    (nodes, ceiling as usize)
}

/// The needed prefix of each node, and the ceiling.
fn size_nodes(
    policy: &pp_policy,
    capacity: &[u32],
    threads: u32,
    demands: &[u64],
) -> (Vec<usize>, usize) {
    let (nodes, ceiling) = sized(policy, capacity, threads, demands);
    (nodes.iter().map(|node| node.needed as usize).collect(), ceiling)
}

/// The same on a machine of one node.
fn size(policy: &pp_policy, capacity: &[u32], demand: u64) -> (usize, usize) {
    size_smt(policy, capacity, demand, 1)
}

/// The same of cores with `threads` threads.
fn size_smt(policy: &pp_policy, capacity: &[u32], demand: u64, threads: u32) -> (usize, usize) {
    let (ends, ceiling) = size_nodes(policy, capacity, threads, &[demand]);
    (ends[0], ceiling)
}

#[test]
fn what_runs_on_a_node_stays_there_as_long_as_it_has_room() {
    let ends = |demands: [u64; 2]| size_nodes(&packing(8), &[1024; 8], 1, &demands).0;
    assert_eq!(ends([300, 300]), [1, 5], "one CPU each, although one would carry all");
    assert_eq!(ends([300, 20]), [1, 4], "next to nothing is not worth a CPU");
    assert_eq!(ends([0, 300]), [1, 5]);
    assert_eq!(ends([20, 20]), [1, 4]);
    assert_eq!(ends([3500, 0]), [4, 5], "what is too much for a node goes to the next");
    assert_eq!(ends([300, 4000]), [2, 8], "or to the first");
    assert_eq!(ends([4000, 4000]), [4, 8]);
    let ceiling = size_nodes(&packing(5), &[1024; 8], 1, &[4000, 4000]);
    assert_eq!(ceiling, (vec![4, 5], 5));
    let offline = size_nodes(&packing(8), &[0, 0, 0, 0, 1024, 1024, 1024, 1024], 1, &[0, 0]);
    assert_eq!(offline.0, [0, 5], "the first node has gone");
    let all = pp_policy { all_active: 1, ..packing(8) };
    assert_eq!(size_nodes(&all, &[1024; 8], 1, &[0, 0]).0, [4, 8]);
}

#[test]
fn what_would_be_packed_is_one_cpu_or_more() {
    let all = pp_policy { all_active: 1, ..packing(8) };
    let packed = |capacity: [u32; 8], demands: [u64; 2]| {
        let (nodes, _) = sized(&all, &capacity, 1, &demands);
        [nodes[0].packed, nodes[1].packed]
    };
    assert_eq!(packed([1024; 8], [0, 0]), [1, 4]);
    assert_eq!(packed([1024; 8], [0, 1000]), [1, 6]);
    assert_eq!(packed([0, 1024, 1024, 1024, 1024, 1024, 1024, 1024], [0, 0]), [2, 4]);
    assert_eq!(packed([0, 0, 0, 0, 1024, 1024, 1024, 1024], [0, 0]), [0, 5]);
}

#[test]
fn a_node_is_given_up_after_a_second_with_next_to_nothing() {
    // Its first CPU, rank 4, is offline.
    let node = Sizing { first: 6, ..Sizing::default() };
    let mut since = 0;
    let mut hold = |end, needed, ms| native_hold_node(&node, 4, end, needed, ms * MS, &mut since);
    assert_eq!(hold(7, 6, 1000), 6, "it is needed");
    assert_eq!(hold(7, 4, 2000), 6);
    assert_eq!(hold(6, 4, 2999), 6);
    assert_eq!(hold(6, 7, 2999), 7);
    assert_eq!(hold(7, 4, 3000), 6, "that begins again");
    assert_eq!(hold(6, 4, 4000), 4);
    assert_eq!(hold(4, 4, 4001), 4, "and stays so");
    assert_eq!(native_hold_node(&node, 4, 4, 4, 9000 * MS, &mut 0), 4, "it had none");
    let gone = Sizing::default();
    assert_eq!(native_hold_node(&gone, 4, 7, 4, 5000 * MS, &mut since), 4, "all are offline");
}

#[test]
fn a_second_thread_of_a_core_carries_nothing() {
    let policy = packing(8);
    assert_eq!(size_smt(&policy, &[1024; 8], 800, 4), (1, 8));
    assert_eq!(size_smt(&policy, &[1024; 8], 900, 4), (5, 8), "the next core");
    assert_eq!(size_smt(&policy, &[1024; 8], 3000, 4), (8, 8), "all there is");
}

#[test]
fn a_ceiling_is_one_of_cores_however_many_threads_they_have() {
    let all = pp_policy { all_active: 1, ..packing(2) };
    for policy in [packing(2), all] {
        assert_eq!(size_smt(&policy, &[1024; 8], 8000, 2), (4, 4));
        assert_eq!(size_smt(&policy, &[1024, 0].repeat(4), 8000, 2), (3, 3), "SMT is off");
        assert_eq!(size_smt(&policy, &[0, 1024].repeat(4), 8000, 2), (4, 4));
        assert_eq!(size_smt(&policy, &[0, 0, 1024, 1024, 1024, 0, 1024], 8000, 2), (5, 5));
    }
}

#[test]
fn room_is_what_the_needed_cpus_take_beyond_the_demand() {
    let room = |demand| {
        let (nodes, _) = sized(&packing(2), &[1000; 4], 1, &[demand]);
        native_size_room(&nodes[0])
    };
    assert_eq!([0, 300, 800, 801, 1600, 1900].map(room), [800, 500, 0, 799, 0, -300]);
}

#[test]
fn two_spills_are_evidence_for_one_more_cpu() {
    let grown = |spills| native_needed_with_spills(1, 2, 6, spills);
    assert_eq!([0, 1, 2, 3, 4, 100].map(grown), [1, 1, 3, 3, 4, 6], "not beyond the ceiling");
    assert_eq!(native_needed_with_spills(5, 2, 6, 2), 5, "utilization asks for more");
}

#[test]
fn the_set_grows_at_once_and_shrinks_after_the_hold() {
    let mut since = 0;
    assert_eq!(native_next_active(2, 3, 4, 1000 * MS, 64 * MS, &mut since), 3);
    assert_eq!(native_next_active(3, 1, 4, 1000 * MS, 64 * MS, &mut since), 3);
    assert_eq!(native_next_active(3, 1, 4, 1063 * MS, 64 * MS, &mut since), 3);
    assert_eq!(native_next_active(3, 1, 4, 1064 * MS, 64 * MS, &mut since), 1);
    // A higher need in between begins the hold again.
    assert_eq!(native_next_active(3, 1, 4, 2000 * MS, 64 * MS, &mut since), 3);
    assert_eq!(native_next_active(3, 3, 4, 2060 * MS, 64 * MS, &mut since), 3);
    assert_eq!(native_next_active(3, 1, 4, 2070 * MS, 64 * MS, &mut since), 3);
    // A lower ceiling is the user's will, not a guess.
    assert_eq!(native_next_active(4, 1, 2, 3000 * MS, 64 * MS, &mut since), 1);
}

#[test]
fn a_light_load_needs_one_cpu_and_a_full_one_all() {
    let policy = packing(4);
    assert_eq!(size(&policy, &[1024; 4], 290), (1, 4));
    assert_eq!(size(&policy, &[1024; 4], 820), (2, 4));
    assert_eq!(size(&policy, &[1024; 4], 4096), (4, 4));
    assert_eq!(size(&packing(2), &[1024; 4], 4096), (2, 2), "the ceiling holds");
    assert_eq!(size(&policy, &[0, 1024, 0, 1024], 0), (2, 4), "rank 0 is offline");
}

proptest! {
    #[test]
    fn the_prefix_is_the_smallest_that_fits(
        capacity in prop::collection::vec(prop_oneof![Just(0u32), 1..=1024u32], 1..100),
        demand in 0..40_000u64, max in 1..100u32,
    ) {
        let policy = packing(max);
        let (needed, ceiling) = size(&policy, &capacity, demand);
        let carried = |n: usize| -> u64 {
            capacity[..n].iter().map(|&c| u64::from(c) * 80 / 100).sum()
        };
        prop_assert!(needed <= ceiling && ceiling <= capacity.len());
        let online = capacity[..ceiling].iter().filter(|&&c| c > 0).count();
        prop_assert!(online <= max as usize);
        prop_assert!(needed == ceiling || carried(needed) >= demand);
        if needed > 0 {
            prop_assert!(capacity[needed - 1] > 0, "it ends at an online CPU");
            let one_less = capacity[..needed - 1].iter().filter(|&&c| c > 0).count();
            prop_assert!(one_less == 0 || carried(needed - 1) < demand);
        } else {
            prop_assert!(capacity.iter().all(|&c| c == 0));
        }
    }

    #[test]
    fn nodes_carry_together_what_all_carry(
        demands in prop::collection::vec(0..5000u64, 1..5), per_node in 1..6usize,
    ) {
        let capacity = vec![1000; demands.len() * per_node];
        let (ends, ceiling) = size_nodes(&packing(64), &capacity, 1, &demands);
        prop_assert_eq!(ceiling, capacity.len());
        let active = |node: usize| ends[node] - node * per_node;
        let all: usize = (0..demands.len()).map(active).sum();
        let demand: u64 = demands.iter().sum();
        prop_assert!(all == ceiling || all as u64 * 800 >= demand);
        for (node, &demand) in demands.iter().enumerate() {
            // Its own, but for next to nothing, as far as it has room.
            let own = (demand.div_ceil(800) as usize).min(per_node);
            prop_assert!(demand < 51 || active(node) >= own, "{node}: {ends:?}");
        }
    }
}
