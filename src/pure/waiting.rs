//! Tests of what decides whether a task waits for the active CPUs.

use super::*;

/// `struct pp_wait`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Wait {
    wait_ns: u64,
    others_ns: u64,
    run_left_ns: u64,
    running_left_ns: u64,
    room: i64,
    promised: u32,
}

/// `struct pp_queued`.
#[repr(C)]
struct Queued {
    queued_ns: *const i64,
    nr: u32,
    waiting_ns: u64,
}

/// `struct pp_candidate`.
#[repr(C)]
struct Candidate {
    util: u32,
    capacity: u32,
    is_prev: u32,
}

unsafe extern "C" {
    safe fn native_has_room(policy: &pp_policy, cpu: &Candidate, util: u32) -> i32;
    safe fn native_expected_wait(queued: &[i64; 4], class: u32, left: u64, servers: u32) -> u64;
    fn native_longest_wait(queue: &Queued, running_left: u64, run_left: u64, servers: u32) -> u64;
    safe fn native_should_wait(policy: &pp_policy, task: &Wait) -> i32;
    safe fn native_missing(util_est: u32, util: u32) -> u32;
    safe fn native_promise_left(promised: i64, dt: u64) -> i64;
}

fn waits(wait: Wait) -> bool {
    native_should_wait(&packing(4), &wait) == 1
}

#[test]
fn a_longer_run_does_not_delay_a_shorter_one() {
    let queued = [MS as i64, 0, 0, 9 * MS as i64];
    assert_eq!(native_expected_wait(&queued, native_run_class(100_000), MS, 1), 2 * MS);
    assert_eq!(native_expected_wait(&queued, native_run_class(5 * MS), MS, 1), 11 * MS);
    assert_eq!(native_expected_wait(&queued, 3, 0, 2), 5 * MS);
    assert_eq!(native_expected_wait(&[-5, 0, 0, 0], 3, 0, 1), 0, "a count gone wrong is no wait");
}

#[test]
fn runs_are_of_four_lengths() {
    let of = |us: u64| native_run_class(us * 1000);
    assert_eq!([0, 255, 256, 999, 1000, 3999, 4000].map(of), [0, 0, 1, 1, 2, 2, 3]);
}

#[test]
fn a_cpu_has_room_up_to_the_fill_level() {
    let room = |util, is_prev, of_task| {
        let cpu = Candidate { util, capacity: 500, is_prev };
        native_has_room(&packing(4), &cpu, of_task) == 1
    };
    assert!(room(300, 0, 100) && !room(300, 0, 101));
    assert!(room(400, 1, 300) && !room(401, 1, 300), "what it uses there is counted once");
    assert!(room(100, 1, 300) && !room(101, 1, 300), "it has slept, and will use more");
}

#[test]
fn a_task_that_was_promised_more_than_there_is_does_not_wait() {
    let wait = Wait { wait_ns: MS, promised: 1, room: -1, ..Wait::default() };
    assert!(!waits(wait));
    assert!(waits(Wait { room: 0, ..wait }));
    assert!(waits(Wait { promised: 0, ..wait }), "what it uses is in the demand already");
}

#[test]
fn nobody_waits_for_longer_than_the_budget() {
    let wait = Wait { wait_ns: 5 * MS, others_ns: 5 * MS, ..Wait::default() };
    assert!(waits(wait));
    assert!(!waits(Wait { wait_ns: 5 * MS + 1, ..wait }));
    assert!(!waits(Wait { others_ns: 5 * MS + 1, ..wait }), "tasks that wait already");
}

/// The longest wait when a task of `run` joins `nr` others.
fn longest(queued: [u64; 4], nr: u32, waiting_ns: u64, left: u64, run: u64, servers: u32) -> u64 {
    let queued = queued.map(|ns| ns as i64);
    let queue = Queued { queued_ns: queued.as_ptr(), nr, waiting_ns };
    // SAFETY: the array outlives the call.
    unsafe { native_longest_wait(&queue, left, run, servers) }
}

#[test]
fn the_last_one_waits_for_all_but_itself() {
    // 0.2 ms joins two of 2 ms: the last one waits for the first, and for it.
    let two = [0, 0, 4 * MS, 0];
    assert_eq!(longest(two, 2, MS, MS / 2, MS / 5, 1), MS + MS / 2 + MS / 5 + 1 + 2 * MS);
    assert_eq!(longest(two, 2, 0, 0, MS / 5, 2), (MS / 5 + 1 + 2 * MS) / 2);
    // Three of 2 ms, the first of which runs: what the third waits.
    assert_eq!(longest([0, 0, 2 * MS, 0], 1, 0, 2 * MS, 2 * MS, 1), 4 * MS + 1);
    // Of two of a class either may be the last one.
    assert_eq!(longest([0, 0, 3 * MS, 0], 1, 0, 0, 2 * MS, 1), 3 * MS);
    // A hog that joins short ones is behind them.
    assert_eq!(longest([0, MS, 0, 0], 2, 0, 0, 50 * MS, 1), MS);
}

#[test]
fn what_is_promised_decays_as_it_is_made_up_for() {
    let (est, mut util) = (512, 0);
    assert_eq!(native_missing(est, est - 10), 0, "an average goes up and down");
    let promised = i64::from(native_missing(est, util));
    assert_eq!(promised, 512);
    // Half of each ms is used, as it was before.
    for ms in 1..=64_u64 {
        util = native_util_run(util, MS / 2, 1024);
        util = native_util_decay(util, MS / 2);
        let together = native_promise_left(promised, ms * MS) + i64::from(util >> 20);
        assert!((together - 512).abs() < 12, "{together} after {ms} ms");
    }
}

#[test]
fn no_more_is_promised_than_the_largest_machine_has() {
    let max = i64::from(intf::pp_limits_PP_MAX_CPUS) * (1024 << 8);
    for promised in [max + 1, max << 5, i64::MAX] {
        assert_eq!(native_promise_left(promised, 0), max);
        assert_eq!(native_promise_left(promised, 32 << 20), native_promise_left(max, 32 << 20));
        assert_eq!(native_promise_left(-promised, 0), -max);
    }
}

#[test]
fn a_long_run_does_not_wait_for_another() {
    let wait = Wait { wait_ns: 4 * MS, run_left_ns: 50 * MS, ..Wait::default() };
    assert!(waits(wait) && waits(Wait { running_left_ns: 4 * MS, ..wait }));
    assert!(!waits(Wait { running_left_ns: 50 * MS, ..wait }));
    assert!(waits(Wait { run_left_ns: MS, running_left_ns: 50 * MS, ..wait }));
}

/// Weights of tasks in the queues of two LLCs, and what capacity their CPUs have left.
#[test]
fn an_llc_is_fuller_if_more_is_left_there_than_here() {
    let ask = |theirs: (u32, u32, u32), ours: (u32, u32)| {
        native_is_fuller(theirs.0, theirs.1, theirs.2, ours.0, ours.1)
    };
    assert_eq!(ask((5, 5, 2), (3, 2)), 1);
    assert_eq!(ask((4, 4, 2), (3, 2)), 0, "then it would be as full here as it was there");
    assert_eq!(ask((4, 4, 2), (4, 4)), 1, "of four CPUs");
    assert_eq!(ask((40, 4, 2), (12, 2)), 1, "of heavy tasks");
    assert_eq!(ask((1, 1, 0), (3, 2)), 1, "that has no active CPU");
    assert_eq!(ask((1, 1, 2), (0, 2)), 0, "nothing would be left");
    assert_eq!(ask((0, 0, 2), (0, 2)), 0);
}
