/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What runs now, and how many CPUs it needs: all ranks are looked at twice, to measure and to size.
 * Some at a time: this is done as a CPU looks for what to run, with its run queue locked and
 * interrupts off, and each rank costs a cache line of another CPU's.
 */
#ifndef PP_MEASURE_BPF_H
#define PP_MEASURE_BPF_H

#include "account.bpf.h"
#include "idle.bpf.h"
#include "queues.bpf.h"
#include "scope.bpf.h"

/* The CPU that sizes the active set holds the lock, and works with these variables: the
 * verifier follows values on the stack through the loops, one by one. (Structs that are static
 * clang may take apart, and leave the type of all to the first member, which the kernel refuses.)
 */
static struct pp_sizing sizings[PP_MAX_NODES];
struct pp_bounds bounds;

/* How far that has come. */
struct pp_sweep {
	u64 begun_ns;
	u64 demand;    /* so far */
	u32 next;      /* the rank to go on from */
	u32 llc_left;  /* of the LLC of that rank, as left_of_llc[] */
	bool runs;     /* has begun, and not ended */
	bool measured; /* all ranks: they are being sized */
	bool at_once;  /* its result is to be in force whatever was before */
	u8 slot;       /* of the policy by which it goes from beginning to end */
};

struct pp_sweep sweep;

static __always_inline const struct pp_policy *sweep_policy(void)
{
	return &policies[sweep.slot & 1];
}

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

/* Note whether a CPU has room for more, for first_with_room(). */
static __always_inline void note_room(const struct pp_cpu *cpu, u32 rank)
{
	struct pp_candidate candidate = { .util = cpu->util, .capacity = cpu->capacity };
	bool has_room = cpu->online && pp_has_room(sweep_policy(), &candidate, 0);

	if (has_room != test_rank(roomy_ranks, rank))
		roomy_ranks[rank_word(rank)] ^= rank_bit(rank);
}

/* Note how a CPU is now: its utilization, which is returned, for readers of the map of CPUs too,
 * whether it has room, and that none waits for it any more. Only here, where its cache line is
 * written to anyway: in the hot path that costs nothing. */
static __always_inline u32 note_rank(struct pp_cpu *cpu, u32 rank, u64 now)
{
	cpu->util = cpu->online ? pp_util(cpu_util_now(cpu, now)) : 0;
	if (walks_set())
		note_room(cpu, rank);
	is_rank_waiting(rank);
	return cpu->util;
}

/* A CPU's utilization now, less what is bound to it; sees what that and real-time
 * tasks leave. */
verified_once u32 measure_rank(u32 rank, u64 now)
{
	struct pp_cpu *cpu = cpu_state(cpu_at(rank));
	u32 *left = &rank_capacity[rank % PP_MAX_CPUS];
	u32 util = note_rank(cpu, rank, now), bound, kept;

	*left = 0;
	if (!cpu->online || !is_free_rank(rank))
		return 0;
	bound = pp_util(util_after(cpu->bound_fp, now - cpu->bound_updated_ns, 0, 0));
	kept = bound + measure_rt(cpu, rank, now);
	*left = cpu->capacity > kept ? cpu->capacity - kept : 1;
	return util > bound ? util - bound : 0;
}

/* Whether a rank before is on the same core, and may be used. The array is read as
 * volatile: natively the compiler takes a constant for what it was built with. */
static __always_inline bool is_sibling(u32 rank)
{
	u32 before;

	for (before = 1; before < topology.threads_per_core && before < PP_MAX_THREADS; before++) {
		if (rank < before ||
		    !(topology.siblings[rank_word(rank - before)] & rank_bit(rank - before)))
			break;
		if (rank_capacity[(rank - before) % PP_MAX_CPUS])
			return true;
	}
	return false;
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
	pp_bound_rank(sweep_policy(), &bounds, sizing_of(node_of(cpu_at(rank))), &of);
	return 0;
}

verified_once int size_rank(u32 rank)
{
	struct pp_rank of;

	describe_rank(rank, &of);
	pp_size_rank(sweep_policy(), &bounds, sizing_of(node_of(cpu_at(rank))), &of);
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

/* Begin to look at what runs, with @bounds and @sizings as for nothing. */
verified_once int begin_sweep(u64 now)
{
	u32 node;

	if (topology.nr_llcs > 1)
		forget_waiting_llcs();
	__builtin_memset(&bounds, 0, sizeof(bounds));
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++) {
		struct pp_sizing none = {
			.needed = topology.node_begin[node % PP_MAX_NODES],
			.packed = topology.node_begin[node % PP_MAX_NODES],
		};

		*sizing_of(node) = none;
		sizing_of(node)->demand = measure_promised(node_state(node), now);
	}
	sweep.slot = policy_slot & 1;
	sweep.begun_ns = now;
	sweep.demand = 0;
	sweep.next = 0;
	sweep.llc_left = 0;
	sweep.measured = false;
	sweep.runs = true;
	return 0;
}

/* Add what is left of rank @rank, which has been measured, to what is left of its LLC. */
static __always_inline void add_left(u32 rank)
{
	s32 cpu = cpu_at(rank);
	u32 llc = llc_queue(cpu) % PP_MAX_LLCS;

	if (is_active(cpu))
		sweep.llc_left += rank_capacity[rank % PP_MAX_CPUS];
	if (rank + 1 < topology.llc_end[llc] && rank + 1 < topology.nr_free)
		return;
	left_of_llc[llc] = sweep.llc_left;
	sweep.llc_left = 0;
}

/* Look at the ranks from the next one to before @end. Isolated CPUs carry nothing that is to be
 * sized; they are only noted. */
verified_once int measure_ranks(u32 end, u64 now)
{
	u32 rank;

	bpf_for (rank, sweep.next, end) {
		u32 used;

		if (topology.nr_ranks > topology.nr_free && rank >= topology.nr_free) {
			note_rank(cpu_state(cpu_at(rank)), rank, now);
			continue;
		}
		used = measure_rank(rank, now);
		sizing_of(node_of(cpu_at(rank)))->demand += used;
		sweep.demand += used;
		bound_rank(rank);
		if (topology.nr_llcs > 1)
			add_left(rank);
	}
	return 0;
}

/* All ranks are measured: what each node has to carry. */
verified_once int end_measuring(void)
{
	u32 node;

	active_set.demand = sweep.demand;
	for (node = 0; node < topology.nr_nodes && node < PP_MAX_NODES; node++)
		node_state(node)->full = sizing_of(node)->demand > sizing_of(node)->carries;
	if (topology.nr_nodes > 1)
		pp_share_demand(sizings, topology.nr_nodes);
	return 0;
}

verified_once int size_ranks(u32 end)
{
	u32 rank;

	bpf_for (rank, sweep.next, end)
		size_rank(rank);
	return 0;
}

/* The end of the next ranks to look at, of @nr. */
static __always_inline u32 sweep_end(u32 nr)
{
	return sweep.next + PP_SWEEP_RANKS < nr ? sweep.next + PP_SWEEP_RANKS : nr;
}

/* Look at some more ranks: at all of them, if there are but a few. Returns whether all have been
 * measured and sized. */
verified_once bool sweep_on(u64 now)
{
	u32 end = sweep_end(sweep.measured ? topology.nr_free : topology.nr_ranks);

	if (topology.nr_ranks <= PP_SWEEP_RANKS) {
		measure_ranks(topology.nr_ranks, now);
		end_measuring();
		size_ranks(topology.nr_free);
		sweep.runs = false;
		return true;
	}
	if (sweep.measured) {
		size_ranks(end);
		sweep.next = end;
		sweep.runs = end < topology.nr_free;
		return !sweep.runs;
	}
	measure_ranks(end, now);
	sweep.next = end;
	if (end == topology.nr_ranks) {
		end_measuring();
		sweep.measured = true;
		sweep.next = 0;
	}
	return false;
}

#endif /* PP_MEASURE_BPF_H */
