/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task that wakes takes the CPU from what runs there.
 */
#ifndef PP_CONTEST_H
#define PP_CONTEST_H

#include "policy.h"

/* How often the weight of what runs goes into that of a task that wakes, to which each ms that it
 * waits is so much more of what it was promised. */
static inline u32 pp_times_lighter(u32 weight, u32 waking_weight)
{
	return weight && waking_weight > weight ? waking_weight / weight : 1;
}

/* However heavy a task is that wakes, less than a tenth of PP_LONG_RUN_NS is not long to it, and
 * less than a tenth of PP_PREEMPT_LEFT_MIN_NS is worth no switch: else a kernel thread of nice -20
 * would take the CPU from what has 0.01 ms to go. */
#define PP_TIMES_LONG_MAX 10

/* How many ms each ms of what runs counts, where it is asked whether that is long. */
static inline u32 pp_times_long(u32 weight, u32 waking_weight)
{
	u32 times = pp_times_lighter(weight, waking_weight);

	return times < PP_TIMES_LONG_MAX ? times : PP_TIMES_LONG_MAX;
}

/* How what runs on a CPU, and a task that wakes for it, stand. */
struct pp_contest {
	u64 ran_ns;	   /* for how long what runs has run */
	u64 left_ns;	   /* for how long it is expected to go on */
	u64 taken_ns;	   /* since when no waking task has taken the CPU */
	u32 weight;	   /* of what runs */
	u32 waking_weight; /* of the one that wakes */
	u32 own;	   /* which waits in the CPU's own queue, not in a shared one */
	u32 async;	   /* and was not woken by one that is about to sleep */
	s64 gap;	   /* how much later that one is due, as of pp_rival_gap() */
};

/* Whether a run is a hog's, by what was expected of it when it began. */
static inline int pp_is_hog(u64 expected_ns)
{
	return expected_ns >= PP_HOG_RUN_NS;
}

/* Whether what runs is to make way at once, as it has a slice or more to go: a task that wakes is
 * due before the turn of what runs began, so it has had less than its share. Not for one that gets
 * a message: each would cut short the batch of the next, and hackbench, some of whose tasks are
 * hogs, took 1.4 times as long. */
static inline int pp_owes_turn(const struct pp_contest *c)
{
	return c->left_ns >= PP_SLICE_SHARED_NS && c->async &&
	       c->gap + (s64)pp_vtime_delta(PP_SLICE_SHARED_NS, c->weight) < 0;
}

/* Whether what runs has had the ms that it is let run, as it would get nowhere if it were taken off
 * by each that wakes. What it has run counts the more the lighter it is: it keeps none waiting. */
static inline int pp_has_run(const struct pp_contest *c)
{
	return c->ran_ns * pp_times_lighter(c->weight, c->waking_weight) >= PP_PREEMPT_RAN_MIN_NS;
}

/* Whether what runs may be preempted. One that is done within a slice is let begin. */
static inline int pp_may_preempt(const struct pp_contest *c)
{
	if (pp_has_run(c) || pp_owes_turn(c))
		return 1;
	return c->own ? c->taken_ns >= PP_PREEMPT_OWN_PAUSE_NS
		      : c->taken_ns >= PP_PREEMPT_PAUSE_NS && c->left_ns >= PP_SLICE_SHARED_NS;
}

/* When a waking task last took the CPU, as of one that takes it @now. For a task that is @bound to
 * the CPU pauses that were not used count for a tick, as long as it waits if it comes too early: a
 * thread that runs for 0.1 ms and sleeps for 0.03 had two runs in each tick beside a hog. */
static inline u64 pp_taken(u64 taken_ns, u64 now_ns, u64 tick_ns, int bound)
{
	u64 unused_max_ns = tick_ns - PP_PREEMPT_OWN_PAUSE_NS;
	u64 next_ns = taken_ns + PP_PREEMPT_OWN_PAUSE_NS;

	if (!bound)
		return now_ns;
	return pp_vtime_max(pp_vtime_min(next_ns, now_ns), now_ns - unused_max_ns);
}

/* Whether a waking task that is to run for @run_ns goes before one that was expected to run for
 * @expected_ns when it began, if that may be preempted. */
static inline int pp_should_preempt(const struct pp_contest *c, u64 run_ns, u64 expected_ns)
{
	u32 times = pp_times_long(c->weight, c->waking_weight);

	return pp_is_long(expected_ns * times, c->ran_ns * times) &&
	       pp_goes_first(c->gap, run_ns, c->left_ns, times);
}

#endif /* PP_CONTEST_H */
