/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much a cgroup with a cpu.max may run. Pure, as policy.h.
 *
 * A cgroup has a budget of CPU time. Each period adds the quota to it; what is left of a period
 * is kept up to the burst, what was used too much is taken from the next one:
 *
 *	budget = min(budget + periods * quota, quota + burst)
 *
 * as __refill_cfs_bandwidth_runtime() of the kernel has it. A task takes a reservation from the
 * budget of its cgroup and of all limited ones above as it begins to run, and gives back what it
 * has not used: however many CPUs run tasks of the cgroup, together they run over the quota by
 * no more than what each one does until its next tick.
 */
#ifndef PP_BANDWIDTH_H
#define PP_BANDWIDTH_H

#include "intf.h"

/* What a task reserves at a time: as the kernel's sched_cfs_bandwidth_slice_us, longer than the
 * tick of 4 ms at which it is seen that it is used up. */
#define PP_RESERVE_NS 5000000ULL

/* A throttled task runs for some microseconds after this time, whatever the budget: the kernel
 * ends a scheduler under which a task does not run for the timeout of 20 s. */
#define PP_HELD_MAX_NS 10000000000ULL

/* What a cgroup's cpu.max says. */
struct pp_cpu_max {
	u64 quota_ns; /* 0: no limit */
	u64 period_ns;
	u64 burst_ns;
};

/* Whether a limit that is in force is another one than @max. */
static inline int pp_is_other_limit(const struct pp_limit *limit, const struct pp_cpu_max *max)
{
	return limit->quota_ns != max->quota_ns ||
	       (max->quota_ns &&
		(limit->period_ns != max->period_ns || limit->burst_ns != max->burst_ns));
}

/* How many periods of @period_ns are over at @now since @began_ns. */
static inline u64 pp_periods_over(u64 began_ns, u64 period_ns, u64 now)
{
	s64 since = now - began_ns;

	return period_ns && since >= (s64)period_ns ? since / period_ns : 0;
}

/* The budget after @periods more; @quota_ns is above 0. */
static inline s64 pp_budget_refill(s64 budget_ns, u64 periods, u64 quota_ns, u64 burst_ns)
{
	s64 budget_max = quota_ns + burst_ns;
	u64 missing = budget_ns < budget_max ? budget_max - budget_ns : 0;

	return periods > missing / quota_ns ? budget_max : budget_ns + (s64)(periods * quota_ns);
}

/* By how much a budget is beyond what may be kept: a reservation of the period before, given back
 * in this one, is not to be used in addition to the quota. */
static inline s64 pp_budget_excess(s64 budget_ns, u64 quota_ns, u64 burst_ns)
{
	s64 excess = budget_ns - (s64)(quota_ns + burst_ns);

	return excess > 0 ? excess : 0;
}

/* What a task that wants @want_ns may reserve of a budget. */
static inline s64 pp_grant(s64 budget_ns, s64 want_ns)
{
	s64 has = budget_ns > 0 ? budget_ns : 0;

	return has < want_ns ? has : want_ns;
}

/* How many throttled tasks may run again: no more than can reserve something, as the
 * others would wake CPUs for nothing. */
static inline u32 pp_releases(s64 budget_ns)
{
	u64 releases = budget_ns > 0 ? budget_ns / PP_RESERVE_NS + 1 : 0;

	return releases < ~0U ? releases : ~0U;
}

#endif /* PP_BANDWIDTH_H */
