/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.weight: what of its cgroup's weight is a task's own. Pure, as policy.h.
 *
 * Queues hold tasks, not cgroups, so that a task is placed and taken without a look at others of
 * its cgroup. The weight by which its virtual time passes is its part of the weight of the cgroup
 * below the root that it is in:
 *
 *	part(task)    = weight by nice / load(cgroup) * part(cgroup)
 *	part(cgroup)  = weight / load(parent) * part(parent), 1 below the root
 *	weight(task)  = part(task) * weight(cgroup below the root)
 *
 * A cgroup's load is the weight of whatever competes in it, its tasks and its cgroups, each for the
 * part of the time in which it is runnable (see pp_counts_for()): what the kernel's tg->load_avg is
 * to calc_group_shares() (kernel/sched/fair.c). So the tasks of a cgroup have its weight together,
 * however many they are. In the root nothing is divided: cgroups and tasks have their own.
 *
 * A load is the sum of what tasks and cgroups count for. That is noted as they stop or have
 * run for some ms, and changes only when they begin or cease to compete: hogs do not write to it.
 * What has not been seen for an epoch or two does not count any more, as it has moved elsewhere, or
 * sleeps: nothing has to be subtracted.
 */
#ifndef PP_SHARES_H
#define PP_SHARES_H

#include "intf.h"

/* After this much runnable time a task is counted: about once a tick, and one that runs for
 * microseconds once in some hundred runs. A run of more is a long one. */
#define PP_SHARE_EVERY_NS (4 * 1000 * 1000ULL)
/* One that sleeps most of the time looks for its weight this often: the others may have gone. */
#define PP_SHARE_OLD_NS (100 * 1000 * 1000ULL)
/* Runnable time of less is not worth a look as a task exits. */
#define PP_SHARE_MIN_NS (50 * 1000ULL)

/* An epoch, in which all that competes is seen: PP_WAIT_MAX_NS and a turn. */
#define PP_EPOCH_SHIFT 30
/* A task that is runnable all the time, and the steps in which the part of others is
 * rounded: each change is written to the cgroup. */
#define PP_RUNNABLE_ALL 1024
#define PP_RUNNABLE_STEP 64

/* A cgroup with cpu.idle: the minimum. The kernel's WEIGHT_IDLEPRIO is a third of it. */
#define PP_WEIGHT_IDLE 1

/* All of what a cgroup has. */
#define PP_PART_SHIFT 30
#define PP_PART_ALL (1ULL << PP_PART_SHIFT)

static inline u32 pp_epoch(u64 now)
{
	return now >> PP_EPOCH_SHIFT;
}

/* Whether a task goes on, sleeps or exits, as it stops or at its tick. */
enum pp_stop {
	PP_STOP_GOES_ON,
	PP_STOP_SLEEPS,
	PP_STOP_EXITS,
};

/* For what part of the time a task competes, of PP_RUNNABLE_ALL. In a long run it does all the
 * time, and then not at all. One of short runs by how long it was runnable since it was counted
 * last; what exits does not come back in this epoch. */
static inline u32 pp_runnable_part(u64 run_ns, u64 runnable_ns, u64 since_ns, enum pp_stop stop)
{
	u64 steps;

	/* It may have waited for more than an epoch. */
	if (stop == PP_STOP_EXITS && runnable_ns >> PP_EPOCH_SHIFT)
		return PP_RUNNABLE_ALL;
	if (stop == PP_STOP_EXITS)
		return (runnable_ns * PP_RUNNABLE_ALL) >> PP_EPOCH_SHIFT;
	if (run_ns >= PP_SHARE_EVERY_NS)
		return stop == PP_STOP_SLEEPS ? 0 : PP_RUNNABLE_ALL;
	if (runnable_ns >= since_ns)
		return PP_RUNNABLE_ALL;
	steps = PP_RUNNABLE_ALL / PP_RUNNABLE_STEP;
	return (runnable_ns * steps + since_ns / 2) / since_ns * PP_RUNNABLE_STEP;
}

/*
 * What a task or a cgroup counts for, in eights, and for what part of the time it is runnable, are
 * a word: weights of up to 10,000 need 21 bits, and a part of up to PP_RUNNABLE_ALL the other
 * eleven. The sum of such words is a load, with more bits for each.
 */
#define PP_COUNT_BITS 21
#define PP_COUNT_SHIFT 3
#define PP_LOAD_BITS 36
_Static_assert(PP_RUNNABLE_ALL >> (32 - PP_COUNT_BITS) == 0, "a part fits its bits");

/*
 * One of @weight that is runnable for @part of the time counts for as much of the others' time
 * as it takes, not for what it might have by its weight while they wait: who sleeps for most of
 * the time leaves the rest to them. So that with others of @others, who are runnable for
 * @others_part of the time together,
 *
 *	counts / (counts + others) <= part
 *
 * Others who are not runnable all the time are taken as if they were.
 */
static inline u32 pp_counts_for(u32 weight, u32 part, u64 others, u32 others_part)
{
	u64 most;

	_Static_assert(PP_RUNNABLE_ALL == 1 << PP_WEIGHT_SHIFT, "a part times a weight");
	if (part >= PP_RUNNABLE_ALL || !others)
		return weight * part;
	if (others_part && others_part < PP_RUNNABLE_ALL)
		others = others * PP_RUNNABLE_ALL / others_part;
	most = others * part / (PP_RUNNABLE_ALL - part);
	return most < (u64)weight * part ? most : weight * part;
}

static inline u32 pp_count_word(u32 counts, u32 part)
{
	return counts >> PP_COUNT_SHIFT | part << PP_COUNT_BITS;
}

/* What the word is in a load. */
static inline s64 pp_load_of(u32 word)
{
	return (s64)(word >> PP_COUNT_BITS) << PP_LOAD_BITS | (word & ((1 << PP_COUNT_BITS) - 1));
}

/* The weights of all in a load. What CPUs have just counted may be missing: no less than 0. */
static inline u64 pp_load_counts(s64 load)
{
	s64 counts = (s64)((u64)load << (64 - PP_LOAD_BITS)) >> (64 - PP_LOAD_BITS);

	return counts > 0 ? (u64)counts << PP_COUNT_SHIFT : 0;
}

/* For what part of the time any of them is runnable, if no two are at the same time. */
static inline u32 pp_load_part(s64 load)
{
	s64 counts = (s64)((u64)load << (64 - PP_LOAD_BITS)) >> (64 - PP_LOAD_BITS);
	s64 part = (load - counts) >> PP_LOAD_BITS;

	if (part <= 0)
		return 0;
	return part < PP_RUNNABLE_ALL ? part : PP_RUNNABLE_ALL;
}

/* What something has of the cgroup that it is in, of PP_PART_ALL, which is @part of what is
 * to have @weight in a cgroup of @load. While that runs the load is no less than its own weight,
 * whatever the average is. */
static inline u64 pp_part(u64 part, u32 weight, u64 load)
{
	u64 own = (u64)weight << PP_WEIGHT_SHIFT;

	return load <= own ? part : part * own / load;
}

/* The weight of a task that has @part of a cgroup of @weight in the root. */
static inline u32 pp_weight_of(u64 part, u32 weight)
{
	u64 own = (part * weight) >> (PP_PART_SHIFT - PP_WEIGHT_SHIFT);

	return own ? own : 1;
}

/* Whether to look what a task counts for, and what its weight is, after @since_ns. */
static inline int pp_is_share_due(u64 run_ns, u64 runnable_ns, u64 since_ns, enum pp_stop stop)
{
	return runnable_ns >= PP_SHARE_EVERY_NS || since_ns >= PP_SHARE_OLD_NS ||
	       (stop == PP_STOP_SLEEPS && run_ns >= PP_SHARE_EVERY_NS) ||
	       (stop == PP_STOP_EXITS && runnable_ns >= PP_SHARE_MIN_NS);
}

#endif /* PP_SHARES_H */
