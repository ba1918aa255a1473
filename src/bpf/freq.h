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
/* A target that differs by less is not worth a call: a sixteenth. */
#define PP_PERF_STEP (PP_CAPACITY_MAX / 16)

/* A task's utilization is right within a sixteenth after four half-lives. */
#define PP_PERF_KNOWN_NS (128 * PP_NS_PER_MS)

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

/*
 * The performance target of a CPU of @capacity with utilization @cpu_util that runs a
 * task which needed @task_util when it last ran; all 0..1024. What is not known
 * yet gets everything: the CPU's utilization would show it only after tens
 * of milliseconds (the overruns of schedutil in the run/period table). So does a
 * CPU for which others wait (@race): to pack must not add to their wait.
 */
static inline u32 pp_perf_target(u32 cpu_util, u32 task_util, int race, u32 capacity)
{
	u32 need = cpu_util > task_util ? cpu_util : task_util, floor = pp_perf_floor(capacity);

	need += need / PP_PERF_MARGIN_DIV;
	if (race || need > capacity)
		return capacity;
	return need > floor ? need : floor;
}

/* Whether @target is worth a call to a governor that has @current. */
static inline int pp_perf_differs(u32 target, u32 current)
{
	return target > current ? target - current >= PP_PERF_STEP
				: current - target >= PP_PERF_STEP;
}

#endif /* PP_FREQ_H */
