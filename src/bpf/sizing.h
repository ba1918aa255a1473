/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many CPUs: the size of the active set. Pure, as policy.h.
 */
#ifndef PP_SIZING_H
#define PP_SIZING_H

#include "policy.h"

/* The active set is sized anew at most this often: a tick at HZ=250. */
#define PP_ACTIVE_PERIOD_NS (4 * PP_NS_PER_MS)
/* One spill in a period is an accident, two are evidence that the set is small. */
#define PP_SPILLS_TO_GROW 2

/* How large the active set has to be: begin zeroed but for the demand, then
 * tell every rank in order to pp_size_rank(). */
struct pp_sizing {
	u64 demand;  /* summed utilization of what is free to move */
	u64 carried; /* what the needed prefix carries at the fill level */
	u32 needed;  /* the smallest prefix that carries the demand */
	u32 ceiling; /* the largest one that the policy allows */
	u32 usable;  /* online CPUs seen so far */
	u32 packed;  /* what would be needed if there were no floor */
};

/* A rank as it is told to pp_size_rank(). */
struct pp_rank {
	u32 rank;
	u32 capacity; /* effective: what bound tasks take is off already; 0: offline */
	u32 sibling;  /* the rank before is on the same core, and online */
};

/*
 * Needed is the smallest prefix of the ranks that carries the demand at the
 * fill level. A CPU that is offline neither carries nor counts. A further thread
 * of a core counts, but carries nothing: two threads of a core do little more
 * than one (1.25 to 1.3 times), and each of them less than alone. The mistake of
 * 2013 was to fill cores by their number of threads; it cost a third.
 */
static inline void pp_size_rank(const struct pp_policy *policy, struct pp_sizing *size,
				const struct pp_rank *of)
{
	if (!of->capacity || size->usable >= policy->max_ranks)
		return;
	size->usable++;
	size->ceiling = of->rank + 1;
	if (!size->packed || size->carried < size->demand)
		size->packed = of->rank + 1;
	if (size->usable > policy->min_ranks && size->carried >= size->demand)
		return;
	if (!of->sibling)
		size->carried += (u64)of->capacity * policy->fill_pct / 100;
	size->needed = of->rank + 1;
}

/* What the needed prefix takes beyond the demand. */
static inline u64 pp_size_room(const struct pp_sizing *size)
{
	return size->carried > size->demand ? size->carried - size->demand : 0;
}

/* The needed size, with the spills since it was last sized as evidence: one more
 * CPU for each two. Utilization tells of a load that has just begun only after tens
 * of milliseconds, and then it is too late for who waits. */
static inline u32 pp_needed_with_spills(const struct pp_sizing *size, u32 nr_active, u32 spills)
{
	u32 evident = nr_active + spills / PP_SPILLS_TO_GROW;

	if (spills < PP_SPILLS_TO_GROW || evident < size->needed)
		return size->needed;
	return evident < size->ceiling ? evident : size->ceiling;
}

/* The size of the active set from now on: more at once, less only when less
 * has done for the hold time, so that a bursty load does not flap. */
static inline u32 pp_next_active(u32 nr_active, u32 needed, u32 ceiling, u64 now_ns, u64 hold_ns,
				 u64 *shrink_since_ns)
{
	if (needed >= nr_active || nr_active > ceiling) {
		*shrink_since_ns = 0;
		return needed;
	}
	if (!*shrink_since_ns)
		*shrink_since_ns = now_ns;
	if (now_ns - *shrink_since_ns < hold_ns)
		return nr_active;
	*shrink_since_ns = 0;
	return needed;
}

#endif /* PP_SIZING_H */
