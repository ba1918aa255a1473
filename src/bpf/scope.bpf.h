/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scopes as sets of ranks, and that of a task. On a machine with one kind of
 * core what is about kinds is gone after verification.
 */
#ifndef PP_SCOPE_BPF_H
#define PP_SCOPE_BPF_H

#include "account.bpf.h"
#include "cpu_words.bpf.h"
#include "partitions.bpf.h"

/* Of word @word of the ranks those that are active or, @packed, would be in packing. */
static __always_inline u64 active_word(u32 word, bool packed)
{
	u64 ranks = 0;

	for (u32 node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		u32 end = packed ? nodes[node].packed : nodes[node].end;
		u64 bits = pp_ranks_below(end, word) & topology.node_ranks[node][word] &
			   free_ranks[word];

		if (!packed) {
			active_of_node[node][word] = bits;
			if (bits & online_ranks[word])
				nodes[node].last = pp_highest(word, bits & online_ranks[word]);
		}
		ranks |= bits;
	}
	return ranks;
}

/* Count who serves the queue of @llc, whose ranks are neighbours. */
verified_once int count_servers(u32 llc)
{
	u32 word, active = 0, packed = 0;

	llc %= PP_MAX_LLCS;
	for (word = rank_word(topology.llc_begin[llc]);
	     word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		u64 ranks = topology.llc_ranks[llc][word] & online_ranks[word];

		if (word * PP_WORD_BITS >= topology.llc_end[llc])
			break;
		active += __builtin_popcountll(ranks & scope_ranks[PP_SCOPE_ACTIVE][word]);
		packed += __builtin_popcountll(ranks & scope_ranks[PP_SCOPE_PACKED][word]);
	}
	/* What is left of them is not measured yet. */
	if (servers_of_llc[llc] != active)
		left_of_llc[llc] = active * PP_CAPACITY_MAX;
	servers_of_llc[llc] = active;
	packed_of_llc[llc] = packed;
	return 0;
}

/* Write the scopes for the active set as it is now. */
verified_once int set_scopes(u32 ceiling)
{
	u32 efficient = topology.efficient_end < ceiling ? topology.efficient_end : ceiling;
	u32 word, kind, llc;

	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		u64 usable = pp_ranks_below(ceiling, word) & free_ranks[word];

		scope_ranks[PP_SCOPE_ACTIVE][word] = active_word(word, false);
		scope_ranks[PP_SCOPE_PACKED][word] = active_word(word, true);
		scope_ranks[PP_SCOPE_EFFICIENT][word] =
			pp_ranks_below(efficient, word) & usable & online_ranks[word];
		scope_ranks[PP_SCOPE_USABLE][word] = usable;
		for (kind = 1; kind < topology.nr_kinds && kind < PP_MAX_KINDS; kind++)
			scope_ranks[PP_SCOPE_KIND + kind][word] =
				topology.ranks_from_kind[kind][word] & usable;
	}
	bpf_for (llc, 0, topology.nr_llcs)
		count_servers(llc);
	return 0;
}

static __always_inline const u64 *ranks_of_scope(u32 scope)
{
	return scope_ranks[scope % PP_NR_SCOPES];
}

/* What the task uses: what it was remembered to, or more if it has grown since. */
static __always_inline u32 task_util(const struct pp_task *task)
{
	u32 util = pp_util(task->util_fp);

	util = util > task->util_est ? util : task->util_est;
	return util > task->behind ? util : task->behind;
}

/* Which kind of core carries the task now; looked up where its utilization changes. */
static __always_inline void refresh_kind(struct task_struct *p, struct pp_task *task)
{
	u32 clamp_min = 0, clamp_max = PP_CAPACITY_MAX;

	if (topology.nr_kinds <= 1)
		return;
	task_clamps(p, &clamp_min, &clamp_max);
	task->kind = pp_fit_kind(task_util(task), clamp_min, clamp_max, topology.capacity_of_kind,
				 topology.nr_kinds);
	task->kept_small =
		pp_is_kept_small(clamp_max, topology.capacity_of_kind[0], topology.nr_kinds);
}

/* Whether the task may run on any CPU of @scope. */
verified_once bool may_run_in(const struct pp_task *task __arg_nonnull, u32 scope)
{
	const u64 *ranks = ranks_of_scope(scope);

	for (u32 word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		if (task->allowed[word] & ranks[word])
			return true;
	}
	return false;
}

verified_once u32 scope_of(const struct pp_task *task __arg_nonnull)
{
	struct pp_need need = {
		.workload = task->kept_small ? PP_WORKLOAD_EFFICIENT : task->workload,
		.util = task_util(task),
		.kind = task->kind,
		.is_short = task->run_est_ns < topology.group_run_ns,
	};

	u32 scope = pp_scope_of(policy_now(), &need);

	/* Its affinity leaves it no efficient CPU, or all of them are offline or isolated. */
	if (scope == PP_SCOPE_EFFICIENT && !may_run_in(task, scope))
		return PP_SCOPE_ACTIVE;
	return scope;
}

/* Whether CPUs are online, of those that serve the queues of LLCs, that may not run the task. */
verified_once bool is_confined(const struct pp_task *task __arg_nonnull)
{
	for (u32 word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		if (free_ranks[word] & online_ranks[word] & ~task->allowed[word])
			return true;
	}
	return false;
}

/* Where may @p run, in rank space? One that may run wherever free tasks do is not
 * restricted: with isolated CPUs no task may run everywhere. CPUs that are offline do not count:
 * the kernel removes them from the affinity of all tasks in a cpuset other than the root's, and
 * adds them when they come. A task that may run on these alone may run on none that is online. */
verified_once int refresh_allowed(struct task_struct *p __arg_trusted,
				  struct pp_task *task __arg_nonnull)
{
	u32 word;

	task->cpus_generation = cpus_generation;
	for (word = 0; word < PP_RANK_WORDS; word++)
		task->allowed[word] = 0;
	for (word = 0; word < nr_cpu_words && word < PP_RANK_WORDS; word++)
		allow_cpus(task, allowed_cpus(p, word), word);
	task->restricted = is_confined(task);
	return 0;
}

/* The scope of a task that becomes runnable, by the CPUs that there are now. */
static __always_inline u32 scope_of_runnable(struct task_struct *p, struct pp_task *task)
{
	if (task->cpus_generation != cpus_generation)
		refresh_allowed(p, task);
	return scope_of(task);
}

static __always_inline bool in_scope(u32 scope, s32 cpu)
{
	return test_rank(ranks_of_scope(scope), rank_of(cpu));
}

/* Whether @cpu is active, and of @scope. */
static __always_inline bool is_active_in(u32 scope, s32 cpu)
{
	u32 rank = rank_of(cpu), word = rank_word(rank);

	return ranks_of_scope(PP_SCOPE_ACTIVE)[word] & ranks_of_scope(scope)[word] & rank_bit(rank);
}

/* Whether what the task uses on @cpu is not for the active set to carry. On an active CPU that is
 * so for efficient tasks only: the scope of others is not computed at each switch. */
static __always_inline bool is_off_demand(const struct pp_task *task, s32 cpu)
{
	if (task->restricted)
		return true;
	if (is_active(cpu) && task->workload != PP_WORKLOAD_EFFICIENT && !task->kept_small)
		return false;
	return pp_is_off_demand(scope_of(task), !is_active(cpu));
}

/* Whether a whole core that @task is for is idle. */
verified_once bool has_idle_in(const struct pp_task *task __arg_nonnull, u32 scope)
{
	const u64 *ranks = ranks_of_scope(scope);

	for (u32 word = pp_word_in_use(idle_words, topology.nr_words, 0);
	     word < topology.nr_words && word < PP_RANK_WORDS;
	     word = pp_word_in_use(idle_words, topology.nr_words, word + 1)) {
		u64 idle = pp_whole_cores(idle_ranks[word], sibling_ranks[word],
					  topology.threads_per_core);

		if (idle & ranks[word] & task->allowed[word])
			return true;
	}
	return false;
}

/* Whether any CPU that @task may run on is idle. */
verified_once bool has_idle_allowed(const struct pp_task *task __arg_nonnull)
{
	for (u32 word = pp_word_in_use(idle_words, topology.nr_words, 0);
	     word < topology.nr_words && word < PP_RANK_WORDS;
	     word = pp_word_in_use(idle_words, topology.nr_words, word + 1)) {
		if (idle_ranks[word] & task->allowed[word])
			return true;
	}
	return false;
}

/* What kind of core @rank is: ranks_from_kind has each kind and the larger ones. */
static __always_inline u32 kind_of_rank(u32 rank)
{
	u32 kind = 0;

	while (kind + 1 < topology.nr_kinds && kind + 1 < PP_MAX_KINDS &&
	       test_rank(ranks_in(topology.ranks_from_kind[kind + 1]), rank))
		kind++;
	return kind;
}

/* Whether a task that runs on a core too small for it should move on. */
static __always_inline bool is_misfit(const struct pp_task *task, s32 cpu)
{
	u32 scope;

	if (topology.nr_kinds <= 1)
		return false;
	scope = scope_of(task);
	return pp_may_overflow(scope) && !in_scope(scope, cpu) &&
	       has_idle_in(task, pp_larger_scope(scope, kind_of_rank(rank_of(cpu))));
}

/* Whether a task that shares a core should move to one that it has to itself. */
static __always_inline bool is_crowded(const struct pp_task *task, s32 cpu)
{
	u32 rank = rank_of(cpu), word = rank_word(rank);

	return topology.threads_per_core > 1 && policy_now()->idle_core_first &&
	       !task->restricted &&
	       pp_is_crowded(idle_ranks[word], sibling_ranks[word], topology.threads_per_core,
			     rank_bit(rank)) &&
	       has_idle_in(task, scope_of(task));
}

#endif /* PP_SCOPE_BPF_H */
