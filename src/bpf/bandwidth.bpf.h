/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max: the budgets of cgroups that have one, and how tasks draw on them. What happens to a
 * task that finds none left is in throttle.bpf.h.
 *
 * A cgroup with a limit has a place in limits[], which names the next limited one above it. A
 * task knows that of the innermost (0: none), so that a task without a limit costs a load and a
 * branch.
 */
#ifndef PP_BANDWIDTH_BPF_H
#define PP_BANDWIDTH_BPF_H

#include "bandwidth.h"
#include "state.bpf.h"

/* The agent reads them. Place 0 is never used. */
struct pp_limit limits[PP_MAX_LIMITS] SEC(".bss.pp_limits");

static __always_inline struct pp_limit *limit_of(u32 id)
{
	return &limits[id % PP_MAX_LIMITS];
}

/* Where the next free place in limits[] is looked for: far from one that has just become free,
 * which tasks that have left the cgroup may still name. */
static u32 limit_cursor;
/* Places that are taken: when all are none is looked for, which tasks would do again and again
 * where cpu.max is polled. */
static u32 nr_limits;
/* Some cgroup's limit is not enforced, as all places are taken; the agent reads it. */
u32 has_unlimited;

/* A free place for cgroup @cgroup_id; 0: there is none. */
verified_once u32 claim_limit(u64 cgroup_id)
{
	u32 step;

	if (nr_limits >= PP_MAX_LIMITS - 1)
		return 0;
	bpf_for (step, 1, PP_MAX_LIMITS + 1) {
		/* A power of two: of other remainders Linux 6.12 knows no bounds. */
		u32 id = (limit_cursor + step) % PP_MAX_LIMITS;

		if (id && !__sync_val_compare_and_swap(&limit_of(id)->cgroup_id, 0, cgroup_id)) {
			limit_cursor = id;
			__sync_fetch_and_add(&nr_limits, 1);
			return id;
		}
	}
	return 0;
}

/* A place that no cgroup has any more. */
static __always_inline void free_limit(u32 id)
{
	limit_of(id)->cgroup_id = 0;
	__sync_fetch_and_add(&nr_limits, -1);
}

/* The place of a cgroup that is to have one; 0: there is none. Of several CPUs that see a new
 * limit one takes it. */
verified_once u32 place_of_limit(u64 cgroup_id, u32 *place __arg_nonnull)
{
	u32 id = *place, other;

	if (id)
		return id;
	id = claim_limit(cgroup_id);
	if (!id) {
		if (!has_unlimited)
			has_unlimited = 1;
		return 0;
	}
	other = __sync_val_compare_and_swap(place, 0, id);
	if (!other)
		return id;
	free_limit(id);
	return other;
}

/* As tg_set_cfs_bandwidth() of the kernel: from now on with a full budget, and no debts. */
verified_once int set_limit(u64 cgroup_id, u32 *place __arg_nonnull,
			    const struct pp_cpu_max *max __arg_nonnull)
{
	struct pp_limit *limit;
	u32 id;

	if (!max->quota_ns && !*place)
		return 0;
	id = place_of_limit(cgroup_id, place);
	if (!id)
		return 0;
	limit = limit_of(id);
	limit->quota_ns = 0;
	limit->period_ns = max->period_ns;
	limit->burst_ns = max->burst_ns;
	limit->period_began_ns = scx_bpf_now();
	limit->budget_ns = max->quota_ns;
	limit->quota_ns = max->quota_ns;
	__sync_fetch_and_add(&cgroup_generation, 1);
	return id;
}

/* A new period may have begun: one of the CPUs that see it adds the quota. */
verified_once bool refill(u32 id, u64 now)
{
	struct pp_limit *limit = limit_of(id);
	u64 began = limit->period_began_ns, quota = limit->quota_ns;
	u64 periods = pp_periods_over(began, limit->period_ns, now);
	s64 budget;

	if (!periods || !quota)
		return false;
	if (__sync_val_compare_and_swap(&limit->period_began_ns, began,
					began + periods * limit->period_ns) != began)
		return false;
	budget = limit->budget_ns;
	__sync_fetch_and_add(&limit->budget_ns,
			     pp_budget_refill(budget, periods, quota, limit->burst_ns) - budget);
	limit->nr_periods++;
	return true;
}

static __always_inline bool is_used_up(u32 id, u64 now)
{
	refill(id, now);
	return limit_of(id)->quota_ns && limit_of(id)->budget_ns <= 0;
}

/* The first limit from @id upwards whose budget is used up; 0: none is. */
verified_once u32 used_up_limit(u32 id)
{
	u64 now = scx_bpf_now();
	u32 level;

	bpf_for (level, 0, CGROUP_DEPTH_MAX) {
		if (!id)
			break;
		if (is_used_up(id, now))
			return id;
		id = limit_of(id)->parent;
	}
	return 0;
}

static __always_inline bool is_throttled(const struct pp_task *task)
{
	return task->limit && used_up_limit(task->limit);
}

/* Give @ns back to limit @id and to those above; less than 0: take more. */
verified_once int give_back(u32 id, s64 ns)
{
	u32 level;

	bpf_for (level, 0, CGROUP_DEPTH_MAX) {
		struct pp_limit *limit = limit_of(id);
		s64 excess;

		if (!id)
			break;
		__sync_fetch_and_add(&limit->budget_ns, ns);
		excess = pp_budget_excess(limit->budget_ns, limit->quota_ns, limit->burst_ns);
		if (excess && limit->quota_ns)
			__sync_fetch_and_add(&limit->budget_ns, -excess);
		id = limit->parent;
	}
	return 0;
}

/* Reserve up to @want of what all limits from @id upwards have. */
verified_once s64 reserve(u32 id, s64 want)
{
	u64 now = scx_bpf_now();
	u32 level, at = id;

	bpf_for (level, 0, CGROUP_DEPTH_MAX) {
		struct pp_limit *limit = limit_of(at);

		if (!at)
			break;
		refill(at, now);
		if (limit->quota_ns)
			want = pp_grant(limit->budget_ns, want);
		at = limit->parent;
	}
	if (want > 0)
		give_back(id, -want);
	return want;
}

/* The task runs by the limit that it has now: its first reservation. Its cgroup may have been
 * limited, or the task moved to another one, while it ran. */
verified_once int follow_limit(struct task_struct *p __arg_trusted,
			       struct pp_task *task __arg_nonnull)
{
	give_back(task->charged, task->reserved_ns);
	task->charged = task->limit;
	task->exec_ns = p->se.sum_exec_runtime;
	task->reserved_ns = task->limit ? reserve(task->limit, PP_RESERVE_NS) : 0;
	return 0;
}

/* Charge what @p has used since it was charged last, as the kernel has counted it, which has done
 * so before it calls us: cpu.stat goes by that, and so does the kernel's own scheduler. Our clock
 * begins after a switch on 6.12: twelve tasks that took turns used 5 % more than their limit. */
static __always_inline void charge_limit(const struct task_struct *p, struct pp_task *task)
{
	task->reserved_ns -= p->se.sum_exec_runtime - task->exec_ns;
	task->exec_ns = p->se.sum_exec_runtime;
}

/* At a tick: whether the task may go on. What it has run over its reservation counts. */
static __always_inline bool reserve_more(struct pp_task *task)
{
	if (task->reserved_ns <= 0)
		task->reserved_ns += reserve(task->charged, (s64)PP_RESERVE_NS - task->reserved_ns);
	return task->reserved_ns > 0;
}

#endif /* PP_BANDWIDTH_BPF_H */
