/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What performance a CPU should have: what the scheduler requests from the
 * schedutil governor, which adds a quarter (map_util_perf()) and chooses the frequency.
 * Pure, as policy.h.
 */
#ifndef PP_FREQ_H
#define PP_FREQ_H

#include "policy.h"

/* An eighth more than was used lately, and schedutil adds a quarter: a CPU that is busy for
 * four fifths of the time, as schedutil alone would have it, leaves a small one no
 * room for its second task. */
#define PP_PERF_MARGIN_DIV 8
/* A target that differs by less is not worth a change: a sixteenth of the CPU's capacity. (Of the
 * largest CPU's capacity it was a quarter of a small one's, which then stayed too slow for its
 * load, or too fast, by where it came from.) */
#define PP_PERF_STEP_DIV 16

/* A task's utilization is right within a sixteenth after four half-lives. */
#define PP_PERF_KNOWN_NS (128 * PP_NS_PER_MS)

/* Others wait long enough for more performance to be worth a change of frequency: most of the
 * latency budget, after which they would spill to another CPU. */
#define PP_PERF_PATIENCE_NS (4 * PP_NS_PER_MS)
/* A CPU's target falls to the most that it has needed in this window and the one before: what
 * comes several times in that time, as a display's frames and tasks that take turns, does not move
 * the clock each time. The memory of utilization is as long: two half-lives. */
#define PP_PERF_WINDOW_NS (64 * PP_NS_PER_MS)
/* How often idle CPUs are looked at, whether they may have less: a half-life of
 * utilization, in which what they need halves. */
#define PP_PERF_LOOK_NS (32 * PP_NS_PER_MS)

/* Whether a task's utilization says what it needs: it is old enough, and has slept. */
static inline int pp_perf_known(u64 age_ns, u32 nr_runs)
{
	return age_ns >= PP_PERF_KNOWN_NS && nr_runs >= PP_RUNS_KNOWN;
}

/* Whether those @nr that wait in a queue which was last empty @waiting_ns ago have waited for
 * long. */
static inline int pp_perf_others_wait(s32 nr, u64 waiting_ns)
{
	return nr > 0 && waiting_ns >= PP_PERF_PATIENCE_NS;
}

/*
 * The performance target of a CPU of @capacity with utilization @cpu_util that runs a
 * task which needed @task_util when it last ran; all 0..1024. No less than @floor, as slower than
 * that the CPU saves nothing: what it keeps awake around it is paid for longer. Everything in a
 * @race: the task's utilization is not known, and the CPU's would show it only after tens of
 * milliseconds (the overruns of schedutil in the run/period table); or others wait for the CPU for
 * long, to whose wait packing must not add.
 */
static inline u32 pp_perf_target(u32 cpu_util, u32 task_util, int race, u32 capacity, u32 floor)
{
	u32 need = cpu_util > task_util ? cpu_util : task_util;

	need += need / PP_PERF_MARGIN_DIV;
	if (race || need > capacity)
		return capacity;
	return need > floor ? need : floor;
}

/* The most that a CPU has needed lately: in the window that runs and in the one before. */
static inline u32 pp_perf_peak(const struct pp_perf_peaks *peaks, u64 now_ns)
{
	u64 ago_ns = now_ns - peaks->begun_ns;

	if (ago_ns >= 2 * PP_PERF_WINDOW_NS)
		return 0;
	if (ago_ns >= PP_PERF_WINDOW_NS || peaks->now > peaks->before)
		return peaks->now;
	return peaks->before;
}

/* It needs @target now; the most that it has needed lately. */
static inline u32 pp_perf_note(struct pp_perf_peaks *peaks, u32 target, u64 now_ns)
{
	u64 ago_ns = now_ns - peaks->begun_ns;

	if (ago_ns >= PP_PERF_WINDOW_NS) {
		peaks->before = ago_ns < 2 * PP_PERF_WINDOW_NS ? peaks->now : 0;
		peaks->now = 0;
		peaks->begun_ns = now_ns;
	}
	if (target > peaks->now)
		peaks->now = target;
	return pp_perf_peak(peaks, now_ns);
}

/* What to set for a CPU of @capacity that should have @target, has @current, and has lately needed
 * @peak at most, which is no less than @target. All that it has (a race) is set at once. */
static inline u32 pp_perf_next(u32 target, u32 current, u32 capacity, u32 peak)
{
	u32 step = capacity / PP_PERF_STEP_DIV;

	if (target >= current + step || target >= capacity)
		return target;
	return peak + step <= current ? peak : current;
}

#endif /* PP_FREQ_H */
