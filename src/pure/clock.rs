//! Virtual time: `src/bpf/clock.h`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    MS, Rival, native_clock_pass, native_clock_share, native_common_lead, native_curr_deadline,
    native_deadline, native_front_for, native_is_starving, native_is_worth_moving,
    native_own_passes, native_queue_weight, native_rival_gap, native_running_weight,
    native_starving_pause, native_vtime_delta, native_vtime_join, native_vtime_move,
    native_vtime_slept, native_vtime_wake, native_wake_ahead,
};
use crate::bpf_intf as intf;

const SLICE_NS: u64 = 3 * MS;
const TICK_NS: u64 = 4 * MS;
/// A task of weight 1, in the units of shares.h: nice 0 is 100.
const UNIT: u32 = 1 << intf::pp_limits_PP_WEIGHT_SHIFT;

fn lag(clock: u64, vtime: u64) -> i64 {
    clock.wrapping_sub(vtime).cast_signed()
}

/// As one that was away joins a queue.
fn join(vtime: u64, clock: u64, weight: u32) -> u64 {
    native_vtime_join(vtime, clock, weight, TICK_NS, SLICE_NS)
}

/// Tasks that compete in one queue of one CPU, each turn a tick long: what each has used
/// after `turns`, and the longest wait of each, in turns.
fn share(weights: &[u32], turns: u64, start: u64) -> (Vec<u64>, Vec<u64>) {
    let mut vtimes = vec![start; weights.len()];
    let (mut used, mut since) = (vec![0; weights.len()], vec![0; weights.len()]);
    let (mut longest, mut clock) = (vec![0; weights.len()], start);
    for turn in 0..turns {
        let due = |&task: &usize| {
            let deadline = native_deadline(vtimes[task], SLICE_NS, weights[task]);
            deadline.wrapping_sub(start)
        };
        let next = (0..weights.len()).min_by_key(due).unwrap();
        let before = clock;
        clock = native_clock_pass(clock, vtimes[next]);
        let step = native_vtime_delta(SLICE_NS + TICK_NS, weights[next]);
        assert!(lag(clock, before) <= step.cast_signed(), "the clock has jumped");
        vtimes[next] = vtimes[next].wrapping_add(native_vtime_delta(TICK_NS, weights[next]));
        vtimes[next] = join(vtimes[next], clock, weights[next]);
        used[next] += 1;
        longest[next] = longest[next].max(turn - since[next]);
        since[next] = turn + 1;
    }
    (used, longest)
}

#[test]
fn a_sleeper_is_owed_a_slice_of_its_own() {
    let (clock, long_ago) = (1000 * MS, 0);
    assert_eq!(join(long_ago, clock, 100 * UNIT), clock - 3 * MS);
    assert_eq!(join(long_ago, clock, 1000 * UNIT), clock - 3 * MS / 10);
    assert_eq!(join(clock - MS, clock, 100 * UNIT), clock - MS, "less is kept");
}

#[test]
fn a_task_that_was_alone_owes_a_turn_at_most() {
    let clock = 1000 * MS;
    assert_eq!(join(clock + 900 * MS, clock, 100 * UNIT), clock + 7 * MS);
    assert_eq!(join(clock + 900 * MS, clock, UNIT), clock + 700 * MS);
    assert_eq!(join(clock + 5 * MS, clock, 100 * UNIT), clock + 5 * MS);
}

#[test]
fn what_runs_is_owed_a_slice_by_its_queue_and_no_more() {
    let deadline = |vtime: u64, run: u64, weight: u32| {
        let due = native_deadline(vtime, run, weight * UNIT);
        native_curr_deadline(due, 1000 * MS, run, weight * UNIT)
    };
    assert_eq!(deadline(999 * MS, 20 * MS, 100), 1002 * MS, "less is kept");
    assert_eq!(deadline(400 * MS, 20 * MS, 100), 1000 * MS, "a slice late, and asks for one");
    assert_eq!(deadline(400 * MS, 2 * MS, 100), 999 * MS, "one that asks for less");
    assert_eq!(deadline(400 * MS, 20 * MS, 1), 1000 * MS, "the clock has gone on for 600 ms");
    assert_eq!(deadline(800 * MS, 20 * MS, 1), 1100 * MS, "a light one may be owed that much");
}

#[test]
fn lag_is_kept_from_queue_to_queue() {
    let moved = native_vtime_move(7 * MS, 10 * MS, 500 * MS);
    assert_eq!(moved, 497 * MS);
    assert_eq!(native_vtime_move(moved, 500 * MS, 10 * MS), 7 * MS);
}

#[test]
fn a_lead_of_some_turns_is_kept_and_no_more() {
    let turns = |nr: i64| nr * (SLICE_NS + TICK_NS).cast_signed();
    assert_eq!(native_common_lead(turns(3), 100 * UNIT, TICK_NS), turns(3));
    assert_eq!(native_common_lead(turns(-3), 100 * UNIT, TICK_NS), turns(-3));
    assert_eq!(native_common_lead(turns(300), 100 * UNIT, TICK_NS), turns(8), "they drifted apart");
    assert_eq!(native_common_lead(turns(-300), 1000 * UNIT, TICK_NS), turns(-8) / 10);
}

#[test]
fn what_a_light_task_is_owed_is_not_handed_on() {
    let owed = |ms: u64, of, weight| {
        let (clock, front) = (1000 * MS, (1000 - ms) * MS);
        (clock - native_front_for(clock, front, of * UNIT, weight * UNIT, TICK_NS)) / MS
    };
    assert_eq!(owed(20, 100, 100), 20, "where the last turn began");
    assert_eq!(owed(300, 100, 100), 8 * (SLICE_NS + TICK_NS) / MS, "more than it could be owed");
    assert_eq!(owed(300, 10, 10), 300, "a light one by one like it");
    assert_eq!(owed(27, 10, 100), 0, "the slice of a light one less that of a heavy one: 30 - 3");
    assert_eq!(owed(47, 10, 100), 20, "what is more is owed to all");
    assert_eq!(owed(20, 1000, 100), 20, "a heavier one's is none more");
    assert_eq!(owed(0, 100, 100), 0);
}

#[test]
fn who_wakes_is_not_put_before_the_front() {
    let wake = |vtime, front| native_vtime_wake(vtime, 1000 * MS, front, 100 * UNIT, TICK_NS);
    assert_eq!(wake(900 * MS, 1000 * MS), 997 * MS, "a slice behind the clock");
    assert_eq!(wake(900 * MS, 998 * MS), 997 * MS, "and no more than that");
    assert_eq!(wake(900 * MS, 960 * MS), 960 * MS, "others are owed more");
    assert_eq!(wake(963 * MS, 960 * MS), 963 * MS, "less is kept");
    assert_eq!(wake(999 * MS, 960 * MS), 967 * MS, "a turn behind those");
}

#[test]
fn a_task_moves_for_half_a_slice_of_its_own() {
    let half = SLICE_NS.cast_signed() / 2;
    let moves = |lead, weight| native_is_worth_moving(lead, weight * UNIT, 4 * MS, 0) == 1;
    assert!(!moves(half, 100) && moves(half + 1, 100));
    assert!(moves(half / 2, 1000), "a heavy one for less");
    assert!(!moves(half * 2, 10), "a light one not for that");
    // Four turns, of a slice and a tick.
    let cut = |lead| native_is_worth_moving(lead, 100 * UNIT, 4 * MS, 1) == 1;
    let turns = 4 * (SLICE_NS + 4 * MS).cast_signed();
    assert!(!cut(turns) && cut(turns + 1), "one whose turn was cut short");
}

#[test]
fn the_clock_never_goes_back() {
    assert_eq!(native_clock_pass(5, 9), 9);
    assert_eq!(native_clock_pass(9, 5), 9);
    assert_eq!(native_clock_pass(u64::MAX - 1, 3), 3, "it wraps around");
}

/// The time of each, over the weight of all: as if each were served all the time, by its weight.
#[test]
fn the_clock_of_an_llc_passes_as_all_are_served_by_weight() {
    // On one CPU, the turns of three of weights 100, 300 and 600, two of which wait for the third.
    let weights = [100, 300, 600].map(|weight| weight * UNIT);
    let queue = weights.map(|weight| native_queue_weight(weight));
    let all: u32 = queue.iter().sum();
    assert_eq!(all, 640, "in units of which nice 0 is 64");
    let share = |ran, one: usize| native_clock_share(ran, weights[one], all - queue[one], 0, 1);
    assert_eq!([0, 1, 2].map(|one| share(10 * MS, one)), [MS, MS, MS]);
    // On four, of tasks of nice 0, of which as many wait.
    let average = (0..100).fold(0, |average, _| native_running_weight(average, 100 * UNIT, 8 * MS));
    // It is rounded down at each step.
    let near = |passed: u64| passed.abs_diff(MS) < MS / 200;
    assert!(near(native_clock_share(8 * MS, 100 * UNIT, 4 * 64, average, 4)), "{average}");
    assert!(native_running_weight(0, 100 * UNIT, 50 * MS) >= average, "longer than it remembers");
    // A light one there knows of the three heavy ones beside it.
    assert!(near(native_clock_share(31 * MS, 100 * UNIT, 0, 10 * average, 4)));
    assert!(native_clock_share(20 * MS, 1, 0, 0, 1) > 0, "the lightest alone");
}

#[test]
fn sleep_pays_debts_and_earns_nothing() {
    let clock = 1000 * MS;
    let slept = |vtime, lag: i64| native_vtime_slept(vtime, clock, lag);
    assert_eq!(slept(clock + MS, -2), clock + MS, "what it owes still");
    assert_eq!(slept(clock - 50 * MS, -2), clock, "and no more");
    assert_eq!(slept(clock - 50 * MS, 2), clock - 2, "what it was owed");
    assert_eq!(slept(clock - 2, 2), clock - 2, "the clock stood still");
    assert_eq!(slept(clock - 50 * MS, 1 << 62), clock - 50 * MS, "one that has not slept");
}

#[test]
fn time_is_scaled_to_the_nearest_ns() {
    assert_eq!(native_vtime_delta(4 * MS, 100 * UNIT), 4 * MS);
    assert_eq!(native_vtime_delta(4 * MS, UNIT), 400 * MS);
    let steps: BTreeMap<u64, u64> =
        (50..150).map(|ran| (ran, native_vtime_delta(ran, 10_000 * UNIT))).collect();
    assert!(steps.values().all(|&step| step == 1), "else a heavy task runs for nothing: {steps:?}");
}

fn rival(own: bool, clock: u64, deadline: u64) -> Rival {
    Rival { deadline, clock, latest: 0, weight: 100 * UNIT, own: own.into() }
}

#[test]
fn a_queue_that_was_empty_is_owed_a_slice_and_not_the_time() {
    let mut offset = 0;
    // The shared clock has gone on for a second.
    let (own, shared) = (rival(true, 0, MS), rival(false, 1000 * MS, 1003 * MS));
    let gap = native_rival_gap(&own, &shared, &mut offset);
    assert_eq!(gap, -6 * MS.cast_signed(), "a slice, and its own is shorter by one");
    // And so has the other one.
    let own = rival(true, 2000 * MS, 2003 * MS);
    assert_eq!(native_rival_gap(&own, &shared, &mut offset), 6 * MS.cast_signed());
}

#[test]
fn one_that_wakes_is_as_far_ahead_as_it_was_by_its_last_run_at_most() {
    let ahead = |ms: i64, run, weight| native_wake_ahead(ms * MS.cast_signed(), run, weight);
    assert_eq!(ahead(2, 8 * MS, 100 * UNIT), 2 * MS.cast_signed());
    assert_eq!(ahead(-5, 8 * MS, 100 * UNIT), -5 * MS.cast_signed(), "it is owed something");
    assert_eq!(ahead(50, 8 * MS, 100 * UNIT), 8 * MS.cast_signed());
    assert_eq!(ahead(50, 8 * MS, 400 * UNIT), 2 * MS.cast_signed());
}

#[test]
fn a_heavy_task_does_not_forgive_what_a_light_one_behind_it_waits_for() {
    // It wakes as the shared clock is 6 ms ahead, and is due. A tenth as heavy is the one behind it, due at 30.
    let (heavy, shared) = (rival(true, 0, MS), rival(false, 6 * MS, 7 * MS));
    let (mut forgiven, mut kept) = (0, 0);
    native_rival_gap(&heavy, &shared, &mut forgiven);
    assert_eq!(forgiven, (2 * MS).wrapping_neg(), "3 ms after it was due");
    let before_light = Rival { latest: 30 * MS, ..heavy };
    native_rival_gap(&before_light, &shared, &mut kept);
    assert_eq!(kept, 0);
    // The same of the shared one.
    let (own, heavy) = (rival(true, 6 * MS, 7 * MS), rival(false, 0, MS));
    let before_light = Rival { latest: 30 * MS, ..heavy };
    native_rival_gap(&own, &before_light, &mut kept);
    assert_eq!(kept, 0);
    // A cgroup of hardly any weight is worth no more than nice 19.
    let (own, shared) =
        (Rival { latest: 5000 * MS, ..rival(true, 0, MS) }, rival(false, 999 * MS, 1000 * MS));
    let mut capped = 0;
    native_rival_gap(&own, &shared, &mut capped);
    assert_eq!(capped, ((999 - 1 - 205) * MS).wrapping_neg());
    // It has been served: a slice again.
    let (served, shared) =
        (Rival { latest: MS, ..rival(true, 0, MS) }, rival(false, 6 * MS, 7 * MS));
    native_rival_gap(&served, &shared, &mut kept);
    assert_eq!(kept, forgiven);
}

#[test]
fn a_heavy_task_is_owed_as_much_as_those_of_the_other_queue() {
    let (own, shared) = (rival(true, 0, MS), rival(false, 6 * MS, 7 * MS));
    for weight in [100, 400] {
        let mut offset = 0;
        native_rival_gap(&Rival { weight: weight * UNIT, ..own }, &shared, &mut offset);
        assert_eq!(offset, (2 * MS).wrapping_neg(), "3 ms after it was due, of weight {weight}");
    }
    // What the last in that queue waits for is owed to that queue alone: the own one has slept.
    let mut offset = 0;
    native_rival_gap(&own, &Rival { latest: 300 * MS, ..shared }, &mut offset);
    assert_eq!(offset, (2 * MS).wrapping_neg());
}

#[test]
fn the_own_clock_passes_with_the_shared_one_but_robs_nobody() {
    // The shared one began at 40 and is at 45 by the own clock; the own one began at 47.
    let (own, shared) = (rival(true, 40 * MS, 50 * MS), rival(false, 39 * MS, 43 * MS));
    assert_eq!(native_own_passes(&own, &shared, 5 * MS), 45 * MS);
    assert_eq!(native_own_passes(&own, &shared, 9 * MS), 47 * MS);
    let light = Rival { weight: 10 * UNIT, ..shared };
    assert_eq!(native_own_passes(&own, &light, 5 * MS), 18 * MS, "it asks for a slice");
}

#[test]
fn who_starves_goes_first() {
    assert_eq!(native_is_starving(0, 849 * MS), 0);
    assert_eq!(native_is_starving(u64::MAX - MS, 850 * MS), 1);
    assert_eq!(native_is_starving(5, 3), 0, "another CPU's clock is ahead");
}

#[test]
fn of_many_who_starve_only_some_go_first() {
    assert_eq!(native_starving_pause(64, 1, 900 * MS), 0, "some dozens do not wait for a second");
    assert_eq!(native_starving_pause(100, 2, 900 * MS), 0, "nor do twice as many on two CPUs");
    assert_eq!(native_starving_pause(400, 2, 900 * MS), 24 * MS);
    assert_eq!(native_starving_pause(400, 2, 7999 * MS), 24 * MS);
    assert_eq!(native_starving_pause(400, 2, 8000 * MS), 0, "the watchdog is near");
}

proptest! {
    #[test]
    fn an_earlier_or_heavier_task_is_due_no_later(
        vtime in 0..1u64 << 60, run in 0..100 * MS, weight in 1..=10_000 * UNIT,
    ) {
        let due = native_deadline(vtime, run, weight);
        prop_assert!(due > vtime);
        prop_assert!(native_deadline(vtime + 1, run, weight) > due);
        prop_assert!(weight == 10_000 * UNIT || native_deadline(vtime, run, weight + 1) <= due);
    }

    #[test]
    fn lag_is_bounded_on_both_sides(
        vtime: u64, clock: u64, weight in 1..=10_000 * UNIT, tick in MS..10 * MS,
    ) {
        // What is further apart has wrapped around.
        let vtime = clock.wrapping_add((vtime >> 2).wrapping_sub(1 << 61));
        let joined = native_vtime_join(vtime, clock, weight, tick, SLICE_NS);
        let owed = native_vtime_delta(SLICE_NS, weight).cast_signed();
        let owes = native_vtime_delta(SLICE_NS + tick, weight).cast_signed();
        let lag = lag(clock, joined);
        prop_assert!((-owes..=owed).contains(&lag), "{}", lag);
        prop_assert!(joined == vtime || lag == owed || lag == -owes);
    }

    #[test]
    fn who_compete_share_by_their_weights(
        weights in prop::collection::vec((1..=100u32).prop_map(|weight| weight * UNIT), 2..6),
        start: u64,
    ) {
        let turns = 20_000;
        let (used, longest) = share(&weights, turns, start);
        let sum: u32 = weights.iter().sum();
        for (task, &weight) in weights.iter().enumerate() {
            let fair = turns as f64 * f64::from(weight) / f64::from(sum);
            prop_assert!((used[task] as f64 - fair).abs() <= 0.05 * fair + 2.0, "{:?}", used);
            let wait = f64::from(sum) / f64::from(weight) + weights.len() as f64;
            prop_assert!(longest[task] as f64 <= 2.0 * wait, "{:?}", longest);
        }
    }

    #[test]
    fn two_queues_of_a_cpu_are_compared_alike_from_both_sides(
        clocks in prop::array::uniform2(any::<u64>()),
        waits in prop::array::uniform2(0..700 * MS),
        weights in prop::array::uniform2(1..=10_000 * UNIT),
        offset: u64,
    ) {
        let of = |own: usize| Rival {
            deadline: clocks[own].wrapping_add(waits[own]),
            clock: clocks[own],
            latest: 0,
            weight: weights[own],
            own: own as u32,
        };
        let (mut first, mut second) = (offset, offset);
        let gap = native_rival_gap(&of(1), &of(0), &mut first);
        prop_assert_eq!(-gap, native_rival_gap(&of(0), &of(1), &mut second));
        prop_assert_eq!(first, second);
        // And again: neither is owed more than before.
        let mut again = first;
        prop_assert_eq!(native_rival_gap(&of(1), &of(0), &mut again), gap);
        prop_assert_eq!(again, first);
    }
}
