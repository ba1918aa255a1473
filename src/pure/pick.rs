//! Tests of src/bpf/pick.h, and of which tasks may be moved at all (scope.h).

use super::*;

#[test]
fn a_whole_idle_core_comes_before_a_sibling() {
    let spread = pp_policy { idle_core_first: 1, ..packing(8) };
    let view = View {
        idle: &bits(&[1, 4, 5]),
        siblings: &bits(&[0, 2, 4, 6]),
        allowed: &EVERYWHERE,
        among: &range(0, 8),
        near: &range(0, 4),
        node: None,
        idle_words: 0,
        nr_words: 1,
        threads: 2,
        whole_only: 0,
    };
    let pick = |prev| native_pick_idle(&spread, &view, prev);
    assert_eq!(pick(1), 4, "although rank 1 is idle and was used before");
    assert_eq!(pick(5), 5);
    let halves = View { idle: &bits(&[1, 3]), whole_only: 1, ..view };
    assert_eq!(native_pick_idle(&spread, &halves, 1), -1, "rather none than half a core");
}

#[test]
fn a_memory_node_is_left_only_if_nothing_is_idle_there() {
    let view = View {
        idle: &bits(&[0, 1, 5, 6]),
        siblings: &bits(&[0, 4, 6]),
        allowed: &EVERYWHERE,
        among: &range(0, 8),
        near: &bits(&[2, 3]),
        node: Some(&range(4, 8)),
        idle_words: 0,
        nr_words: 1,
        threads: 2,
        whole_only: 0,
    };
    let policy = packing(8);
    let pick = |view: &View| (native_pick_idle(&policy, view, 2), native_pick_surplus(view));
    assert_eq!(pick(&view), (5, 5), "half a core rather than one of another node");
    assert_eq!(pick(&View { idle: &bits(&[0, 1]), ..view }), (0, 0));
    assert_eq!(pick(&View { node: None, ..view }), (0, 0));
}

#[test]
fn of_those_that_are_alike_the_lowest_rank_is_picked_on_a_large_machine_too() {
    let idle = bits(&[70, 130, 200, 400]);
    let view = View {
        idle: &idle,
        siblings: &bits(&[]),
        allowed: &EVERYWHERE,
        among: &EVERYWHERE,
        near: &range(0, 8),
        node: None,
        idle_words: in_use(&idle),
        nr_words: WORDS as u32,
        threads: 1,
        whole_only: 0,
    };
    let pick = |view: &View| native_pick_idle(&packing(512), view, 2);
    assert_eq!(pick(&view), 70);
    assert_eq!(pick(&View { node: Some(&range(0, 64)), ..view }), 70, "the node has none");
    assert_eq!(pick(&View { node: Some(&range(100, 512)), ..view }), 130);
}

#[test]
fn a_task_is_crowded_if_its_core_has_another_one() {
    // Two cores of two threads: 0 and 1, 2 and 3.
    let crowded = |idle, rank: u32| native_is_crowded(idle, 0b0101, 2, 1 << rank) == 1;
    assert!(!crowded(0b0101, 1) && !crowded(0b0110, 0) && !crowded(0b0111, 3));
    assert!(crowded(0b1100, 0) && crowded(0b1100, 1) && crowded(0b0001, 3));
}

#[test]
fn words_without_a_bit_are_passed_over() {
    let from = |word| native_word_in_use(0b1000_0010, 8, word);
    assert_eq!([0, 1, 2, 7, 8].map(from), [1, 1, 7, 7, 8]);
    assert_eq!(native_word_in_use(0, 8, 0), 8);
    assert_eq!(native_word_in_use(0, 1, 0), 0, "the only word is always looked at");
}

#[test]
fn migration_is_off_beyond_what_the_asking_program_adds() {
    // With PREEMPT_RCU, and before 6.18, one level of the current task is not its own.
    for (levels, current, prologue, off) in
        [(0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 1, 0), (2, 1, 1, 1), (1, 1, 0, 1), (0, 1, 0, 0)]
    {
        assert_eq!(native_is_migration_off(levels, current, prologue), off, "{levels} {current}");
    }
}

#[test]
fn the_prologues_levels_are_the_least_ever_seen() {
    // By a task of the kernel's own, and by one that holds a lock as it is boosted no more.
    assert_eq!([1, 2, 1].iter().fold(1, |known, &seen| native_prologue_levels(known, seen)), 1);
    assert_eq!([0, 1, 3].iter().fold(1, |known, &seen| native_prologue_levels(known, seen)), 0);
}

proptest! {
    /// What was added is taken back whole.
    #[test]
    fn what_a_task_has_added_is_in_one_word(
        queue in 0..2048u32, class in 0..4u32, ns in 1..3_000_001u32, efficient in 0..2u32, timer in 0..65u32,
        weight in 1..1u32 << 21,
    ) {
        let word = native_added_word(&Added { queue, class, ns, efficient, timer, weight });
        let parts = [native_added_queue, native_added_class, native_added_ns, native_added_efficient];
        prop_assert_eq!(parts.map(|part| part(word)), [queue, class, ns, efficient]);
        prop_assert!(word != 0);
        prop_assert_eq!(native_waiting_word(word), u64::from(weight) << 32 | 1);
        let other = native_added_word(&Added { queue, class, ns, efficient, timer: timer + 1, weight });
        prop_assert_ne!(word, other, "whose it is");
    }

    #[test]
    fn a_hold_is_another_one_than_that_before(nr: u16, limit in 1..4096u32) {
        let hold = native_hold(nr, limit);
        prop_assert_eq!(native_hold_limit(hold), limit);
        prop_assert!(hold != native_hold(nr.wrapping_add(1), limit) && hold != 0);
    }

    #[test]
    fn the_next_rank_is_the_first_one_all_round(set: Set, rank in 0..512i32, few: bool) {
        let ranks = if few { 64 } else { 512 };
        let rank = rank % ranks;
        let next = native_next_rank(&set, ranks as u32 / 64, rank as u32);
        let expected = (rank..ranks).chain(0..rank).find(|&rank| has(&set, rank));
        prop_assert_eq!(next, expected.unwrap_or(-1));
        prop_assert_eq!(native_next_rank(&[0; WORDS], ranks as u32 / 64, rank as u32), -1);
    }

    #[test]
    fn a_decision_stays_in_the_affinity_mask_and_the_active_set(
        idle: Set, allowed: Set, prev in 0..512u32,
        from in 0..512u32, len in 1..64u32, nr in 1..=512u32, core_first: bool,
    ) {
        let policy = pp_policy { idle_core_first: core_first.into(), ..packing(512) };
        // Cores of two: a rank and the one whose number differs in bit 0.
        let siblings = [0x5555_5555_5555_5555; WORDS];
        let core = |r: i32| has(&idle, r) && has(&idle, r ^ 1);
        let near = range(from, (from + len).min(512));
        let among = range(0, nr);
        let view = View {
            idle: &idle, siblings: &siblings, allowed: &allowed, among: &among, near: &near, node: None,
            idle_words: in_use(&idle), nr_words: WORDS as u32, threads: 2, whole_only: 0,
        };
        let rank = native_pick_idle(&policy, &view, prev);
        let fits = |r: i32| has(&idle, r) && has(&allowed, r);
        if rank >= 0 {
            prop_assert!(rank < nr as i32 && fits(rank));
            let cores = core_first && (0..nr as i32).any(|r| fits(r) && core(r));
            let best = |r: i32| fits(r) && (!cores || core(r));
            prop_assert!(best(rank), "a wholly idle core was overlooked");
            prop_assert!(rank == prev as i32 || prev >= nr || !best(prev as i32));
            let nearer = (0..nr as i32).any(|r| best(r) && has(&near, r));
            prop_assert!(rank == prev as i32 || !nearer || has(&near, rank));
        } else {
            prop_assert!((0..nr as i32).all(|r| !fits(r)), "an idle CPU was overlooked");
        }
        let surplus = native_pick_surplus(&View { among: &range(nr, 400), ..view });
        let whole = (nr as i32..400).find(|&r| fits(r) && core(r));
        let first = whole.or_else(|| (nr as i32..400).find(|&r| fits(r)));
        prop_assert_eq!(surplus, first.unwrap_or(-1));
    }

    #[test]
    fn a_core_is_idle_when_all_its_threads_are(
        sizes in prop::collection::vec(1..=8u32, 1..64), idle: u64,
    ) {
        let mut expected = 0;
        let (mut siblings, mut begin) = (0, 0);
        for size in sizes.into_iter().filter(|&size| size > 0) {
            let end = (begin + size).min(64);
            let core = range(begin, end)[0];
            siblings |= if end > begin { core & !(1 << (end - 1)) } else { 0 };
            expected |= if idle & core == core { core } else { 0 };
            begin = end;
        }
        let used = range(0, begin)[0];
        prop_assert_eq!(native_whole_cores(idle & used, siblings, 8), expected);
    }

    #[test]
    fn a_range_is_the_ranks_in_it(from in 0..520u32, to in 0..520u32) {
        let set = range(from, to);
        prop_assert!((0..512).all(|r| has(&set, r) == (r as u32 >= from && (r as u32) < to)));
    }
}
