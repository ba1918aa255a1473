/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The active set: how many of the first ranks of each memory node are in use. It is sized on
 * events that happen anyway (a CPU looks for what to run), at most once a period; no
 * timer runs, so that an idle machine stays idle.
 */
#ifndef PP_ACTIVE_BPF_H
#define PP_ACTIVE_BPF_H

#include "account.bpf.h"
#include "idle.bpf.h"
#include "queues.bpf.h"
#include "scope.bpf.h"

/* The CPU that sizes the active set holds the lock, and works with these variables: the
 * verifier follows values on the stack through the loops, one by one. */
static u32 sizing_lock;
static struct pp_sizing sizings[PP_MAX_NODES];
static struct pp_bounds bounds;
static u64 was_active[PP_RANK_WORDS], to_wake[PP_RANK_WORDS];

static __always_inline struct pp_sizing *sizing_of(u32 node)
{
	return &sizings[topology.nr_nodes > 1 ? node % PP_MAX_NODES : 0];
}

/* What real-time tasks use of a CPU, as of when the active set was last sized. */
struct pp_rt_util {
	u64 updated_ns; /* the time that it stands for */
	u64 used_ns;	/* of pp_cpu.rt_ns, and of what they used then, what is in @fp */
	u32 fp;		/* as pp_cpu.util_fp */
};

static struct pp_rt_util rt_utils[PP_MAX_CPUS];

/* The utilization that real-time tasks have of a CPU, what they use just now included: a burst
 * that counted as it ends would be longer than the time since the last sizing. Where in that
 * time they ran does not matter, as it is short. */
static __always_inline u32 measure_rt(const struct pp_cpu *cpu, u32 rank, u64 now)
{
	struct pp_rt_util *util = &rt_utils[rank % PP_MAX_CPUS];
	u64 used_ns = cpu->rt_ns + rt_used_since(cpu, now);
	s64 ran = used_ns - util->used_ns, elapsed = now - util->updated_ns;

	if (ran > 0)
		util->used_ns = used_ns;
	else /* account_rt() is about to add it on that CPU */
		ran = 0;
	if (ran > elapsed)
		ran = elapsed;
	util->fp = util_after(util->fp, elapsed - ran, ran, capacity_now(cpu));
	util->updated_ns = now;
	return pp_util(util->fp);
}

/* A CPU's utilization now, noted for readers of the map of CPUs. Only here, where its cache
 * line is written to anyway: in the hot path that costs nothing. */
static __always_inline u32 note_util(struct pp_cpu *cpu, u64 now)
{
	cpu->util = cpu->online ? pp_util(cpu_util_now(cpu, now)) : 0;
	return cpu->util;
}

/* A CPU's utilization now, less what is bound to it; sees what that and real-time
 * tasks leave. */
verified_once u32 measure_rank(u32 rank, u64 now)
{
	struct pp_cpu *cpu = cpu_state(cpu_at(rank));
	u32 *left = &rank_capacity[rank % PP_MAX_CPUS];
	u32 util = note_util(cpu, now), bound, kept;

	*left = 0;
	if (!cpu->online || !is_free_rank(rank))
		return 0;
	bound = pp_util(util_after(cpu->bound_fp, now - cpu->bound_updated_ns, 0, 0));
	kept = bound + measure_rt(cpu, rank, now);
	*left = cpu->capacity > kept ? cpu->capacity - kept : 1;
	return util > bound ? util - bound : 0;
}

/* Whether the rank before is on the same core, and online. The array is read as
 * volatile: natively the compiler takes a constant for what it was built with. */
static __always_inline bool is_sibling(u32 rank)
{
	return topology.threads_per_core > 1 && rank > 0 &&
	       (topology.siblings[rank_word(rank - 1)] & rank_bit(rank - 1)) &&
	       cpu_state(cpu_at(rank - 1))->online;
}

static __always_inline void describe_rank(u32 rank, struct pp_rank *of)
{
	of->rank = rank;
	of->capacity = rank_capacity[rank % PP_MAX_CPUS];
	of->sibling = is_sibling(rank);
}

verified_once int bound_rank(u32 rank)
{
	struct pp_rank of;

	describe_rank(rank, &of);
	pp_bound_rank(policy_now(), &bounds, sizing_of(node_of(cpu_at(rank))), &of);
	return 0;
}

verified_once int size_rank(u32 rank)
{
	struct pp_rank of;

	describe_rank(rank, &of);
	pp_size_rank(policy_now(), &bounds, sizing_of(node_of(cpu_at(rank))), &of);
	return 0;
}

/* Isolated CPUs carry nothing that is to be sized; they are only noted. */
verified_once int note_isolated(u64 now)
{
	u32 rank;

	bpf_for (rank, topology.nr_free, topology.nr_ranks)
		note_util(cpu_state(cpu_at(rank)), now);
	return 0;
}

/* What is promised to a node now, 1024 a CPU. */
verified_once u64 measure_promised(struct pp_node *node __arg_nonnull, u64 now)
{
	s64 promised = node->promised;
	s64 left = pp_promise_left(promised, since(now, node->promised_ns));

	node->promised_ns = now;
	if (left != promised)
		__sync_fetch_and_add(&node->promised, left - promised);
	return left > 0 ? left >> PP_PROMISE_SHIFT : 0;
}

/* Fill in @bounds and the @sizings for what runs now. */
verified_once int measure(u64 now)
{
	u64 demand = 0;
	u32 rank, node;

	__builtin_memset(&bounds, 0, sizeof(bounds));
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		struct pp_sizing none = {
			.needed = topology.node_begin[node % PP_MAX_NODES],
			.packed = topology.node_begin[node % PP_MAX_NODES],
		};

		*sizing_of(node) = none;
		sizing_of(node)->demand = measure_promised(node_state(node), now);
	}
	bpf_for (rank, 0, topology.nr_free) {
		u32 used = measure_rank(rank, now);

		sizing_of(node_of(cpu_at(rank)))->demand += used;
		demand += used;
		bound_rank(rank);
	}
	active_set.demand = demand;
	if (topology.nr_ranks > topology.nr_free)
		note_isolated(now);
	return 0;
}

/* How large the active set has to be for that. */
verified_once int size_nodes(void)
{
	u32 rank, node;

	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++)
		node_state(node)->full = sizing_of(node)->demand > sizing_of(node)->carries;
	if (topology.nr_nodes > 1)
		pp_share_demand(sizings, topology.nr_nodes);
	bpf_for (rank, 0, topology.nr_free)
		size_rank(rank);
	return 0;
}

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

/* Size the active set of a node; returns whether it has changed. */
verified_once bool size_node(u32 node, u64 now, bool at_once)
{
	const struct pp_policy *policy = policy_now();
	struct pp_node *state = node_state(node);
	struct pp_sizing *sizing = sizing_of(node);
	u32 was = state->end, packed = state->packed, ceiling = ceiling_of(node);
	u32 begin = topology.node_begin[node % PP_MAX_NODES], needed;

	needed = pp_needed_with_spills(sizing->needed, was, ceiling, state->spills);
	if (topology.nr_nodes > 1)
		needed = pp_hold_node(sizing, begin, was, needed, now, &state->quiet_since_ns);
	state->spills = 0;
	state->room = pp_size_room(sizing);
	if (!at_once)
		needed = pp_next_active(was, needed, ceiling, now, policy->shrink_hold_ns,
					&state->shrink_since_ns);
	if (needed > begin)
		needed = end_of_whole(policy, needed, ceiling);
	state->end = needed;
	state->packed = sizing->packed;
	if (needed != was)
		count(needed > was ? PP_EV_GROW : PP_EV_SHRINK);
	return needed != was || packed != sizing->packed;
}

/* Put the active set in force. CPUs that have just become active are to wake; with several
 * LLCs all are, for what waits in one that has no active CPU any more is taken by those of
 * others as they look for work: see take_from_others(). */
verified_once int set_active(void)
{
	u64 *active = scope_ranks[PP_SCOPE_ACTIVE], changed = 0;
	u32 word, node, nr = 0;

	active_set.ceiling = bounds.ceiling;
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++)
		was_active[word] = active[word];
	set_scopes(bounds.ceiling);
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++)
		changed |= active[word] ^ was_active[word];
	for (word = 0; word < topology.nr_words && word < PP_RANK_WORDS; word++)
		to_wake[word] = active[word] &
				(changed && topology.nr_llcs > 1 ? ~0ULL : ~was_active[word]);
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

/* Wake those idle CPUs to take what waits, and note the state of all, which has changed. */
static void kick_idle(void)
{
	u32 rank;

	bpf_for (rank, 0, topology.nr_free) {
		note_state(rank);
		if (test_rank(to_wake, rank) && claim_rank(rank))
			scx_bpf_kick_cpu(cpu_at(rank), 0);
	}
}

/* Free tasks that run on CPUs that are not active are to leave: end their slices, and
 * ops.enqueue places them again. */
static void evacuate(void)
{
	u32 rank;

	bpf_for (rank, 0, topology.nr_free) {
		if (!is_active(cpu_at(rank)) && !test_idle(rank))
			scx_bpf_kick_cpu(cpu_at(rank), SCX_KICK_PREEMPT);
	}
}

/* Size the active set for what runs now, unless another CPU does. */
verified_once int size_active(u64 now)
{
	bool at_once, changed = false;
	u32 node;

	if (__sync_val_compare_and_swap(&sizing_lock, 0, 1))
		return 0;
	/* Both before anything is looked at: a request that comes meanwhile is for the next
	 * time. The order is the reverse of that in request_sizing(). */
	active_set.updated_ns = now;
	at_once = __sync_lock_test_and_set(&active_set.stale, 0);
	at_once |= follow_partitions(now);
	measure(now);
	size_nodes();
	if (topology.nr_nodes > 1)
		share_spills();
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++)
		changed |= size_node(node, now, at_once);
	if (changed || at_once || bounds.ceiling != active_set.ceiling) {
		set_active();
		kick_idle();
	}
	if (at_once)
		evacuate();
	/* Not a plain store: on arm64 what is above could be seen after it. */
	__sync_lock_test_and_set(&sizing_lock, 0);
	return 0;
}

/* Called as CPUs look for what to run; almost always just the comparison. */
static __always_inline void size_active_if_due(u64 now)
{
	if ((s64)(now - active_set.updated_ns) >= (s64)PP_ACTIVE_PERIOD_NS)
		size_active(now);
}

/* The policy or the CPUs are not what they were. */
static __always_inline void request_sizing(void)
{
	active_set.stale = 1;
	active_set.updated_ns = 0;
}

/* Until the first CPU looks for what to run a node has one active CPU. */
verified_once int begin_node(u32 node)
{
	u32 rank = topology.node_begin[node % PP_MAX_NODES];

	node_state(node)->end = rank + 1;
	scope_ranks[PP_SCOPE_ACTIVE][rank_word(rank)] |= rank_bit(rank);
	return 0;
}

verified_once int begin_cpu(u32 rank)
{
	struct pp_cpu *state = cpu_state(cpu_at(rank));

	state->rank = rank;
	begin_free_rank(rank);
	begin_cpu_word(cpu_at(rank), rank);
	state->capacity = topology.capacity_of_rank[rank % PP_MAX_CPUS];
	state->online = !!(topology.online[rank_word(rank)] & rank_bit(rank));
	if (state->online)
		seen_ranks[rank_word(rank)] |= rank_bit(rank);
	return 0;
}

#endif /* PP_ACTIVE_BPF_H */
