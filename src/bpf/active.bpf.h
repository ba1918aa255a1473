/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The active set: how many of the first ranks of each memory node are in use. It is sized on
 * events that happen anyway (a CPU looks for what to run), at most once a period; no
 * timer runs, so that an idle machine stays idle.
 */
#ifndef PP_ACTIVE_BPF_H
#define PP_ACTIVE_BPF_H

#include "measure.bpf.h"

/* Of the CPU that holds it alone. */
static u32 sizing_lock;
static u64 was_active[PP_RANK_WORDS], to_wake[PP_RANK_WORDS];
/* When to look at what runs, or to go on with that. */
static u64 sizing_due_ns;

/* The end of the ranks of @node that may be used. */
static __always_inline u32 ceiling_of(u32 node)
{
	u32 begin = topology.node_begin[node % PP_MAX_NODES],
	    end = topology.node_end[node % PP_MAX_NODES];

	if (bounds.ceiling <= begin)
		return begin;
	return bounds.ceiling < end ? bounds.ceiling : end;
}

/* Spills of a node that cannot grow are evidence for the first one that can. */
static __always_inline void share_spills(void)
{
	u32 node, moving = 0;

	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		if (node_state(node)->end >= ceiling_of(node)) {
			moving += node_state(node)->spills;
			node_state(node)->spills = 0;
		}
	}
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		if (node_state(node)->end < ceiling_of(node)) {
			node_state(node)->spills += moving;
			break;
		}
	}
}

/* The end of what is used as a whole: the LLC or the group that the last of @needed ranks is in,
 * if the policy says so, else that rank. */
static __always_inline u32 end_of_whole(const struct pp_policy *policy, u32 needed, u32 ceiling)
{
	u32 end = needed;

	if (policy->whole_llcs)
		end = topology.llc_end[llc_queue(cpu_at(needed - 1)) % PP_MAX_LLCS];
	else if (policy->whole_groups)
		end = topology.group_end[(needed - 1) % PP_MAX_CPUS];
	return end < ceiling ? end : ceiling;
}

/* What ranks from @begin to @end carry. */
verified_once u64 carried_from(u32 begin, u32 end)
{
	u64 carried = 0;
	u32 rank;

	bpf_for (rank, begin, end) {
		struct pp_rank of;

		describe_rank(rank, &of);
		carried += pp_rank_carries(sweep_policy(), &of);
	}
	return carried;
}

/* Size the active set of a node; returns whether it has changed. */
verified_once bool size_node(u32 node, u64 now, bool at_once)
{
	const struct pp_policy *policy = sweep_policy();
	struct pp_node *state = node_state(node);
	struct pp_sizing *sizing = sizing_of(node);
	u32 was = state->end, packed = state->packed, ceiling = ceiling_of(node);
	u32 begin = topology.node_begin[node % PP_MAX_NODES], needed;

	needed = pp_needed_with_spills(sizing->needed, was, ceiling, state->spills);
	if (topology.nr_nodes > 1)
		needed = pp_hold_node(sizing, begin, was, needed, now, &state->quiet_since_ns);
	state->spills = 0;
	if (!at_once)
		needed = pp_next_active(was, needed, ceiling, now, policy->shrink_hold_ns,
					&state->shrink_since_ns);
	if (needed > begin)
		needed = end_of_whole(policy, needed, ceiling);
	state->end = needed;
	state->room = pp_size_room(sizing) + carried_from(sizing->needed, needed);
	state->packed = sizing->packed;
	if (needed != was)
		count(needed > was ? PP_EV_GROW : PP_EV_SHRINK);
	return needed != was || packed != sizing->packed;
}

/* Have an idle active CPU of LLC @llc wake; false: there is none. */
verified_once bool wake_in_llc(u32 llc)
{
	const u64 *active = scope_ranks[PP_SCOPE_ACTIVE];
	u32 word = rank_word(topology.llc_begin[llc % PP_MAX_LLCS]), i;

	for (i = 0; i < topology.nr_words && i < PP_RANK_WORDS; i++) {
		u64 idle = active[word] & idle_ranks[word] &
			   topology.llc_ranks[llc % PP_MAX_LLCS][word];

		if (idle) {
			to_wake[word] |= idle & -idle;
			return true;
		}
		word = (word + 1) % PP_RANK_WORDS;
	}
	return false;
}

/* CPUs have left the active set, maybe some that had been woken for what waits and have not come to
 * it: wake another one of the LLC or, if it has none, all, which take from others as they look for
 * work: see take_from_others(). */
verified_once int wake_for_waiting(void)
{
	bool all = false;
	u32 llc, word;

	bpf_for (llc, 0, topology.nr_llcs) {
		if ((topology.nr_llcs <= 1 || test_rank(waiting_llcs, llc)) &&
		    queue_of(llc)->nr > 0 && !wake_in_llc(llc))
			all = true;
	}
	for (word = 0; all && word < topology.nr_words && word < PP_RANK_WORDS; word++)
		to_wake[word] |= scope_ranks[PP_SCOPE_ACTIVE][word] & idle_ranks[word];
	return 0;
}

/* Put the active set in force. CPUs that have just become active are to wake. */
verified_once int set_active(void)
{
	u64 *active = scope_ranks[PP_SCOPE_ACTIVE], left = 0;
	u32 word, node, nr = 0, was;

	active_set.ceiling = bounds.ceiling;
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++)
		was_active[word] = active[word];
	set_scopes(bounds.ceiling);
	/* A barrier: who queues a task either sees the new set, or the task is seen here. */
	was = __sync_fetch_and_add(&sizing_lock, 0);
	barrier_var(was);
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		to_wake[word] = active[word] & ~was_active[word];
		left |= was_active[word] & ~active[word];
	}
	if (left)
		wake_for_waiting();
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		if (is_node_active(node)) {
			active_set.main = node;
			break;
		}
	}
	/* Not the lengths of the prefixes: a partition may have CPUs in them. */
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++)
		nr += __builtin_popcountll(active[word]);
	active_set.nr = nr;
	return 0;
}

/* Called when a CPU goes online or offline, or the active set has changed. */
verified_once int note_state(u32 rank)
{
	s32 cpu = cpu_at(rank);
	struct pp_cpu *state = cpu_state(cpu);

	if (!state->online)
		state->state = PP_CPU_OFFLINE;
	else if (!is_free_rank(rank))
		state->state = PP_CPU_ISOLATED;
	else
		state->state = is_active(cpu) ? PP_CPU_ACTIVE : PP_CPU_SURPLUS;
	return 0;
}

/* Note the state of the ranks of word @word that are @changed, and wake those of @wake that are
 * idle to take what waits. */
verified_once int follow_word(u32 word, u64 changed, u64 wake)
{
	u64 left = changed | wake;
	u32 step;

	bpf_for (step, 0, PP_WORD_BITS) {
		u64 bit = left & -left;
		u32 rank;

		if (!left)
			break;
		rank = word * PP_WORD_BITS + __builtin_ctzll(left);
		left ^= bit;
		if (changed & bit)
			note_state(rank);
		if ((wake & bit) && claim_rank(rank))
			scx_bpf_kick_cpu(cpu_at(rank), 0);
	}
	return 0;
}

/* The active set has changed, or, @all, what else the state of ranks depends on. */
static __always_inline void follow_active(bool all)
{
	const u64 *active = scope_ranks[PP_SCOPE_ACTIVE];
	u32 word;

	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++) {
		u64 changed = all ? pp_ranks_below(topology.nr_free, word)
				  : active[word] ^ was_active[word];

		follow_word(word, changed, to_wake[word]);
	}
}

/* Free tasks that run on CPUs that are not active are to leave: end their slices, and
 * ops.enqueue places them again. */
static void evacuate(void)
{
	u32 rank;

	bpf_for (rank, 0, topology.nr_free) {
		if (test_rank(online_ranks, rank) && !is_active(cpu_at(rank)) && !test_idle(rank))
			scx_bpf_kick_cpu(cpu_at(rank), SCX_KICK_PREEMPT);
	}
}

/* The policy or the CPUs are not what they were. */
static __always_inline void request_sizing(void)
{
	active_set.stale = PP_STALE;
	sizing_due_ns = 0;
}

/* All ranks have been looked at: the active set is what they need. */
verified_once int end_sweep(u64 now)
{
	bool at_once = sweep.at_once, changed = false;
	u32 node;

	/* Another policy has come meanwhile: begin again, by that one. */
	if (sweep.slot != (policy_slot & 1)) {
		request_sizing();
		return 0;
	}
	active_set.updated_ns = now;
	if (topology.nr_nodes > 1)
		share_spills();
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++)
		changed |= size_node(node, now, at_once);
	if (changed || at_once || bounds.ceiling != active_set.ceiling) {
		set_active();
		follow_active(at_once);
	}
	if (at_once)
		evacuate();
	return 0;
}

/* When to go on: the next sweep begins a period after this one has, which ends now on a machine of
 * few CPUs, and else when it comes to the last ranks. */
static __always_inline u64 sizing_due_after(u64 now)
{
	if (topology.nr_ranks <= PP_SWEEP_RANKS)
		return now + PP_ACTIVE_PERIOD_NS;
	if (sweep.runs && sweep.measured && sweep_end(topology.nr_free) == topology.nr_free)
		return sweep.begun_ns + PP_ACTIVE_PERIOD_NS;
	return now + PP_SWEEP_GAP_NS;
}

/* Size the active set for what runs now, or take a step towards that, unless another CPU does. */
verified_once int size_active(u64 now)
{
	u32 stale;

	/* Most that come at the same time read the lock alone, and do not take its cache line. */
	if (sizing_lock || __sync_val_compare_and_swap(&sizing_lock, 0, 1))
		return 0;
	/* Both before anything is looked at: a request that comes meanwhile is for the next
	 * time. The order is the reverse of that in request_sizing(). */
	sizing_due_ns = sizing_due_after(now);
	stale = __sync_lock_test_and_set(&active_set.stale, 0);
	if (stale == PP_STALE || !sweep.runs) {
		sweep.at_once = (sweep.runs && sweep.at_once) || stale == PP_STALE;
		sweep.at_once |= follow_partitions(now);
		begin_sweep(now);
	}
	if (sweep_on(now)) {
		end_sweep(now);
	} else if (sweep.at_once) {
		/* The next step as soon as interrupts have been on. */
		__sync_val_compare_and_swap(&active_set.stale, 0, PP_STALE_IN_WORK);
		sizing_due_ns = 0;
		scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
	}
	/* Not a plain store: on arm64 what is above could be seen after it. */
	__sync_lock_test_and_set(&sizing_lock, 0);
	return 0;
}

/* Called as CPUs look for what to run; almost always just the comparison. */
static __always_inline void size_active_if_due(u64 now)
{
	if ((s64)(now - sizing_due_ns) >= 0)
		size_active(now);
}

/* The same as a CPU ticks, on a machine where sizing has several steps: one that runs a task for
 * long is seldom looking for what to run. */
static __always_inline void go_on_sizing(u64 now)
{
	if (topology.nr_ranks > PP_SWEEP_RANKS && sweep.runs)
		size_active_if_due(now);
}

/* Until the first CPU looks for what to run a node has one active CPU. */
verified_once int begin_node(u32 node)
{
	u32 rank = topology.node_begin[node % PP_MAX_NODES];

	node_state(node)->end = rank + 1;
	scope_ranks[PP_SCOPE_ACTIVE][rank_word(rank)] |= rank_bit(rank);
	return 0;
}

/* Whether the CPU of @rank was online as the scheduler was loaded. */
static __always_inline bool was_online(u32 rank)
{
	return topology.online[rank_word(rank)] & rank_bit(rank);
}

verified_once int begin_cpu(u32 rank)
{
	struct pp_cpu *state = cpu_state(cpu_at(rank));

	state->rank = rank;
	begin_free_rank(rank);
	begin_cpu_word(cpu_at(rank), rank);
	state->capacity = topology.capacity_of_rank[rank % PP_MAX_CPUS];
	state->online = was_online(rank);
	if (state->online)
		online_ranks[rank_word(rank)] |= rank_bit(rank);
	note_siblings(rank);
	return 0;
}

#endif /* PP_ACTIVE_BPF_H */
