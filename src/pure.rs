//! Tests of the decisions: the headers of `src/bpf/` without `.bpf` in their name, compiled
//! natively by build.rs, with the names that `tests/native/pure.c` gives them. Unit tests for
//! what is promised, property tests for what must hold for any input.

mod bandwidth;
mod clock;
mod freq;
mod kinds;
mod pick;
mod preemption;
mod scope;
mod shares;
mod sizing;
mod waiting;

use proptest::prelude::*;

use crate::bpf_intf::{self as intf, pp_perf_peaks, pp_policy};

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
    idle_words: u64,
    nr_words: u32,
    threads: u32,
    whole_only: u32,
}

/// `struct pp_sizing`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sizing {
    demand: u64,
    carries: u64,
    carried: u64,
    first: u32,
    needed: u32,
    packed: u32,
    pad: u32,
}

/// `struct pp_rival`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Rival {
    deadline: u64,
    clock: u64,
    latest: u64,
    weight: u32,
    own: u32,
}

/// `struct pp_contest`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Contest {
    ran: u64,
    left: u64,
    taken: u64,
    weight: u32,
    waking_weight: u32,
    own: u32,
    asynchronous: u32,
    gap: i64,
}

/// `struct pp_need`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Need {
    workload: u32,
    util: u32,
    kind: u32,
    is_short: i32,
}

/// `struct pp_cpu_max`.
#[repr(C)]
struct CpuMax {
    quota_ns: u64,
    period_ns: u64,
    burst_ns: u64,
}

/// `struct pp_added`.
#[repr(C)]
struct Added {
    queue: u32,
    class: u32,
    ns: u32,
    efficient: u32,
    timer: u32,
    weight: u32,
}

#[link(name = "powerpack_pure", kind = "static")]
unsafe extern "C" {
    safe fn native_prologue_levels(known: u32, levels: u32) -> u32;
    safe fn native_added_word(added: &Added) -> u64;
    safe fn native_added_queue(word: u64) -> u32;
    safe fn native_added_class(word: u64) -> u32;
    safe fn native_added_ns(word: u64) -> u32;
    safe fn native_added_efficient(word: u64) -> u32;
    safe fn native_waiting_word(word: u64) -> u64;
    safe fn native_hold(nr: u16, limit: u32) -> u32;
    safe fn native_hold_limit(hold: u32) -> u32;
    safe fn native_front_for(clock: u64, front: u64, of: u32, weight: u32, tick: u64) -> u64;
    safe fn native_util_decay(util: u32, dt: u64) -> u32;
    safe fn native_util_run(util: u32, dt: u64, capacity: u32) -> u32;
    safe fn native_work(ran: u64, capacity: u32) -> u64;
    safe fn native_capacity_now(capacity: u32, freq: u32) -> u32;
    safe fn native_util(util_fp: u32) -> u32;
    safe fn native_util_est(est: u32, util: u32) -> u32;
    safe fn native_run_est(est: u64, run: u64) -> u64;
    safe fn native_latency_bucket(ns: u64) -> u32;
    safe fn native_run_class(run: u64) -> u32;
    safe fn native_run_left(run: u64, ran: u64) -> u64;
    safe fn native_deadline(vtime: u64, run: u64, weight: u32) -> u64;
    safe fn native_vtime_delta(ran: u64, weight: u32) -> u64;
    safe fn native_vtime_join(vtime: u64, clock: u64, weight: u32, tick: u64, owed: u64) -> u64;
    safe fn native_curr_deadline(deadline: u64, clock: u64, run: u64, weight: u32) -> u64;
    safe fn native_vtime_wake(vtime: u64, clock: u64, front: u64, weight: u32, tick: u64) -> u64;
    safe fn native_wake_ahead(ahead: i64, run: u64, weight: u32) -> i64;
    safe fn native_common_lead(lead: i64, weight: u32, tick: u64) -> i64;
    safe fn native_is_worth_moving(lead: i64, weight: u32, tick_ns: u64, cut: i32) -> i32;
    safe fn native_vtime_move(vtime: u64, from: u64, to: u64) -> u64;
    safe fn native_clock_pass(clock: u64, vtime: u64) -> u64;
    safe fn native_queue_weight(weight: u32) -> u32;
    safe fn native_running_weight(average: u32, weight: u32, ran: u64) -> u32;
    safe fn native_clock_share(ran: u64, weight: u32, waiting: u32, running: u32, of: u32) -> u64;
    safe fn native_vtime_slept(vtime: u64, clock: u64, lag: i64) -> u64;
    safe fn native_rival_gap(a: &Rival, b: &Rival, offset: &mut u64) -> i64;
    safe fn native_own_passes(own: &Rival, shared: &Rival, offset: u64) -> u64;
    safe fn native_starving_pause(nr: u32, servers: u32, waited: u64) -> u64;
    safe fn native_is_starving(since: u64, now: u64) -> i32;
    safe fn native_should_preempt(contest: &Contest, run: u64, expected: u64) -> i32;
    safe fn native_taken(taken: u64, now: u64, tick: u64, bound: i32) -> u64;
    safe fn native_may_preempt(contest: &Contest) -> i32;
    safe fn native_slice_of_ticks(tick: u64) -> u64;
    safe fn native_is_rt_long(expected: u64, since: u64) -> i32;
    safe fn native_short_waits(queued: &[i64; 4]) -> i32;
    safe fn native_slice_over(expected: u64, ran: u64, slice: u64, short_waits: i32) -> i32;
    safe fn native_is_other_limit(limit: &CpuMax, max: &CpuMax) -> i32;
    safe fn native_periods_over(began: u64, period: u64, now: u64) -> u64;
    safe fn native_budget_refill(budget: i64, periods: u64, quota: u64, burst: u64) -> i64;
    safe fn native_budget_excess(budget: i64, quota: u64, burst: u64) -> i64;
    safe fn native_grant(budget: i64, want: i64) -> i64;
    safe fn native_releases(budget: i64) -> u32;
    safe fn native_is_share_due(run: u64, runnable: u64, since: u64, stop: u32) -> i32;
    safe fn native_runnable_part(run: u64, runnable: u64, since: u64, stop: u32) -> u32;
    safe fn native_counts_for(weight: u32, part: u32, others: u64, others_part: u32) -> u32;
    safe fn native_count_word(counts: u32, part: u32) -> u32;
    safe fn native_load_of(word: u32) -> i64;
    safe fn native_load_counts(load: i64) -> u64;
    safe fn native_load_part(load: i64) -> u32;
    safe fn native_part(part: u64, weight: u32, load: u64) -> u64;
    safe fn native_weight_of(part: u64, weight: u32) -> u32;
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
    safe fn native_size_room(node: &Sizing) -> i64;
    safe fn native_needed_with_spills(needed: u32, end: u32, ceiling: u32, spills: u32) -> u32;
    safe fn native_is_fuller(theirs: u32, nr: u32, left: u32, ours: u32, own: u32) -> i32;
    safe fn native_is_overdue(
        policy: &pp_policy,
        queued: &[i64; 4],
        servers: u32,
        waiting: u64,
        budgets: u32,
    ) -> i32;
    safe fn native_is_migration_off(levels: u32, current: i32, prologue: u32) -> i32;
    safe fn native_is_kept_small(uclamp_max: u32, smallest: u32, nr_kinds: u32) -> i32;
    safe fn native_is_off_demand(scope: u32, on_surplus: i32) -> i32;
    safe fn native_larger_scope(scope: u32, kind: u32) -> u32;
    safe fn native_est_behind(est: u32, capacity: u32) -> u32;
    safe fn native_is_behind(run_ns: u64, period_ns: u64, freq: u32) -> i32;
    safe fn native_util_behind(capacity: u32, largest: u32) -> u32;
    safe fn native_fit_kind(util: u32, min: u32, max: u32, of_kind: &[u32; 4], nr: u32) -> u32;
    safe fn native_scope_of(policy: &pp_policy, need: &Need) -> u32;
    safe fn native_stacks(policy: &pp_policy, scope: u32, groups: i32, runs_on: u64) -> i32;
    safe fn native_runs_on(expected: u64, ran: u64) -> u64;
    safe fn native_perf_target(
        cpu_util: u32,
        task_util: u32,
        race: i32,
        capacity: u32,
        floor: u32,
    ) -> u32;
    safe fn native_perf_known(age_ns: u64, nr_runs: u32) -> i32;
    safe fn native_perf_others_wait(nr: i32, waiting_ns: u64) -> i32;
    safe fn native_perf_next(target: u32, current: u32, capacity: u32, peak: u32) -> u32;
    safe fn native_perf_note(peaks: &mut pp_perf_peaks, target: u32, now: u64) -> u32;
    safe fn native_perf_peak(peaks: &pp_perf_peaks, now: u64) -> u32;
    safe fn native_pick_idle(policy: &pp_policy, view: &View, prev: u32) -> i32;
    safe fn native_word_in_use(words: u64, nr_words: u32, word: u32) -> u32;
    safe fn native_next_rank(set: &Set, nr_words: u32, rank: u32) -> i32;
    safe fn native_pick_surplus(view: &View) -> i32;
    safe fn native_whole_cores(idle: u64, siblings: u64, threads: u32) -> u64;
    safe fn native_is_crowded(idle: u64, siblings: u64, threads: u32, bit: u64) -> i32;
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

fn packing(max_cores: u32) -> pp_policy {
    pp_policy {
        latency_budget_ns: 5 * MS,
        shrink_hold_ns: 64 * MS,
        mode: 1,
        fill_pct: 80,
        all_active: 0,
        max_cores,
        idle_core_first: 0,
        sync_stacks: 1,
        whole_llcs: 0,
        small_util: 1024,
        min_kind: 0,
        whole_groups: 0,
    }
}

fn has(set: &Set, rank: i32) -> bool {
    set[rank as usize / 64] >> (rank % 64) & 1 == 1
}

/// A bit for each word that is not 0.
fn in_use(set: &Set) -> u64 {
    set.iter().enumerate().map(|(word, &bits)| u64::from(bits != 0) << word).sum()
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
fn work_is_time_by_the_speed_of_the_cpu() {
    assert_eq!(native_work(3 * MS, 1024), 3 * MS);
    assert_eq!(native_work(3 * MS, 256), 3 * MS / 4);
    // A day in one go.
    assert_eq!(native_work(86_400_000 * MS, 512), 43_200_000 * MS);
}

#[test]
fn a_slow_clock_leaves_a_part_of_the_capacity() {
    assert_eq!([0, 256, 1024].map(|freq| native_capacity_now(400, freq)), [400, 100, 400]);
}

#[test]
fn utilization_is_rounded_to_the_nearest() {
    let half = FULL / 2048;
    assert_eq!(
        [0, half - 1, half, FULL - half, FULL].map(|util| native_util(util)),
        [0, 0, 1, 1024, 1024]
    );
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
fn a_slice_ends_sooner_for_short_tasks_and_only_if_it_is_long() {
    let over = |expected, ran, short| native_slice_over(expected, ran, 3 * MS, short);
    assert_eq!(over(20 * MS, MS / 10, 1), 1, "short ones wait for a long run");
    assert_eq!(over(20 * MS, 2 * MS, 0), 0, "hogs among themselves");
    assert_eq!(over(MS / 10, MS, 1), 0, "short among short");
    assert_eq!(over(MS / 10, 2 * MS, 1), 1);
    assert_eq!(over(MS / 10, 3 * MS, 0), 1, "the slice is used up");
}

#[test]
fn who_needs_less_than_a_ms_does_not_wait_for_a_slice() {
    let short = |run_ns| {
        let mut queued = [0; 4];
        queued[native_run_class(run_ns) as usize] = 1;
        native_short_waits(&queued) == 1
    };
    assert!([0, 100_000, MS / 2, MS - 1].into_iter().all(short));
    assert!(![MS, 2 * MS, 50 * MS].into_iter().any(short));
}

#[test]
fn a_cpu_is_left_to_real_time_tasks_that_keep_it_or_have_kept_it_for_long() {
    let long = |expected, since| native_is_rt_long(expected, since) == 1;
    assert!(!long(0, 0) && !long(MS / 2 - 1, MS / 2 - 1));
    assert!(long(MS / 2, 0), "they do as a rule");
    assert!(long(0, MS / 2), "they have now");
}

#[test]
fn a_slice_is_whole_ticks_and_no_more_than_three_ms() {
    for (hz, slice_us) in [(100, 3000), (250, 3000), (300, 2500), (500, 1500), (1000, 2750)] {
        let tick_ns = 1000 * MS / hz;
        let slice_ns = native_slice_of_ticks(tick_ns);
        assert_eq!(slice_ns / 1000, slice_us, "HZ={hz}");
        // One that began at a tick ends at one, though that may be early.
        let ticks = slice_ns.div_ceil(tick_ns);
        assert!(slice_ns <= ticks * tick_ns - tick_ns / 4, "HZ={hz}");
    }
}

#[test]
fn an_outrun_estimate_doubles() {
    assert_eq!(native_run_left(3 * MS, MS), 2 * MS);
    assert_eq!(native_run_left(3 * MS, 4 * MS), 4 * MS);
}
