/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many CPUs: the size of the active set. Pure, as policy.h.
 */
#ifndef PP_SIZING_H
#define PP_SIZING_H

#include "policy.h"

/* The active set is sized at most this often: a tick at HZ=250. */
#define PP_ACTIVE_PERIOD_NS (4 * PP_NS_PER_MS)
/* How many ranks are looked at in one go, in two passes: 2,100 basic blocks and 130 cache lines of
 * other CPUs, some 10 us (`scx_powerpack sim table costs`). */
#define PP_SWEEP_RANKS 64
/* And how long after that CPUs that look for what to run go on with the next ones: 1,024 ranks take
 * half a period, if there are as many events. */
#define PP_SWEEP_GAP_NS (PP_ACTIVE_PERIOD_NS / 64)
/* Threads of a core: POWER has the most. */
#define PP_MAX_THREADS 8
/* One spill in a period is an accident, two are evidence that the set is small. */
#define PP_SPILLS_TO_GROW 2
/* What runs on a memory node stays there as long as the node has room: to pack it on
 * another one would save a CPU and make every access to memory a far one. Less than a
 * twentieth of a CPU is not worth keeping a package awake for. */
#define PP_NODE_DEMAND_MIN (PP_CAPACITY_MAX / 20)
/* And only when it has been less for this long: a task that has left does not come back. */
#define PP_NODE_HOLD_NS (1000 * PP_NS_PER_MS)

/* Which ranks the policy allows and demands: begin zeroed, then call pp_bound_rank()
 * for every rank in order. */
struct pp_bounds {
	u32 cores;   /* seen so far, with a CPU that may be used */
	u32 first;   /* ranks below are the first of these and what is offline before it */
	u32 floor;   /* ranks below are always active */
	u32 ceiling; /* ranks at and above never are */
};

/* How large the active set of a memory node has to be. */
struct pp_sizing {
	u64 demand;  /* summed utilization of what is free to move */
	u64 carries; /* what all its usable ranks carry at the fill level */
	u64 carried; /* what the needed prefix of them does */
	u32 first;   /* the end of the smallest prefix with a CPU that may be used; 0: none */
	u32 needed;  /* the end of the smallest prefix that carries the demand */
	u32 packed;  /* what would be needed if there were no floor */
};

/* A rank as the functions below see it. */
struct pp_rank {
	u32 rank;
	u32 capacity; /* effective: what bound tasks take is off already; 0: it may not be used */
	u32 sibling;  /* one before is on the same core, and may be used */
};

/*
 * What a rank carries at the fill level. A further thread of a core carries nothing:
 * two threads of a core do little more than one (1.25 to 1.3 times), and each of them
 * less than alone. The mistake of 2013 was to fill cores by their number of threads; it
 * cost a third.
 */
static inline u64 pp_rank_carries(const struct pp_policy *policy, const struct pp_rank *of)
{
	return of->sibling ? 0 : (u64)of->capacity * policy->fill_pct / 100;
}

static inline void pp_bound_rank(const struct pp_policy *policy, struct pp_bounds *bounds,
				 struct pp_sizing *node, const struct pp_rank *of)
{
	if (!of->capacity)
		return;
	if (!of->sibling)
		bounds->cores++;
	if (bounds->cores > policy->max_cores)
		return;
	if (policy->all_active || !bounds->first)
		bounds->floor = of->rank + 1;
	if (!bounds->first)
		bounds->first = of->rank + 1;
	if (!node->first)
		node->first = of->rank + 1;
	bounds->ceiling = of->rank + 1;
	node->carries += pp_rank_carries(policy, of);
}

/* Demand on a node without room, or of next to nothing there, is for the first nodes that
 * have room. */
static inline void pp_share_demand(struct pp_sizing *nodes, u32 nr_nodes)
{
	u64 moving = 0;
	u32 node;

	for (node = 0; node < nr_nodes && node < PP_MAX_NODES; node++) {
		u64 demand = nodes[node].demand;
		u64 kept = demand < nodes[node].carries ? demand : nodes[node].carries;

		if (demand < PP_NODE_DEMAND_MIN)
			kept = 0;
		moving += demand - kept;
		nodes[node].demand = kept;
	}
	for (node = 0; node < nr_nodes && node < PP_MAX_NODES; node++) {
		u64 room = nodes[node].carries - nodes[node].demand;
		u64 moved = moving < room ? moving : room;

		nodes[node].demand += moved;
		moving -= moved;
	}
	/* More than the machine carries: all there is, further threads of cores too. */
	for (node = 0; node < nr_nodes && node < PP_MAX_NODES; node++)
		nodes[node].demand += moving;
}

/* Needed is the smallest prefix of a node's ranks that carries the demand. A CPU that
 * is offline does not count. Call it for every rank of the node in order. */
static inline void pp_size_rank(const struct pp_policy *policy, const struct pp_bounds *bounds,
				struct pp_sizing *node, const struct pp_rank *of)
{
	int lacks = node->carried < node->demand;

	if (!of->capacity || of->rank >= bounds->ceiling)
		return;
	/* One CPU at least, for all nodes together. */
	if (lacks || of->rank < bounds->first)
		node->packed = of->rank + 1;
	if (of->rank >= bounds->floor && !lacks)
		return;
	node->carried += pp_rank_carries(policy, of);
	node->needed = of->rank + 1;
}

/* What the needed prefix takes beyond the demand. Ranks that are active beside it take more. */
static inline s64 pp_size_room(const struct pp_sizing *node)
{
	return (s64)(node->carried - node->demand);
}

/* The needed size, with the spills since it was last sized as evidence: one more
 * CPU for each two. Utilization shows a load that has just begun only after tens
 * of milliseconds, and then it is too late for what waits. */
static inline u32 pp_needed_with_spills(u32 needed, u32 end, u32 ceiling, u32 spills)
{
	u32 evident = end + spills / PP_SPILLS_TO_GROW;

	if (spills < PP_SPILLS_TO_GROW || evident < needed)
		return needed;
	return evident < ceiling ? evident : ceiling;
}

/* The end of the active ranks from now on: more at once, less only when less
 * has done for the hold time, so that a bursty load does not flap. */
static inline u32 pp_next_active(u32 end, u32 needed, u32 ceiling, u64 now_ns, u64 hold_ns,
				 u64 *shrink_since_ns)
{
	if (needed >= end || end > ceiling) {
		*shrink_since_ns = 0;
		return needed;
	}
	if (!*shrink_since_ns)
		*shrink_since_ns = now_ns;
	if (now_ns - *shrink_since_ns < hold_ns)
		return end;
	*shrink_since_ns = 0;
	return needed;
}

/* What a node of ranks from @begin on needs that has had next to nothing since
 * @quiet_since_ns (0: not yet): its first CPU for a while longer, if it had one. */
static inline u32 pp_hold_node(const struct pp_sizing *node, u32 begin, u32 end, u32 needed,
			       u64 now_ns, u64 *quiet_since_ns)
{
	if (needed > begin || end == begin || !node->first) {
		*quiet_since_ns = 0;
		return needed;
	}
	if (!*quiet_since_ns)
		*quiet_since_ns = now_ns;
	return now_ns - *quiet_since_ns < PP_NODE_HOLD_NS ? node->first : begin;
}

#endif /* PP_SIZING_H */
