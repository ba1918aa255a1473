// SPDX-License-Identifier: GPL-2.0-only

//! Which tasks that wake take the CPU from the one that runs.

use super::*;

#[test]
fn preemption_is_for_the_shorter_the_earlier_and_not_at_once() {
    let ask = |gap, run, left, ran| {
        native_should_preempt(&Contest { gap, ..contest(ran, left, 0) }, run, left + ran)
    };
    assert_eq!(ask(-1, MS / 10, 3 * MS, 2 * MS), 1);
    assert_eq!(ask(1, MS / 10, 3 * MS, 2 * MS), 0, "due later");
    assert_eq!(ask(-1, 4 * MS, 3 * MS, 2 * MS), 0, "longer than what is left");
    assert_eq!(ask(-1, MS / 10, MS / 2, 2 * MS), 0, "nearly done");
}

/// What `ran` for so long on a CPU that none took for `taken`, and has `left` to go.
fn contest(ran: u64, left: u64, taken: u64) -> Contest {
    Contest {
        ran,
        left,
        taken,
        weight: 1024,
        waking_weight: 1024,
        own: 0,
        asynchronous: 1,
        gap: -1,
    }
}

#[test]
fn what_has_just_begun_is_let_run() {
    let ask = |contest: Contest| native_may_preempt(&contest);
    assert_eq!(ask(contest(MS / 10, 5 * MS, 3 * MS)), 1);
    assert_eq!(ask(contest(MS / 10, 2 * MS, 3 * MS)), 0, "it may be done soon");
    assert_eq!(ask(contest(MS, 2 * MS, MS)), 1);
    assert_eq!(ask(contest(MS / 10, 5 * MS, 2 * MS)), 0, "the CPU has just been taken");
    let own = |left, taken| ask(Contest { own: 1, ..contest(MS / 10, left, taken) });
    assert_eq!(own(2 * MS, MS / 2), 1, "by one with no other CPU");
    assert_eq!(own(5 * MS, MS / 5), 0);
}

/// How often one that wakes each `every` ns for a second takes the CPU from what has just begun, at this tick.
fn cuts(every: u64, tick: u64, bound: u32) -> usize {
    let mut taken = 0;
    let wakes = (1000 * MS..2000 * MS).step_by(every as usize);
    wakes
        .filter(|&now| {
            let left = Contest { own: bound, ..contest(MS / 100, 50 * MS, now - taken) };
            let cut = native_may_preempt(&left) == 1;
            if cut {
                taken = native_taken(taken, now, tick, bound as i32);
            }
            cut
        })
        .count()
}

#[test]
fn pauses_that_were_not_used_count_for_a_tick() {
    assert_eq!(cuts(MS / 2, 4 * MS, 1), 2000, "each that comes after a pause");
    assert_eq!(
        cuts(MS / 5, 4 * MS, 1),
        4000 + 15,
        "and a pause each on average, after those of a tick"
    );
    assert_eq!(cuts(MS / 5, MS, 1), 4000 + 3);
    assert_eq!(cuts(MS / 5, 4 * MS, 0), 334, "where another CPU may be free, none but the last");
    assert_eq!(native_taken(7 * MS, 9 * MS, 4 * MS, 0), 9 * MS);
    assert_eq!(native_taken(9 * MS - 1, 9 * MS, 4 * MS, 1), 9 * MS, "one that made way at once");
    assert_eq!(native_taken(7 * MS, 8 * MS, 4 * MS, 1), 7 * MS + MS / 4);
    assert_eq!(native_taken(0, 100 * MS, 4 * MS, 1), 96 * MS + MS / 4);
}

/// The turn of what runs began 3 ms of its virtual time before it is due.
#[test]
fn what_has_a_slice_to_go_makes_way_for_who_is_owed() {
    let ask = |gap: i64, left| native_may_preempt(&Contest { gap, ..contest(MS / 100, left, 0) });
    let turn = native_vtime_delta(3 * MS, 1024) as i64;
    assert_eq!(ask(-turn - 1, 3 * MS), 1, "due before the turn began");
    assert_eq!(ask(-turn, 3 * MS), 0, "due in it");
    assert_eq!(ask(-turn - 1, 3 * MS - 1), 0, "done in less than a slice");
}

#[test]
fn a_light_task_keeps_none_waiting() {
    let ask = |weight, ran| {
        let contest = Contest { weight, ..contest(ran, 50 * MS, 0) };
        native_may_preempt(&contest)
    };
    assert_eq!(ask(1024, MS / 2), 0);
    assert_eq!(ask(512, MS / 2), 1, "of half the weight");
    assert_eq!(ask(15, MS / 60), 1, "of nice 19");
    assert_eq!(ask(15, MS / 100), 0);
    assert_eq!(ask(2048, MS / 2), 0, "of twice the weight");
    let short = |weight| Contest { weight, ..contest(MS / 2, 2 * MS, 0) };
    assert_eq!(native_may_preempt(&short(1024)), 0, "nor what is done within a slice");
    assert_eq!(native_may_preempt(&short(512)), 1);
}

#[test]
fn short_runs_are_left_alone_until_they_are_long() {
    let preempt = |expected, ran| native_should_preempt(&contest(ran, MS, 0), MS / 10, expected);
    assert_eq!(preempt(MS / 10, 3 * MS / 2), 0, "a batch of messages");
    assert_eq!(preempt(MS / 10, 2 * MS), 1, "it has become long");
    assert_eq!(preempt(2 * MS, MS), 1, "it was expected to be long");
}

/// Of six times less weight, a ms that the one that wakes waits is worth six.
#[test]
fn the_short_run_of_a_light_task_is_long_to_a_heavy_one() {
    let ask = |weight, expected: u64, left| {
        let of = Contest { weight, ..contest(expected - left, left, 0) };
        native_should_preempt(&of, MS / 10, expected)
    };
    assert_eq!(ask(1024, 3 * MS / 2, MS), 0);
    assert_eq!(ask(170, 3 * MS / 2, MS), 1);
    assert_eq!(ask(170, MS / 4, MS / 5), 0, "a sixth of 2 ms is long");
    assert_eq!(ask(170, 3 * MS / 2, MS / 5), 1, "and a sixth of a ms left to go");
    assert_eq!(ask(170, 3 * MS / 2, MS / 7), 0, "not so little");
    assert_eq!(ask(2048, 3 * MS / 2, MS), 0, "the heavier one");
    assert_eq!(ask(15, MS / 5, MS / 5), 1, "a tenth at least");
    assert_eq!(ask(15, MS / 6, MS / 6), 0);
}
