/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPUs a task is for: its scope. Most are for the active set; some may use any
 * CPU, need a larger one, or are to stay on the efficient ones. Pure, as policy.h.
 */
#ifndef PP_SCOPE_H
#define PP_SCOPE_H

#include "policy.h"

/* What is known of a task that a scope depends on. */
struct pp_need {
	u32 workload; /* enum pp_workload: what the user's table says of its cgroup */
	u32 util;     /* what it uses or was remembered to use, 0..1024 */
	u32 kind;     /* the smallest kind of core that carries it: pp_fit_kind() */
	int is_short; /* its runs are not worth waking another CPU of a group */
};

/*
 * The smallest kind of core that carries a task: util x 1.25 fits the capacity, as
 * in fits_capacity() of kernel/sched/fair.c; the clamps are compared without the
 * margin, as in util_fits_cpu(). The largest kind carries everything.
 */
static inline u32 pp_fit_kind(u32 util, u32 uclamp_min, u32 uclamp_max,
			      const volatile u32 *capacity_of_kind, u32 nr_kinds)
{
	u32 need = util + util / 4, kind = 0;

	if (need < uclamp_min)
		need = uclamp_min;
	if (need > uclamp_max)
		need = uclamp_max;
	while (kind + 1 < nr_kinds && kind + 1 < PP_MAX_KINDS && need > capacity_of_kind[kind])
		kind++;
	return kind;
}

/* Whether uclamp_max asks for the smallest cores: they have all that the task may get. */
static inline int pp_is_kept_small(u32 uclamp_max, u32 smallest_capacity, u32 nr_kinds)
{
	return nr_kinds > 1 && uclamp_max <= smallest_capacity;
}

/* Whether a task has disabled migration for itself: @levels counts that, and for the
 * @current task the @prologue_levels of the program that asks. */
static inline int pp_is_migration_off(u32 levels, int current, u32 prologue_levels)
{
	return levels > (current ? prologue_levels : 0);
}

/* The prologue's levels, of which @known is known, as a program finds the current task at @levels:
 * those of the task itself may be among them, as ops.enable is also called by one that gives up
 * what it has inherited of a real-time task's priority. It is 1 at most. */
static inline u32 pp_prologue_levels(u32 known, u32 levels)
{
	return levels < known ? levels : known;
}

/* The scope of a task that may run everywhere. What the user's table says goes first, then
 * capacity, then size. */
static inline u32 pp_scope_of(const struct pp_policy *policy, const struct pp_need *task)
{
	u32 kind = task->kind > policy->min_kind ? task->kind : policy->min_kind;

	if (task->workload == PP_WORKLOAD_EFFICIENT)
		return PP_SCOPE_EFFICIENT;
	if (task->workload == PP_WORKLOAD_PACK)
		return task->kind	    ? PP_SCOPE_KIND + task->kind
		       : policy->all_active ? PP_SCOPE_PACKED
					    : PP_SCOPE_ACTIVE;
	if (kind)
		return PP_SCOPE_KIND + kind;
	if (task->workload == PP_WORKLOAD_SPREAD || task->util > policy->small_util)
		return PP_SCOPE_USABLE;
	return policy->whole_groups && task->is_short ? PP_SCOPE_PACKED : PP_SCOPE_ACTIVE;
}

/* For how long a task may run on after it has woken another one that takes its CPU: about what it
 * takes to wake an idle CPU instead. */
#define PP_RUNS_ON_MAX_NS (20 * PP_NS_PER_US)

/* For how long a task is expected to run on that has said, as it woke another one, that it makes
 * way for it, and ran on for @ran_ns. One that has more to do at times is not to be waited for:
 * what is longer counts for more, and is remembered longer. */
static inline u64 pp_runs_on(u64 expected_ns, u64 ran_ns)
{
	return ran_ns >= expected_ns ? expected_ns + (ran_ns - expected_ns) / 2
				     : expected_ns - (expected_ns - ran_ns) / 16;
}

/* Whether a task of @scope takes the CPU of the one that wakes it and makes way for it, unless that
 * is expected to run on for @runs_on_ns. Where there are @groups only what is packed inside one:
 * the others are to overlap. */
static inline int pp_stacks(const struct pp_policy *policy, u32 scope, int groups, u64 runs_on_ns)
{
	u32 packed = policy->whole_groups && groups ? PP_SCOPE_PACKED : PP_SCOPE_ACTIVE;

	return policy->sync_stacks && scope == packed && runs_on_ns <= PP_RUNS_ON_MAX_NS;
}

/* Whether a task may leave its scope for any usable CPU if that has no idle one: to
 * run slowly is better than not to run. */
static inline int pp_may_overflow(u32 scope)
{
	return scope > PP_SCOPE_KIND;
}

/* Where a task is better off that is on a core of @kind, too small for @scope: on any larger kind,
 * up to those of @scope. */
static inline u32 pp_larger_scope(u32 scope, u32 kind)
{
	return PP_SCOPE_KIND + kind + 1 < scope ? PP_SCOPE_KIND + kind + 1 : scope;
}

/* Whether a task of @scope belongs on the CPU that it is on, so that the active set need not
 * grow to carry what it uses there. */
static inline int pp_is_off_demand(u32 scope, int on_surplus)
{
	return scope == PP_SCOPE_EFFICIENT || (on_surplus && scope >= PP_SCOPE_USABLE);
}

#endif /* PP_SCOPE_H */
