//! Tests of the decisions: `src/bpf/signal.h` and `policy.h`, compiled natively
//! by build.rs. Unit tests for what is promised, property tests for what must
//! hold for any input.

mod pick;
mod sizing;

use proptest::prelude::*;

use crate::bpf::intf::{self, pp_policy};

const WORDS: usize = 8;
/// A set of ranks.
type Set = [u64; WORDS];
const EVERYWHERE: Set = [u64::MAX; WORDS];
const MS: u64 = 1_000_000;
const FULL: u32 = 1024 << 20;

/// `struct pp_view`.
#[repr(C)]
struct View<'a> {
    idle: &'a Set,
    siblings: &'a Set,
    allowed: &'a Set,
    among: &'a Set,
    near: &'a Set,
    node: Option<&'a Set>,
    nr_words: u32,
    threads: u32,
    whole_only: u32,
}

/// `struct pp_sizing`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sizing {
    demand: u64,
    most: u64,
    carried: u64,
    first: u32,
    needed: u32,
    packed: u32,
    pad: u32,
}

/// `struct pp_need`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Need {
    workload: u32,
    util: u32,
    kind: u32,
}

#[link(name = "powerpack_pure", kind = "static")]
unsafe extern "C" {
    safe fn native_util_decay(util: u32, dt: u64) -> u32;
    safe fn native_util_run(util: u32, dt: u64, capacity: u32) -> u32;
    safe fn native_util_est(est: u32, util: u32) -> u32;
    safe fn native_run_est(est: u64, run: u64) -> u64;
    safe fn native_latency_bucket(ns: u64) -> u32;
    safe fn native_run_class(run: u64) -> u32;
    safe fn native_run_left(run: u64, ran: u64) -> u64;
    safe fn native_expected_wait(queued: &[i64; 4], class: u32, left: u64, servers: u32) -> u64;
    safe fn native_deadline(vtime: u64, run: u64, weight: u32) -> u64;
    safe fn native_vtime_join(vtime: u64, now: u64) -> u64;
    safe fn native_should_preempt(
        deadline: u64,
        run: u64,
        curr: u64,
        left: u64,
        expected: u64,
        ran: u64,
    ) -> i32;
    safe fn native_slice_over(expected: u64, ran: u64, short_waits: i32) -> i32;
    safe fn native_effective_weight(weight: u32, cgroup: u32) -> u32;
    safe fn native_next_active(
        end: u32,
        needed: u32,
        ceiling: u32,
        now: u64,
        hold: u64,
        since: &mut u64,
    ) -> u32;
    safe fn native_hold_node(
        node: &Sizing,
        begin: u32,
        end: u32,
        needed: u32,
        now: u64,
        since: &mut u64,
    ) -> u32;
    safe fn native_needed_with_spills(needed: u32, end: u32, ceiling: u32, spills: u32) -> u32;
    safe fn native_should_wait(policy: &pp_policy, task: &Wait) -> i32;
    safe fn native_is_overdue(
        policy: &pp_policy,
        queued: &[i64; 4],
        servers: u32,
        waiting: u64,
        budgets: u32,
    ) -> i32;
    safe fn native_fit_kind(util: u32, min: u32, max: u32, of_kind: &[u32; 4], nr: u32) -> u32;
    safe fn native_scope_of(policy: &pp_policy, need: &Need) -> u32;
    safe fn native_perf_wish(cpu_util: u32, task_util: u32, race: i32, capacity: u32) -> u32;
    safe fn native_perf_is_news(wish: u32, told: u32) -> i32;
    safe fn native_pick_idle(policy: &pp_policy, view: &View, prev: u32) -> i32;
    safe fn native_pick_surplus(view: &View) -> i32;
    safe fn native_whole_cores(idle: u64, siblings: u64, threads: u32) -> u64;
    safe fn native_ranks_below(end: u32, word: u32) -> u64;
    fn native_size(
        policy: &pp_policy,
        capacity: *const u32,
        nr_ranks: u32,
        threads: u32,
        nodes: *mut Sizing,
        nr_nodes: u32,
    ) -> u32;
}

/// `struct pp_wait`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Wait {
    wait_ns: u64,
    run_left_ns: u64,
    running_left_ns: u64,
    room: u64,
    util_est: u32,
    util: u32,
}

fn packing(max_ranks: u32) -> pp_policy {
    pp_policy {
        latency_budget_ns: 5 * MS,
        shrink_hold_ns: 64 * MS,
        mode: 1,
        fill_pct: 80,
        min_ranks: 1,
        max_ranks,
        idle_core_first: 0,
        sync_stacks: 1,
        whole_llcs: 0,
        small_util: 1024,
        least_kind: 0,
        pad: 0,
    }
}

fn has(set: &Set, rank: i32) -> bool {
    set[rank as usize / 64] >> (rank % 64) & 1 == 1
}

fn bits(ranks: &[usize]) -> Set {
    let mut set = [0; WORDS];
    for rank in ranks {
        set[rank / 64] |= 1 << (rank % 64);
    }
    set
}

fn range(from: u32, to: u32) -> Set {
    let word = |w| native_ranks_below(to, w) & !native_ranks_below(from, w);
    std::array::from_fn(|w| word(w as u32))
}

#[test]
fn half_is_forgotten_in_a_half_life() {
    let half = native_util_decay(FULL, 32 << 20);
    assert!(half.abs_diff(FULL / 2) <= 2, "{half}");
    assert_eq!(native_util_decay(FULL, 3600 * 1000 * MS), 0);
    assert_eq!(native_util_decay(FULL, 0), FULL);
}

#[test]
fn a_periodic_task_settles_at_its_share() {
    let mut util = 0;
    for _ in 0..200 {
        util = native_util_run(util, 3 * MS, 1024);
        util = native_util_decay(util, 17 * MS);
    }
    let share = f64::from(util) / f64::from(FULL);
    assert!((0.12..0.17).contains(&share), "3 ms in 20 is 15 %, found {share}");
}

#[test]
fn tiny_runs_are_not_lost() {
    let mut util = 0;
    for _ in 0..100_000 {
        util = native_util_run(util, 1_000, 1024);
        util = native_util_decay(util, 9_000);
    }
    let share = f64::from(util) / f64::from(FULL);
    assert!((0.095..0.105).contains(&share), "1 us in 10 is 10 %, found {share}");
}

#[test]
fn a_sleeper_is_remembered_and_a_fall_is_slow() {
    assert_eq!(native_util_est(100, 500), 500);
    assert_eq!(native_util_est(500, 100), 400);
    assert_eq!((native_run_est(100, 300), native_run_est(300, 100)), (200, 250));
}

#[test]
fn a_latency_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
    let last = u64::from(intf::pp_limits_PP_LATENCY_BUCKETS - 1);
    for ns in (0..200_000_000).step_by(997).chain([1, 1000, 1001, 64_000, 64_001, u64::MAX - 999]) {
        let expected = (0..last).find(|n| ns <= 1000 << n).unwrap_or(last);
        assert_eq!(u64::from(native_latency_bucket(ns)), expected, "{ns} ns");
    }
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
fn a_task_remembered_to_be_big_needs_room() {
    let wait = Wait { wait_ns: MS, util_est: 900, room: 500, ..Wait::default() };
    let waits = |wait: Wait| native_should_wait(&packing(4), &wait) == 1;
    assert!(!waits(wait));
    assert!(waits(Wait { util: 500, ..wait }), "that is in the demand already");
    assert!(!waits(Wait { wait_ns: 6 * MS, util_est: 0, ..wait }), "too long");
}

#[test]
fn a_long_run_does_not_wait_for_another() {
    let wait = Wait { wait_ns: 4 * MS, run_left_ns: 50 * MS, room: 500, ..Wait::default() };
    let waits = |wait: Wait| native_should_wait(&packing(4), &wait) == 1;
    assert!(waits(wait) && waits(Wait { running_left_ns: 4 * MS, ..wait }));
    assert!(!waits(Wait { running_left_ns: 50 * MS, ..wait }));
    assert!(waits(Wait { run_left_ns: MS, running_left_ns: 50 * MS, ..wait }));
}

#[test]
fn a_task_fits_the_smallest_kind_with_a_margin() {
    let fit = |util, min, max| native_fit_kind(util, min, max, &[400, 700, 1024, 0], 3);
    assert_eq!([0, 320, 321, 560, 561, 1024].map(|util| fit(util, 0, 1024)), [0, 0, 1, 1, 2, 2]);
    assert_eq!((fit(10, 400, 1024), fit(10, 401, 1024)), (0, 1), "uclamp_min, without a margin");
    assert_eq!((fit(1000, 0, 400), fit(1000, 800, 300)), (0, 0), "uclamp_max has the last word");
    assert_eq!(native_fit_kind(1024, 1024, 1024, &[1024, 0, 0, 0], 1), 0);
}

#[test]
fn a_word_of_the_user_goes_before_capacity_and_capacity_before_size() {
    let (packing, small) = (packing(4), pp_policy { small_util: 205, ..packing(4) });
    let spread = pp_policy { min_ranks: 4, least_kind: 2, ..packing };
    let need = Need::default();
    let (pack, at_once, efficient) = (
        Need { workload: intf::pp_workload_PP_WORKLOAD_PACK, ..need },
        Need { workload: intf::pp_workload_PP_WORKLOAD_SPREAD, ..need },
        Need { workload: intf::pp_workload_PP_WORKLOAD_EFFICIENT, util: 1000, kind: 2 },
    );
    let kind = |kind| intf::pp_scope_PP_SCOPE_KIND + kind;
    for (policy, need, scope) in [
        (packing, need, intf::pp_scope_PP_SCOPE_ACTIVE),
        (packing, pack, intf::pp_scope_PP_SCOPE_ACTIVE),
        (spread, pack, intf::pp_scope_PP_SCOPE_PACKED),
        (packing, at_once, intf::pp_scope_PP_SCOPE_USABLE),
        (packing, efficient, intf::pp_scope_PP_SCOPE_EFFICIENT),
        (small, Need { util: 205, ..need }, intf::pp_scope_PP_SCOPE_ACTIVE),
        (small, Need { util: 206, ..need }, intf::pp_scope_PP_SCOPE_USABLE),
        (small, Need { util: 206, ..pack }, intf::pp_scope_PP_SCOPE_ACTIVE),
        (packing, Need { kind: 1, ..need }, kind(1)),
        (spread, Need { kind: 1, ..need }, kind(2)),
        (spread, Need { kind: 1, ..pack }, kind(1)),
    ] {
        assert_eq!(native_scope_of(&policy, &need), scope);
    }
}

#[test]
fn a_queue_is_overdue_with_much_work_or_if_it_is_never_empty() {
    let overdue = |queued_ms: u64, servers, waiting_ms: u64, budgets| {
        let queued = [(queued_ms * MS) as i64, 0, 0, 0];
        native_is_overdue(&packing(4), &queued, servers, waiting_ms * MS, budgets) == 1
    };
    assert!(!overdue(14, 1, 1, 3) && overdue(16, 1, 1, 3) && !overdue(16, 2, 1, 3));
    assert!(!overdue(1, 1, 14, 3) && overdue(1, 1, 16, 3));
    assert!(!overdue(4, 1, 4, 1) && overdue(6, 1, 4, 1) && overdue(4, 1, 6, 1));
}

#[test]
fn a_cpu_is_wished_what_it_needs_and_not_less_than_is_worth_it() {
    assert_eq!(native_perf_wish(0, 0, 0, 1000), 550);
    assert_eq!(native_perf_wish(600, 100, 0, 1000), 750, "a quarter more");
    assert_eq!(native_perf_wish(100, 700, 0, 1000), 875, "what the task needed before");
    assert_eq!(native_perf_wish(0, 0, 1, 1000), 1000, "others wait, or nothing is known");
    assert_eq!(native_perf_wish(900, 0, 0, 400), 400);
    let news = |wish, told| native_perf_is_news(wish, told) == 1;
    assert!(news(564, 500) && news(500, 564) && !news(563, 500) && !news(500, 500));
}

#[test]
fn preemption_is_for_the_shorter_the_earlier_and_not_at_once() {
    let ask = |deadline, run, left, ran| {
        native_should_preempt(deadline, run, 100 * MS, left, left + ran, ran)
    };
    assert_eq!(ask(99 * MS, MS / 10, 3 * MS, 2 * MS), 1);
    assert_eq!(ask(101 * MS, MS / 10, 3 * MS, 2 * MS), 0, "due later");
    assert_eq!(ask(99 * MS, 4 * MS, 3 * MS, 2 * MS), 0, "longer than what is left");
    assert_eq!(ask(99 * MS, MS / 10, MS / 2, 2 * MS), 0, "nearly done");
    assert_eq!(ask(99 * MS, MS / 10, 3 * MS, MS / 10), 0, "only just begun");
}

#[test]
fn short_runs_are_left_alone_until_they_are_long() {
    let preempt = |expected, ran| native_should_preempt(0, MS / 10, MS, MS, expected, ran);
    assert_eq!(preempt(MS / 10, 3 * MS / 2), 0, "a batch of messages");
    assert_eq!(preempt(MS / 10, 2 * MS), 1, "it has become long");
    assert_eq!(preempt(2 * MS, MS), 1, "it was expected to be long");
}

#[test]
fn a_slice_ends_sooner_for_short_tasks_and_only_if_it_is_long() {
    assert_eq!(native_slice_over(20 * MS, MS / 10, 1), 1, "short ones wait for a long run");
    assert_eq!(native_slice_over(20 * MS, 2 * MS, 0), 0, "hogs among themselves");
    assert_eq!(native_slice_over(MS / 10, MS, 1), 0, "short among short");
    assert_eq!(native_slice_over(MS / 10, 2 * MS, 1), 1);
    assert_eq!(native_slice_over(MS / 10, 3 * MS, 0), 1, "the slice is used up");
}

#[test]
fn an_outrun_estimate_doubles() {
    assert_eq!(native_run_left(3 * MS, MS), 2 * MS);
    assert_eq!(native_run_left(3 * MS, 4 * MS), 4 * MS);
}

#[test]
fn cgroup_weights_multiply_within_bounds() {
    assert_eq!(native_effective_weight(100, 100), 100);
    assert_eq!(native_effective_weight(11, 1000), 110);
    assert_eq!(native_effective_weight(1, 1), 1);
    assert_eq!(native_effective_weight(8868, 10000), 10000);
}

proptest! {
    #[test]
    fn the_average_stays_in_range(
        util in 0..=FULL, steps in prop::collection::vec((any::<bool>(), 0..200 * MS), 1..50),
        capacity in 1..=1024u32,
    ) {
        let mut util = util;
        for (runs, dt) in steps {
            let before = util;
            util = if runs { native_util_run(util, dt, capacity) } else { native_util_decay(util, dt) };
            prop_assert!(util <= FULL);
            let bound = capacity << 20;
            prop_assert!(!runs || util <= before.max(bound) && util >= before.min(bound));
        }
    }

    #[test]
    fn the_average_converges(util in 0..=FULL, capacity in 1..=1024u32) {
        let settled = native_util_run(util, 2000 * MS, capacity);
        prop_assert!(settled.abs_diff(capacity << 20) <= 1);
    }

    #[test]
    fn an_earlier_or_heavier_task_is_due_no_later(
        vtime in 0..1u64 << 60, run in 0..100 * MS, weight in 1..=10_000u32,
    ) {
        let due = native_deadline(vtime, run, weight);
        prop_assert!(due > vtime);
        prop_assert!(native_deadline(vtime + 1, run, weight) > due);
        prop_assert!(weight == 10_000 || native_deadline(vtime, run, weight + 1) <= due);
    }

    #[test]
    fn a_sleeper_is_at_most_the_lag_behind(vtime: u64, now in 1u64 << 40..1 << 60) {
        let vtime = vtime >> 3;
        let joined = native_vtime_join(vtime, now);
        prop_assert!(joined >= vtime && joined >= now - 3 * MS);
        prop_assert!(joined == vtime || joined == now - 3 * MS);
    }
}
