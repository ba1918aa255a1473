/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task has added to the counts of a queue, in one word, and for which limit it is held, in
 * another. Pure, as policy.h.
 *
 * The kernel may take a held task out of its DSQ, as for another affinity, just as the timer
 * releases it on another CPU. Each word has one owner at a time, who has put it there or has taken
 * it: so what was added is taken back once, and a hold that has begun since is not ended.
 */
#ifndef PP_ADDED_H
#define PP_ADDED_H

#include "intf.h"

/* To which queue, and what. */
struct pp_added {
	u32 queue;
	u32 class;
	u32 ns;	       /* expected work; not 0 */
	u32 efficient; /* it waits for efficient CPUs alone */
	u32 timer;     /* by this timer of held tasks, from 1 on; 0: by the task's own enqueue */
};

/* From bit 0 on: @ns, @queue, @class, @efficient, @timer. */
#define PP_ADDED_QUEUE_SHIFT 32
#define PP_ADDED_CLASS_SHIFT 48
#define PP_ADDED_EFFICIENT_SHIFT 55
#define PP_ADDED_TIMER_SHIFT 56

static inline u64 pp_added_word(const struct pp_added *added)
{
	return added->ns | (u64)added->queue << PP_ADDED_QUEUE_SHIFT |
	       (u64)added->class << PP_ADDED_CLASS_SHIFT |
	       (u64)added->efficient << PP_ADDED_EFFICIENT_SHIFT |
	       (u64)added->timer << PP_ADDED_TIMER_SHIFT;
}

static inline u32 pp_added_ns(u64 word)
{
	return (u32)word;
}

static inline u32 pp_added_queue(u64 word)
{
	return word >> PP_ADDED_QUEUE_SHIFT & 0xffff;
}

static inline u32 pp_added_class(u64 word)
{
	return word >> PP_ADDED_CLASS_SHIFT & 0x7f;
}

static inline u32 pp_added_efficient(u64 word)
{
	return word >> PP_ADDED_EFFICIENT_SHIFT & 1;
}

/* The @nr-th hold of a task, for @limit, which is not 0. */
static inline u32 pp_hold(u16 nr, u32 limit)
{
	return (u32)nr << 16 | limit;
}

static inline u32 pp_hold_limit(u32 hold)
{
	return hold & 0xffff;
}

#endif /* PP_ADDED_H */
