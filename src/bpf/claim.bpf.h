/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which idle CPU a task gets.
 */
#ifndef PP_CLAIM_BPF_H
#define PP_CLAIM_BPF_H

#include "active.bpf.h"

/* How many attempts are made to claim an idle CPU before the task is queued: another CPU may
 * have claimed the one that was found. */
#define PP_CLAIM_TRIES 3

/* The ranks of the node that a task that ran on @cpu is for; NULL: there is but one. */
static __always_inline const u64 *ranks_of_home(s32 cpu)
{
	return topology.nr_nodes > 1 ? ranks_in(topology.node_ranks[home_node(cpu) % PP_MAX_NODES])
				     : NULL;
}

/* Where a task of @scope that ran on @cpu is looked for a CPU. */
static __always_inline const u64 *ranks_for(u32 scope, s32 cpu)
{
	if (scope == PP_SCOPE_ACTIVE && keeps_to_itself(home_node(cpu)))
		return active_of_node[home_node(cpu) % PP_MAX_NODES];
	return ranks_of_scope(scope);
}

/* claim_idle() where any CPU is idle. */
verified_once s32 claim_one_of(u32 scope, bool whole_core, const struct pp_task *task __arg_nonnull,
			       s32 prev_cpu)
{
	struct pp_view view = {
		.idle = idle_ranks,
		.idle_words = idle_words,
		.siblings = sibling_ranks,
		.allowed = task->allowed,
		.among = ranks_for(scope, prev_cpu),
		.near = ranks_in(topology.llc_ranks[llc_queue(prev_cpu) % PP_MAX_LLCS]),
		.node = ranks_of_home(prev_cpu),
		.nr_words = topology.nr_words,
		.threads = topology.threads_per_core,
		.whole_only = whole_core,
	};
	for (u32 tries = 0; tries < PP_CLAIM_TRIES; tries++) {
		s32 rank = pp_pick_idle(policy_now(), &view, rank_of(prev_cpu));

		if (rank < 0)
			break;
		if (claim_rank(rank))
			return cpu_at(rank);
	}
	return -1;
}

/* Claim an idle CPU of @scope for the task; returns -1 if there is none. It is on a wholly idle
 * core, always if @whole_core, else if there is one. Where all are busy, no function is called. */
static __always_inline s32 claim_idle(u32 scope, bool whole_core, const struct pp_task *task,
				      s32 prev_cpu)
{
	return is_any_idle() ? claim_one_of(scope, whole_core, task, prev_cpu) : -1;
}

/* Claim an idle CPU for a task that needs a large core but may overflow: a large one, else the next
 * smaller kind, a whole small one rather than half a large one, then whatever there is. */
verified_once s32 claim_idle_large(u32 scope, const struct pp_task *task __arg_nonnull,
				   s32 prev_cpu)
{
	s32 cpu = -1;

	for (u32 down = 0; cpu < 0 && down < PP_MAX_KINDS && scope - down > PP_SCOPE_KIND; down++)
		cpu = claim_idle(scope - down, true, task, prev_cpu);
	if (cpu < 0)
		cpu = claim_idle(PP_SCOPE_USABLE, true, task, prev_cpu);
	if (cpu < 0 && topology.threads_per_core > 1)
		cpu = claim_idle(scope, false, task, prev_cpu);
	if (cpu < 0 && topology.threads_per_core > 1)
		cpu = claim_idle(PP_SCOPE_USABLE, false, task, prev_cpu);
	return cpu;
}

static __always_inline s32 claim_for_scope(u32 scope, const struct pp_task *task, s32 prev_cpu)
{
	if (topology.nr_kinds > 1 && pp_may_overflow(scope))
		return claim_idle_large(scope, task, prev_cpu);
	return claim_idle(scope, false, task, prev_cpu);
}

/* Claim the idle CPU nearest to the active ones around @cpu for the task (NULL: for any), or
 * one @beyond the ceiling; returns -1 if there is none. */
verified_once s32 claim_idle_surplus(const struct pp_task *task, s32 cpu, bool beyond)
{
	const u64 *usable = ranks_of_scope(PP_SCOPE_USABLE);
	const u64 *allowed = task ? task->allowed : usable;
	struct pp_view view = {
		.idle = idle_ranks,
		.idle_words = idle_words,
		.siblings = sibling_ranks,
		.allowed = allowed,
		.among = beyond ? allowed : usable,
		.node = ranks_of_home(cpu),
		.nr_words = topology.nr_words,
		.threads = topology.threads_per_core,
	};
	s32 rank = pp_pick_surplus(&view);

	return rank >= 0 && claim_rank(rank) ? cpu_at(rank) : -1;
}

#endif /* PP_CLAIM_BPF_H */
