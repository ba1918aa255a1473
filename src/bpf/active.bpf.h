/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The active set: how many of the first ranks are in use. It is sized on
 * events that happen anyway (a CPU looks for what to run), at most once a period; no
 * timer runs, so that an idle machine stays idle.
 */
#ifndef PP_ACTIVE_BPF_H
#define PP_ACTIVE_BPF_H

#include "account.bpf.h"
#include "idle.bpf.h"
#include "queues.bpf.h"
#include "scope.bpf.h"

/* Whoever sizes the active set holds this, and has these to work with: the
 * verifier follows values on the stack through the loops, one by one. */
static u32 sizing_lock;
static struct pp_sizing sizing;

/* A CPU's utilization now, less what is bound to it; sees what that leaves. */
static __always_inline u32 measure_cpu(const struct pp_cpu *cpu, u64 now, u32 *left)
{
	u32 util, bound;

	if (!cpu->online) {
		*left = 0;
		return 0;
	}
	util = pp_util(cpu_util_now(cpu, now));
	bound = pp_util(util_after(cpu->bound_fp, now - cpu->bound_updated_ns, 0, 0));
	*left = cpu->capacity > bound ? cpu->capacity - bound : 1;
	return util > bound ? util - bound : 0;
}

/* Whether the rank before is on the same core, and online. The array is read as
 * volatile: natively the compiler takes a constant for what it was built with. */
static __always_inline bool is_sibling(u32 rank)
{
	return threads_per_core > 1 && rank > 0 &&
	       (siblings[rank_word(rank - 1)] & rank_bit(rank - 1)) &&
	       cpu_state(cpu_at(rank - 1))->online;
}

/* Fill in @sizing for what runs now. */
verified_once int measure(u64 now)
{
	const struct pp_policy *policy = policy_now();
	u32 rank;

	__builtin_memset(&sizing, 0, sizeof(sizing));
	bpf_for (rank, 0, nr_free)
		sizing.demand += measure_cpu(cpu_state(cpu_at(rank)), now,
					     &rank_capacity[rank % PP_MAX_CPUS]);
	bpf_for (rank, 0, nr_free) {
		struct pp_rank of = {
			.rank = rank,
			.capacity = rank_capacity[rank % PP_MAX_CPUS],
			.sibling = is_sibling(rank),
		};

		pp_size_rank(policy, &sizing, &of);
	}
	return 0;
}

/* Wake idle CPUs of ranks [from, to) to take what waits. */
static void kick_idle(u32 from, u32 to)
{
	u32 rank;

	bpf_for (rank, from, to) {
		if (claim_rank(rank))
			scx_bpf_kick_cpu(cpu_at(rank), 0);
	}
}

/* Free tasks that run on ranks [from, to) are to leave: end their slices, and
 * ops.enqueue places them anew. */
static void evacuate(u32 from, u32 to)
{
	u32 rank;

	bpf_for (rank, from, to) {
		if (!test_idle(rank))
			scx_bpf_kick_cpu(cpu_at(rank), SCX_KICK_PREEMPT);
	}
}

verified_once int set_active(u32 nr, u32 packed, u32 ceiling)
{
	u32 was = active_set.nr;

	active_set.nr = nr;
	active_set.packed = packed;
	active_set.ceiling = ceiling;
	set_scopes(nr, packed, ceiling);
	if (nr == was)
		return 0;
	count(nr > was ? PP_EV_GROW : PP_EV_SHRINK);
	/* What waits in an LLC that has no active CPU any more is taken by those
	 * of others as they come by; see take_from_others(). */
	if (nr > was || nr_llcs > 1)
		kick_idle(nr > was ? was : 0, nr);
	return 0;
}

/* The end of the LLC that the last of @needed ranks is in. */
static __always_inline u32 end_of_llc(u32 needed, u32 ceiling)
{
	u32 end = llc_end[llc_queue(cpu_at(needed - 1)) % PP_MAX_LLCS];

	return end < ceiling ? end : ceiling;
}

/* Size the active set for what runs now, unless another CPU is at it. */
verified_once int size_active(u64 now)
{
	const struct pp_policy *policy = policy_now();
	bool at_once = active_set.stale;
	u32 needed;

	if (__sync_val_compare_and_swap(&sizing_lock, 0, 1))
		return 0;
	active_set.stale = 0;
	measure(now);
	needed = pp_needed_with_spills(&sizing, active_set.nr, active_set.spills);
	active_set.spills = 0;
	active_set.demand = sizing.demand;
	active_set.room = pp_size_room(&sizing);
	active_set.updated_ns = now;
	if (!at_once)
		needed = pp_next_active(active_set.nr, needed, sizing.ceiling, now,
					policy->shrink_hold_ns, &active_set.shrink_since_ns);
	if (policy->whole_llcs)
		needed = end_of_llc(needed, sizing.ceiling);
	if (needed != active_set.nr || sizing.packed != active_set.packed ||
	    sizing.ceiling != active_set.ceiling)
		set_active(needed, sizing.packed, sizing.ceiling);
	if (at_once)
		evacuate(needed, nr_free);
	sizing_lock = 0;
	return 0;
}

/* Called as CPUs look for what to run; almost always just the comparison. */
static __always_inline void size_active_if_due(u64 now)
{
	if ((s64)(now - active_set.updated_ns) >= (s64)PP_ACTIVE_PERIOD_NS)
		size_active(now);
}

/* The policy or the CPUs are not what they were. */
static __always_inline void size_active_anew(void)
{
	active_set.stale = 1;
	active_set.updated_ns = 0;
}

#endif /* PP_ACTIVE_BPF_H */
