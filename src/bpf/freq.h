/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What performance a CPU should have: what the scheduler requests from the
 * schedutil governor, which adds a quarter (map_util_perf()) and chooses the frequency.
 * Pure, as policy.h.
 */
#ifndef PP_FREQ_H
#define PP_FREQ_H

#include "policy.h"

/* Slower than this, of its capacity, a CPU saves nothing: leakage and what it
 * keeps awake around it are paid for longer. With the quarters that are added
 * here and by schedutil it is seven tenths of the highest frequency. Measured in
 * the simulator: docs/simulator-tables.md. */
#define PP_PERF_FLOOR_PCT 55
/* A quarter more than was used, and schedutil adds another: a CPU that is busy for
 * four fifths of the time, as schedutil alone would have it, leaves a small one no
 * room for its second task. */
#define PP_PERF_MARGIN_DIV 4
/* A target that differs by less is not worth a change: a sixteenth of the CPU's capacity. (Of the
 * largest CPU's capacity it was a quarter of a small one's, which then stayed too slow for its
 * load, or too fast, by where it came from.) */
#define PP_PERF_STEP_DIV 16

/* A task's utilization is right within a sixteenth after four half-lives. */
#define PP_PERF_KNOWN_NS (128 * PP_NS_PER_MS)

/* Others wait long enough for more performance to be worth a change of frequency: less than
 * half of the latency budget, after which they would spill to another CPU. */
#define PP_PERF_PATIENCE_NS (2 * PP_NS_PER_MS)
/* A CPU's target falls when it has needed less for this long, so that tasks which take turns
 * do not move the clock at each turn: more than the 16 ms between a display's frames. */
#define PP_PERF_HOLD_NS (20 * PP_NS_PER_MS)
/* How often idle CPUs are looked at, whether they may have less: a half-life of
 * utilization, in which what they need halves. */
#define PP_PERF_LOOK_NS (32 * PP_NS_PER_MS)

/* Whether a task's utilization says what it needs: it is old enough, and has slept. */
static inline int pp_perf_known(u64 age_ns, u32 nr_runs)
{
	return age_ns >= PP_PERF_KNOWN_NS && nr_runs >= PP_RUNS_KNOWN;
}

/* The lowest target of a CPU of @capacity that runs something. */
static inline u32 pp_perf_floor(u32 capacity)
{
	return capacity * PP_PERF_FLOOR_PCT / 100;
}

/* Whether those @nr that wait in a queue which was last empty @waiting_ns ago have waited for
 * long. */
static inline int pp_perf_others_wait(s32 nr, u64 waiting_ns)
{
	return nr > 0 && waiting_ns >= PP_PERF_PATIENCE_NS;
}

/*
 * The performance target of a CPU of @capacity with utilization @cpu_util that runs a
 * task which needed @task_util when it last ran; all 0..1024. Everything in a @race: the
 * task's utilization is not known, and the CPU's would show it only after tens of milliseconds
 * (the overruns of schedutil in the run/period table); or others wait for the CPU for long,
 * to whose wait packing must not add.
 */
static inline u32 pp_perf_target(u32 cpu_util, u32 task_util, int race, u32 capacity)
{
	u32 need = cpu_util > task_util ? cpu_util : task_util, floor = pp_perf_floor(capacity);

	need += need / PP_PERF_MARGIN_DIV;
	if (race || need > capacity)
		return capacity;
	return need > floor ? need : floor;
}

/* Whether a CPU of @capacity that should have @target needs no less than the @current one. */
static inline int pp_perf_needs(u32 target, u32 current, u32 capacity)
{
	return target + capacity / PP_PERF_STEP_DIV > current;
}

/* What to set for a CPU of @capacity that should have @target, has @current, and has needed less
 * than that for @less_ns. All that it has (a race) is set at once. */
static inline u32 pp_perf_next(u32 target, u32 current, u32 capacity, u64 less_ns)
{
	if (target >= current + capacity / PP_PERF_STEP_DIV || target >= capacity)
		return target;
	if (!pp_perf_needs(target, current, capacity) && less_ns >= PP_PERF_HOLD_NS)
		return target;
	return current;
}

/* Whether an idle CPU gets @target, what is left of its utilization, in place of the @current
 * one, which no run has needed for @less_ns. By however little: it halves from look to look, so
 * there are few steps, and the last one ends at the floor. */
static inline int pp_perf_idle_lowers(u32 target, u32 current, u64 less_ns)
{
	return target < current && less_ns >= PP_PERF_HOLD_NS;
}

#endif /* PP_FREQ_H */
