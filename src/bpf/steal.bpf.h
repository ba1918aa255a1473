/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU takes that waits for others: from the queues of other LLCs, and from those of single
 * CPUs.
 */
#ifndef PP_STEAL_BPF_H
#define PP_STEAL_BPF_H

#include "place.bpf.h"

/* At how many other LLCs a CPU looks at its tick whether they need help: beginning with another one
 * each period, and only at those where tasks wait. Where many have some, many CPUs look. */
#define PP_LOOK_LLCS 2
/* And at how many when it has nothing to do, or is to look at others first. */
#define PP_TAKE_LLCS 8

/* Whether more is queued in LLC @llc than its active CPUs can do in @budgets. */
verified_once bool is_overdue(u32 llc, u32 budgets)
{
	struct pp_queue *queue = queue_of(llc);
	u64 waiting = since(scx_bpf_now(), queue->waiting_since_ns);

	return queue->nr > 0 &&
	       pp_is_overdue(policy_now(), queue->queued_ns, nr_servers(llc), waiting, budgets);
}

/* Whether a CPU of a memory node is idle that may be used. */
verified_once bool has_idle_of_node(u32 node)
{
	const u64 *usable = ranks_of_scope(PP_SCOPE_USABLE);

	for (u32 word = pp_word_in_use(idle_words, topology.nr_words, 0);
	     word < topology.nr_words && word < PP_RANK_WORDS;
	     word = pp_word_in_use(idle_words, topology.nr_words, word + 1)) {
		if (idle_ranks[word] & usable[word] &
		    topology.node_ranks[node % PP_MAX_NODES][word])
			return true;
	}
	return false;
}

/* Whether what waits in memory node @other is not for CPUs of @node: it is done there. A task that
 * has left its node does not come back. */
static __always_inline bool keeps_from(u32 other, u32 node)
{
	return other != node && is_node_active(other) && keeps_to_itself(other);
}

/* Whether idle CPUs of LLC @llc take what waits in LLC @other: of such a node only what that does
 * not get done by itself. */
static __always_inline bool may_help(u32 llc, u32 other)
{
	u32 node = node_of_queue(other);

	return !keeps_from(node, node_of_queue(llc)) ||
	       (!has_idle_of_node(node) && is_overdue(other, PP_OVERDUE_BUDGETS_AWAKE));
}

/* The last LLC of a memory node; those of a node are neighbours. */
static __always_inline u32 last_llc_of(u32 node)
{
	return llc_queue(cpu_at(topology.node_end[node % PP_MAX_NODES] - 1));
}

/* Whether more waits in LLC @other than in @llc, for what their CPUs have left. */
static __always_inline bool is_fuller(u32 other, u32 llc)
{
	const struct pp_queue *theirs = queue_of(other), *ours = queue_of(llc);

	return pp_is_fuller(theirs->weight, theirs->nr, left_of_llc[other % PP_MAX_LLCS],
			    ours->weight, left_of_llc[llc % PP_MAX_LLCS]);
}

/* Take what waits in other LLCs; if @fuller, in those alone in which more waits than here. */
static bool take_from_others(u32 llc, bool fuller)
{
	u32 step, distance, seen = 0;
	s32 other = llc;

	bpf_for (step, 0, PP_TAKE_LLCS) {
		bool keeps;
		u32 node;

		other = next_waiting_llc(other + 1);
		if (other < 0)
			break;
		distance = (other + topology.nr_llcs - llc) % topology.nr_llcs;
		/* All round. */
		if (distance <= seen)
			break;
		seen = distance;
		if (fuller && !is_fuller(other, llc))
			continue;
		node = node_of_queue(other);
		keeps = topology.nr_nodes > 1 && keeps_from(node, node_of_queue(llc));
		if (keeps && has_idle_of_node(node)) {
			other = last_llc_of(node);
			continue;
		}
		/* As may_help(), by what is known already. */
		if ((!keeps || is_overdue(other, PP_OVERDUE_BUDGETS_AWAKE)) && take_from(other)) {
			count(PP_EV_STEAL);
			return true;
		}
	}
	return false;
}

/* LLC @llc or another one, of which more waits than its active CPUs do in @budgets latency budgets;
 * -1: none of those looked at. */
verified_once s32 overdue_from(u32 llc, u32 budgets)
{
	s32 other, first = -1;
	u32 step;

	if (is_overdue(llc, budgets))
		return llc;
	if (topology.nr_llcs <= 1)
		return -1;
	other = (llc + scx_bpf_now() / PP_ACTIVE_PERIOD_NS) % topology.nr_llcs;
	bpf_for (step, 0, PP_LOOK_LLCS) {
		other = next_waiting_llc(other + 1);
		if (other < 0 || other == first)
			break;
		if (first < 0)
			first = other;
		if (is_overdue(other, budgets))
			return other;
	}
	return -1;
}

/* Whether more waits in CPU queue @id than its CPU can do in time. */
verified_once bool is_own_overdue(u32 id, u64 now)
{
	const struct pp_queue *queue = queue_of(id);

	return queue->nr > 0 &&
	       pp_is_overdue(policy_now(), queue->queued_ns, 1, since(now, queue->waiting_since_ns),
			     PP_OVERDUE_BUDGETS_AWAKE);
}

/* The rank at which a CPU begins to look for what waits for others: its own, and every other time
 * one farther on, as those next to it may wait for CPUs that it cannot help. */
static __always_inline u32 first_to_ask(s32 cpu)
{
	u32 dispatches = cpu_state(cpu)->dispatches;

	return dispatches & 1 ? rank_of(cpu)
			      : (rank_of(cpu) + dispatches / 2 * PP_LOOK_RANKS) % topology.nr_ranks;
}

/* The ranks from whose queues @cpu may take, from @from to before @end. Isolated CPUs and those
 * above the ceiling are for what has nowhere else to go, and which that is cannot be derived from a
 * queue's first task: they take from each other alone. While some wait for the efficient CPUs
 * alone, others leave the queues of those alone, for the same reason. */
struct pp_takeable {
	u32 from, end;
};

static __always_inline struct pp_takeable takeable_by(s32 cpu)
{
	u32 efficient = efficient_below_ceiling();
	struct pp_takeable ranks = { .end = topology.nr_free };

	if (is_isolated(cpu))
		ranks = (struct pp_takeable){ topology.nr_free, topology.nr_ranks };
	else if (rank_of(cpu) >= active_set.ceiling)
		ranks.from = active_set.ceiling;
	else if (nr_waiting_efficient > 0 && rank_of(cpu) >= efficient)
		ranks.from = efficient;
	return ranks;
}

/* Whether a CPU that is to stay idle takes what waits for @other nevertheless: a real-time task has
 * that, for nobody knows how long, or it does not come to it in time. Not has_rt(): who goes idle
 * looks but once. So it may take a task from a CPU that is between two of ours just then. */
static __always_inline bool needs_help(s32 other, u64 now)
{
	return cpu_state(other)->rt_since_ns || is_own_overdue(cpu_queue(other), now);
}

/* A CPU with nothing to do: what waits for another one and may run here. */
static bool take_from_cpus(s32 cpu)
{
	struct pp_takeable ranks;
	struct pp_walk walk;
	u32 step;
	u64 now;

	if (!is_any_waiting())
		return false;
	now = scx_bpf_now();
	ranks = takeable_by(cpu);
	walk = walk_from(first_to_ask(cpu));
	bpf_for (step, 0, PP_LOOK_RANKS) {
		s32 other = walk_on(&walk, walks_set() ? next_waiting_rank(walk.next) : -1, step);

		if (other < 0)
			break;
		if (rank_of(other) < ranks.from || rank_of(other) >= ranks.end) {
			walk.next = ranks.from;
			continue;
		}
		if (!is_rank_waiting(rank_of(other)) || is_back_soon(cpu_state(other), now))
			continue;
		if ((is_active(cpu) || needs_help(other, now)) && take_first(cpu_queue(other))) {
			count(PP_EV_STEAL);
			return true;
		}
	}
	return false;
}

/* Whether @cpu, at its tick, is to serve what waits in another CPU's own queue, as that one does
 * not come to it: a real-time task keeps it, or it went offline as the task was put there. One
 * queue is looked at, another one each period. */
static __always_inline bool find_stranded(s32 cpu, u64 now)
{
	struct pp_takeable ranks;
	s32 rank, other;

	if (!is_any_waiting())
		return false;
	ranks = takeable_by(cpu);
	rank = next_waiting_rank((rank_of(cpu) + now / PP_ACTIVE_PERIOD_NS) % topology.nr_ranks);
	if (rank < 0 || rank >= ranks.end || rank < ranks.from)
		return false;
	other = cpu_at(rank);
	if (other == cpu || (cpu_state(other)->online && !is_rt_busy(cpu_state(other), now)) ||
	    !is_own_overdue(cpu_queue(other), now))
		return false;
	cpu_state(cpu)->starving = cpu_queue(other) + 1;
	return true;
}

#endif /* PP_STEAL_BPF_H */
