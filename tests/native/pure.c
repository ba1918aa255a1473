/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pure headers of the BPF side, compiled natively and with names that Rust
 * can call: src/pure.rs tests the very code the kernel runs.
 */
#include "added.h"
#include "bandwidth.h"
#include "contest.h"
#include "freq.h"
#include "pick.h"
#include "scope.h"
#include "shares.h"
#include "sizing.h"

#define EXPORT(type, name, params, args)                                                           \
	type native_##name params                                                                  \
	{                                                                                          \
		return pp_##name args;                                                             \
	}

EXPORT(int, is_other_limit, (const struct pp_cpu_max *now, const struct pp_cpu_max *max),
       (&(struct pp_limit){ .quota_ns = now->quota_ns,
			    .period_ns = now->period_ns,
			    .burst_ns = now->burst_ns },
	max))
EXPORT(u64, periods_over, (u64 began, u64 period, u64 now), (began, period, now))
EXPORT(s64, budget_refill, (s64 budget, u64 periods, u64 quota, u64 burst),
       (budget, periods, quota, burst))
EXPORT(s64, budget_excess, (s64 budget, u64 quota, u64 burst), (budget, quota, burst))
EXPORT(s64, grant, (s64 budget, s64 want), (budget, want))
EXPORT(u32, releases, (s64 budget), (budget))
EXPORT(u32, util_decay, (u32 util, u64 dt), (util, dt))
EXPORT(u32, util_run, (u32 util, u64 dt, u32 capacity), (util, dt, capacity))
EXPORT(u64, work, (u64 ran, u32 capacity), (ran, capacity))
EXPORT(u32, capacity_now, (u32 capacity, u32 freq), (capacity, freq))
EXPORT(u32, util, (u32 util_fp), (util_fp))
EXPORT(u32, util_est, (u32 est, u32 util), (est, util))
EXPORT(u64, run_est, (u64 est, u64 run), (est, run))
EXPORT(u32, latency_bucket, (u64 ns), (ns))
EXPORT(u32, run_class, (u64 run), (run))
EXPORT(u64, run_left, (u64 run, u64 ran), (run, ran))
EXPORT(u64, expected_wait, (const s64 *queued, u32 class, u64 left, u32 servers),
       (queued, class, left, servers))
EXPORT(u64, deadline, (u64 vtime, u64 run, u32 weight), (vtime, run, weight))
EXPORT(u64, vtime_delta, (u64 ran, u32 weight), (ran, weight))
EXPORT(u64, vtime_join, (u64 vtime, u64 clock, u32 weight, u64 tick, u64 owed),
       (vtime, clock, weight, tick, owed))
EXPORT(u64, curr_deadline, (u64 deadline, u64 clock, u64 run, u32 weight),
       (deadline, clock, run, weight))
EXPORT(u64, vtime_wake, (u64 vtime, u64 clock, u64 front, u32 weight, u64 tick),
       (vtime, clock, front, weight, tick))
EXPORT(s64, wake_ahead, (s64 ahead, u64 run_ns, u32 weight), (ahead, run_ns, weight))
EXPORT(s64, common_lead, (s64 lead, u32 weight, u64 tick), (lead, weight, tick))
EXPORT(int, is_worth_moving, (s64 lead, u32 weight, u64 tick_ns, int cut),
       (lead, weight, tick_ns, cut))
EXPORT(u64, vtime_move, (u64 vtime, u64 from, u64 to), (vtime, from, to))
EXPORT(u64, clock_pass, (u64 clock, u64 vtime), (clock, vtime))
EXPORT(u32, queue_weight, (u32 weight), (weight))
EXPORT(u32, running_weight, (u32 average, u32 weight, u64 ran), (average, weight, ran))
EXPORT(u64, clock_share, (u64 ran, u32 weight, u32 waiting, u32 running, u32 servers),
       (ran, weight, waiting, running, servers))
EXPORT(u64, vtime_slept, (u64 vtime, u64 clock, s64 lag), (vtime, clock, lag))
EXPORT(s64, rival_gap, (const struct pp_rival *a, const struct pp_rival *b, u64 *offset),
       (a, b, offset))
EXPORT(u64, own_passes, (const struct pp_rival *own, const struct pp_rival *shared, u64 offset),
       (own, shared, offset))
EXPORT(int, is_starving, (u64 since, u64 now), (since, now))
EXPORT(u64, starving_pause, (u32 nr, u32 servers, u64 waited), (nr, servers, waited))
EXPORT(int, should_preempt, (const struct pp_contest *contest, u64 run, u64 expected),
       (contest, run, expected))
EXPORT(u64, taken, (u64 taken, u64 now, u64 tick, int bound), (taken, now, tick, bound))
EXPORT(int, may_preempt, (const struct pp_contest *contest), (contest))
EXPORT(u64, slice_of_ticks, (u64 tick), (tick))
EXPORT(int, slice_over, (u64 expected, u64 ran, u64 slice, int short_waits),
       (expected, ran, slice, short_waits))
EXPORT(int, is_share_due, (u64 run, u64 runnable, u64 since, enum pp_stop stop),
       (run, runnable, since, stop))
EXPORT(u32, runnable_part, (u64 run, u64 runnable, u64 since, enum pp_stop stop),
       (run, runnable, since, stop))
EXPORT(u32, counts_for, (u32 weight, u32 part, u64 others, u32 others_part),
       (weight, part, others, others_part))
EXPORT(u32, count_word, (u32 counts, u32 part), (counts, part))
EXPORT(s64, load_of, (u32 word), (word))
EXPORT(u64, load_counts, (s64 load), (load))
EXPORT(u32, load_part, (s64 load), (load))
EXPORT(u64, part, (u64 part, u32 weight, u64 load), (part, weight, load))
EXPORT(u32, weight_of, (u64 part, u32 weight), (part, weight))
EXPORT(u32, next_active, (u32 end, u32 needed, u32 ceiling, u64 now, u64 hold, u64 *since),
       (end, needed, ceiling, now, hold, since))
EXPORT(u32, hold_node,
       (const struct pp_sizing *node, u32 begin, u32 end, u32 needed, u64 now, u64 *since),
       (node, begin, end, needed, now, since))
EXPORT(s64, size_room, (const struct pp_sizing *node), (node))
EXPORT(u32, needed_with_spills, (u32 needed, u32 end, u32 ceiling, u32 spills),
       (needed, end, ceiling, spills))

EXPORT(u64, longest_wait,
       (const struct pp_queued *queue, u64 running_left, u64 run_left, u32 servers),
       (queue, running_left, run_left, servers))
EXPORT(u32, missing, (u32 util_est, u32 util), (util_est, util))
EXPORT(s64, promise_left, (s64 promised, u64 dt), (promised, dt))
EXPORT(int, should_wait, (const struct pp_policy *policy, const struct pp_wait *task),
       (policy, task))
EXPORT(int, has_room, (const struct pp_policy *policy, const struct pp_candidate *cpu, u32 util),
       (policy, cpu, util))
EXPORT(int, is_rt_long, (u64 expected, u64 since), (expected, since))
EXPORT(int, short_waits, (const s64 *queued), (queued))
EXPORT(int, is_fuller,
       (u32 other_weight, u32 other_nr, u32 other_capacity, u32 weight, u32 capacity),
       (other_weight, other_nr, other_capacity, weight, capacity))
EXPORT(int, is_overdue,
       (const struct pp_policy *policy, const s64 *queued, u32 servers, u64 waiting, u32 budgets),
       (policy, queued, servers, waiting, budgets))
EXPORT(int, is_kept_small, (u32 uclamp_max, u32 smallest, u32 nr_kinds),
       (uclamp_max, smallest, nr_kinds))
EXPORT(int, is_off_demand, (u32 scope, int on_surplus), (scope, on_surplus))
EXPORT(u32, larger_scope, (u32 scope, u32 kind), (scope, kind))
EXPORT(u32, est_behind, (u32 est, u32 capacity), (est, capacity))
EXPORT(int, is_behind, (u64 run_ns, u64 period_ns, u32 freq), (run_ns, period_ns, freq))
EXPORT(u32, util_behind, (u32 capacity, u32 largest), (capacity, largest))
EXPORT(u32, fit_kind, (u32 util, u32 min, u32 max, const u32 *of_kind, u32 nr),
       (util, min, max, of_kind, nr))
EXPORT(int, is_migration_off, (u32 levels, int current, u32 prologue), (levels, current, prologue))
EXPORT(u32, prologue_levels, (u32 known, u32 levels), (known, levels))
EXPORT(u64, added_word, (const struct pp_added *added), (added))
EXPORT(u32, added_queue, (u64 word), (word))
EXPORT(u64, waiting_word, (u64 word), (word))
EXPORT(u32, added_class, (u64 word), (word))
EXPORT(u32, added_ns, (u64 word), (word))
EXPORT(u32, added_efficient, (u64 word), (word))
EXPORT(u32, hold, (u16 nr, u32 limit), (nr, limit))
EXPORT(u32, hold_limit, (u32 hold), (hold))
EXPORT(u64, front_for, (u64 clock, u64 front, u32 of, u32 weight, u64 tick),
       (clock, front, of, weight, tick))
EXPORT(u32, scope_of, (const struct pp_policy *policy, const struct pp_need *need), (policy, need))
EXPORT(int, stacks, (const struct pp_policy *policy, u32 scope, int groups, u64 runs_on),
       (policy, scope, groups, runs_on))
EXPORT(u64, runs_on, (u64 expected, u64 ran), (expected, ran))
EXPORT(u32, perf_target, (u32 cpu_util, u32 task_util, int race, u32 capacity, u32 floor),
       (cpu_util, task_util, race, capacity, floor))
EXPORT(int, perf_known, (u64 age_ns, u32 nr_runs), (age_ns, nr_runs))
EXPORT(int, perf_others_wait, (s32 nr, u64 waiting_ns), (nr, waiting_ns))
EXPORT(u32, perf_note, (struct pp_perf_peaks * peaks, u32 target, u64 now), (peaks, target, now))
EXPORT(u32, perf_peak, (const struct pp_perf_peaks *peaks, u64 now), (peaks, now))
EXPORT(u32, perf_next, (u32 target, u32 current, u32 capacity, u32 peak),
       (target, current, capacity, peak))

EXPORT(s32, pick_idle, (const struct pp_policy *policy, const struct pp_view *view, u32 prev),
       (policy, view, prev))
EXPORT(u32, word_in_use, (u64 words, u32 nr_words, u32 word), (words, nr_words, word))
EXPORT(s32, next_rank, (const u64 *set, u32 nr_words, u32 rank), (set, nr_words, rank))
EXPORT(s32, pick_surplus, (const struct pp_view *view), (view))
EXPORT(u64, whole_cores, (u64 idle, u64 siblings, u32 threads), (idle, siblings, threads))
EXPORT(int, is_crowded, (u64 idle, u64 siblings, u32 threads, u64 bit),
       (idle, siblings, threads, bit))
EXPORT(u64, ranks_below, (u32 end, u32 word), (end, word))

/* The needed prefixes of @nr_nodes nodes of as many ranks each, from the demands in
 * @nodes; returns the ceiling. */
u32 native_size(const struct pp_policy *policy, const u32 *capacity, u32 nr_ranks, u32 threads,
		struct pp_sizing *nodes, u32 nr_nodes)
{
	struct pp_bounds bounds = {};
	struct pp_rank of[PP_MAX_CPUS];

	for (u32 rank = 0; rank < nr_ranks; rank++) {
		u32 sibling = rank % threads && capacity[rank - 1];

		of[rank] = (struct pp_rank){ rank, capacity[rank], sibling };
		pp_bound_rank(policy, &bounds, &nodes[rank * nr_nodes / nr_ranks], &of[rank]);
	}
	pp_share_demand(nodes, nr_nodes);
	for (u32 rank = 0; rank < nr_ranks; rank++)
		pp_size_rank(policy, &bounds, &nodes[rank * nr_nodes / nr_ranks], &of[rank]);
	return bounds.ceiling;
}
