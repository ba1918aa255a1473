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
	u32 weight;    /* as pp_queue_weight() has it */
};

/* From bit 0 on: @ns, which is a slice at most, @queue, @class, @efficient, @timer, @weight. */
#define PP_ADDED_QUEUE_SHIFT 22
#define PP_ADDED_CLASS_SHIFT 33
#define PP_ADDED_EFFICIENT_SHIFT 35
#define PP_ADDED_TIMER_SHIFT 36
#define PP_ADDED_WEIGHT_SHIFT 43
_Static_assert(PP_MAX_QUEUES <= 1 << (PP_ADDED_CLASS_SHIFT - PP_ADDED_QUEUE_SHIFT), "a queue's id");
_Static_assert(PP_RUN_CLASSES <= 1 << (PP_ADDED_EFFICIENT_SHIFT - PP_ADDED_CLASS_SHIFT), "a class");

/* The heaviest is 8,670 times nice 0: nice -20, alone in a cgroup of weight 10,000. */
#define PP_QUEUE_WEIGHT_MAX ((1U << (64 - PP_ADDED_WEIGHT_SHIFT)) - 1)

/* A weight in the sums of what waits, rounded up. */
static inline u32 pp_queue_weight(u32 weight)
{
	u32 unit = PP_WEIGHT_NICE_0 / PP_QUEUE_WEIGHT_NICE_0, sum = (weight + unit - 1) / unit;

	return sum < PP_QUEUE_WEIGHT_MAX ? sum : PP_QUEUE_WEIGHT_MAX;
}

static inline u64 pp_added_word(const struct pp_added *added)
{
	return added->ns | (u64)added->queue << PP_ADDED_QUEUE_SHIFT |
	       (u64)added->class << PP_ADDED_CLASS_SHIFT |
	       (u64)added->efficient << PP_ADDED_EFFICIENT_SHIFT |
	       (u64)added->timer << PP_ADDED_TIMER_SHIFT |
	       (u64)added->weight << PP_ADDED_WEIGHT_SHIFT;
}

/* The bits of @word from @from to before @end. */
static inline u32 pp_added_bits(u64 word, u32 from, u32 end)
{
	return word >> from & ((1ULL << (end - from)) - 1);
}

static inline u32 pp_added_ns(u64 word)
{
	return pp_added_bits(word, 0, PP_ADDED_QUEUE_SHIFT);
}

static inline u32 pp_added_queue(u64 word)
{
	return pp_added_bits(word, PP_ADDED_QUEUE_SHIFT, PP_ADDED_CLASS_SHIFT);
}

static inline u32 pp_added_class(u64 word)
{
	return pp_added_bits(word, PP_ADDED_CLASS_SHIFT, PP_ADDED_EFFICIENT_SHIFT);
}

static inline u32 pp_added_efficient(u64 word)
{
	return pp_added_bits(word, PP_ADDED_EFFICIENT_SHIFT, PP_ADDED_TIMER_SHIFT);
}

/* What is added to the number of tasks that wait in a queue, and to the sum of their weights, at
 * once: nr and weight of struct pp_queue are one word. */
static inline u64 pp_waiting_word(u64 word)
{
	u64 weight = word >> PP_ADDED_WEIGHT_SHIFT;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return 1ULL << 32 | weight;
#else
	return weight << 32 | 1;
#endif
}

/* The number of them in such a word. */
static inline s32 pp_waiting_nr(u64 waiting)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return waiting >> 32;
#else
	return waiting;
#endif
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
