//! The weights of tasks in cgroups: `src/bpf/shares.h`.

use proptest::prelude::*;

use super::{
    MS, native_counts_for, native_group_runnable_part, native_part, native_runnable_part,
    native_weight_of,
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
    native_counts_for(weight, ALWAYS).into()
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
fn short_lived_tasks_one_after_the_other_count_as_one() {
    let epoch_ns = 1 << 30;
    let each = native_runnable_part(2 * MS, 2 * MS, 2 * MS, EXITS);
    let all = u64::from(each) * epoch_ns / (2 * MS);
    assert!(all.abs_diff(ALWAYS.into()) < 600, "{all}");
}

#[test]
fn a_cgroup_competes_while_any_of_it_does() {
    assert_eq!(native_group_runnable_part(load_of(800), 100), ALWAYS);
    assert_eq!(native_group_runnable_part(load_of(100) / 4, 100), ALWAYS / 4);
    assert_eq!(native_group_runnable_part(0, 100), 0);
}

proptest! {
    #[test]
    fn nobody_has_more_than_its_cgroup_or_nothing(
        part in 1..=ALL, weights in prop::array::uniform2(1..=10_000u32), load in 0..1u64 << 50,
    ) {
        let own = native_part(part, weights[0], load);
        prop_assert!(own <= part && native_part(part, weights[0], load + load / 2 + 1) <= own);
        prop_assert!((1..=weights[1] * UNIT).contains(&native_weight_of(own, weights[1])));
    }
}
