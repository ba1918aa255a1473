//! The weights of tasks in cgroups: `src/bpf/shares.h`.

use proptest::prelude::*;

use super::{
    MS, native_count_word, native_counts_for, native_is_share_due, native_load_counts,
    native_load_of, native_load_part, native_part, native_runnable_part, native_weight_of,
};
use crate::bpf_intf as intf;

/// A weight of 1.
const UNIT: u32 = 1 << intf::pp_limits_PP_WEIGHT_SHIFT;
/// All of what a cgroup has (PP_PART_ALL).
const ALL: u64 = 1 << 30;
/// A task that is runnable all the time (PP_RUNNABLE_ALL).
const ALWAYS: u32 = 1024;
/// `enum pp_stop`.
const GOES_ON: u32 = 0;
const SLEEPS: u32 = 1;
const EXITS: u32 = 2;

/// The load of a cgroup in which that weight competes all the time.
fn load_of(weight: u32) -> u64 {
    native_counts_for(weight, ALWAYS, 0, 0).into()
}

/// The weight of a task of nice 0 in a cgroup of weight 70 and that load.
fn weight_in(load: u64) -> u32 {
    native_weight_of(native_part(ALL, 100, load), 70)
}

#[test]
fn the_tasks_of_a_cgroup_have_its_weight_together() {
    let each = weight_in(load_of(8 * 100));
    assert!((each * 8).abs_diff(70 * UNIT) < UNIT / 2, "eight of {each}");
}

#[test]
fn a_pod_with_one_container_does_not_count_twice() {
    let container = native_part(native_part(ALL, 100, load_of(100)), 20, load_of(20));
    assert_eq!(native_weight_of(container, 20), 20 * UNIT);
}

#[test]
fn one_that_is_alone_has_all_of_it_whatever_its_own_weight() {
    for weight in [1, 15, 100, 8868] {
        assert_eq!(native_part(ALL, weight, load_of(weight)), ALL, "a task of weight {weight}");
    }
    assert_eq!(weight_in(0), 70 * UNIT, "its cgroup has just begun");
}

#[test]
fn a_long_run_counts_while_it_lasts_and_short_ones_by_their_time() {
    let part = |run, stop| native_runnable_part(run, 3 * MS, 10 * MS, stop);
    assert_eq!(part(5 * MS, GOES_ON), ALWAYS);
    assert_eq!(part(5 * MS, SLEEPS), 0);
    assert!(part(MS, SLEEPS).abs_diff(ALWAYS * 3 / 10) <= 32, "to a sixteenth");
    assert_eq!(native_runnable_part(MS, 3 * MS, 3 * MS, GOES_ON), ALWAYS, "it has waited");
    assert_eq!(native_runnable_part(MS, 3 * MS, 0, GOES_ON), ALWAYS, "another CPU's clock");
}

#[test]
fn a_task_is_counted_when_that_has_changed_what_others_have() {
    let due = |run, runnable, since, stop| native_is_share_due(run, runnable, since, stop) == 1;
    let us = MS / 1000;
    assert!(due(0, 4 * MS, 4 * MS, GOES_ON) && !due(3 * MS, 4 * MS - 1, 99 * MS, GOES_ON));
    assert!(due(MS, MS, 100 * MS, SLEEPS), "the others may have gone");
    assert!(due(5 * MS, MS, MS, SLEEPS), "a long run has ended");
    assert!(!due(5 * MS, MS, MS, GOES_ON) && !due(3 * MS, MS, MS, SLEEPS));
    assert!(due(0, 50 * us, MS, EXITS) && !due(0, 50 * us - 1, MS, EXITS));
}

#[test]
fn short_lived_tasks_one_after_the_other_count_as_one() {
    let epoch_ns = 1 << 30;
    let each = native_runnable_part(2 * MS, 2 * MS, 2 * MS, EXITS);
    let all = u64::from(each) * epoch_ns / (2 * MS);
    assert!(all.abs_diff(ALWAYS.into()) < 600, "{all}");
}

/// The load in which these compete, each with its weight and for its part of the time.
fn load_with(members: &[(u32, u32)]) -> i64 {
    let word = |&(weight, part)| native_count_word(native_counts_for(weight, part, 0, 0), part);
    members.iter().map(|member| native_load_of(word(member))).sum()
}

#[test]
fn a_cgroup_competes_while_any_of_it_does() {
    let part = |members: &[(u32, u32)]| native_load_part(load_with(members));
    assert_eq!(part(&[(100, ALWAYS); 8]), ALWAYS);
    assert_eq!(part(&[(8867, ALWAYS / 16), (100, ALWAYS)]), ALWAYS, "a light hog is enough");
    assert_eq!(part(&[(8867, ALWAYS / 16), (100, ALWAYS / 4)]), ALWAYS / 16 + ALWAYS / 4);
    assert_eq!(part(&[(100, 1); 7]), 7, "short-lived ones");
    assert_eq!(part(&[]), 0);
    assert_eq!(part(&[(10_000, ALWAYS); 20_000]), ALWAYS);
    assert_eq!(native_load_part(-1), 0, "other CPUs have not added yet what this one subtracts");
    assert_eq!(native_load_counts(-1), 0);
}

/// What who sleeps most of the time does not take is for the others, whatever its weight: it counts for as much as
/// leaves it its part of the time.
#[test]
fn one_that_sleeps_leaves_the_rest_to_the_others() {
    let hog = load_of(100);
    let left = |weight, part| {
        let counts = u64::from(native_counts_for(weight, part, hog, ALWAYS));
        native_part(ALL, 100, hog + counts) as f64 / ALL as f64
    };
    for (weight, part, expected) in [
        (8867, ALWAYS / 16, 0.94),
        (8867, ALWAYS / 2, 0.5),
        (335, ALWAYS / 2, 0.5),
        (100, ALWAYS / 4, 0.8),
    ] {
        let left = left(weight, part);
        assert!((left - expected).abs() < 0.01, "{left} beside {weight} for {part}");
    }
    // One that is runnable all the time has its weight.
    assert!((left(8867, ALWAYS) - 100.0 / 8967.0).abs() < 0.001);
    // Two that both sleep, and do not count each other down.
    let others = native_counts_for(100, ALWAYS / 4, 0, 0);
    let heavy = native_counts_for(8867, ALWAYS / 4, others.into(), ALWAYS / 4);
    assert!(heavy.abs_diff(100 * ALWAYS / 3) < 100, "{heavy}");
    assert_eq!(native_counts_for(100, ALWAYS / 4, heavy.into(), ALWAYS / 4), others);
}

proptest! {
    #[test]
    fn a_part_is_never_more_than_all(
        times in prop::array::uniform3(0..10_000 * MS), stop in GOES_ON..=EXITS,
    ) {
        let [run, runnable, since] = times;
        prop_assert!(native_runnable_part(run, runnable, since, stop) <= ALWAYS);
    }

    #[test]
    fn a_load_is_the_sum_of_what_all_count_for(
        members in prop::collection::vec((1..=10_000u32, 0..=ALWAYS), 0..40),
    ) {
        let counts: u64 =
            members.iter().map(|&(weight, part)| u64::from(native_counts_for(weight, part, 0, 0) & !7)).sum();
        let parts: u32 = members.iter().map(|&(_, part)| part).sum();
        let load = load_with(&members);
        prop_assert_eq!(native_load_counts(load), counts);
        prop_assert_eq!(native_load_part(load), parts.min(ALWAYS));
    }

    #[test]
    fn nobody_has_more_than_its_cgroup_or_nothing(
        part in 1..=ALL, weights in prop::array::uniform2(1..=10_000u32), load in 0..1u64 << 50,
    ) {
        let own = native_part(part, weights[0], load);
        prop_assert!(own <= part && native_part(part, weights[0], load + load / 2 + 1) <= own);
        prop_assert!((1..=weights[1] * UNIT).contains(&native_weight_of(own, weights[1])));
    }
}
