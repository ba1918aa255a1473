/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frequency of CPUs: what it is, and what performance they should have. Only
 * the schedutil governor obeys the latter; until a target is set it
 * gives a sched_ext scheduler the highest frequency. On a machine without
 * cpufreq all of this is gone after verification.
 */
#ifndef PP_FREQ_BPF_H
#define PP_FREQ_BPF_H

#include "queues.bpf.h"
#include "freq.h"

static __always_inline void look_at_freq(struct pp_cpu *state, s32 cpu)
{
	if (topology.has_cpufreq)
		state->freq = scx_bpf_cpuperf_cur(cpu);
}

static __always_inline void set_perf_target(struct pp_cpu *state, s32 cpu, u32 target)
{
	state->perf = target;
	count(PP_EV_PERF_TARGET);
	scx_bpf_cpuperf_set(cpu, target);
}

/* What @cpu should have for what it runs, whose utilization is up to date. */
static __always_inline u32 perf_target(const struct pp_cpu *state, s32 cpu,
				       const struct pp_task *task, u64 now)
{
	u32 est = task->util_est, util = pp_util(task->util_fp);
	bool known = pp_perf_known(now - task->born_ns, task->nr_runs);
	bool race = !known || queue_of(cpu_queue(cpu))->nr > 0 ||
		    (is_active(cpu) && queue_of(llc_queue(cpu))->nr > 0);

	return pp_perf_target(pp_util(state->util_fp), util > est ? util : est, race,
			      state->capacity);
}

/* A task begins to run. */
static __always_inline void update_perf_at_start(struct pp_cpu *state, s32 cpu,
						 const struct pp_task *task, u64 now)
{
	u32 target;

	if (!topology.has_cpufreq)
		return;
	target = perf_target(state, cpu, task, now);
	if (pp_perf_differs(target, state->perf))
		set_perf_target(state, cpu, target);
}

/* It goes on. Set again even if it is the same: the governor may have been
 * called too soon after its last change, and have ignored it. */
static __always_inline void update_perf_at_tick(struct pp_cpu *state, s32 cpu,
						const struct pp_task *task, u64 now)
{
	if (topology.has_cpufreq)
		set_perf_target(state, cpu, perf_target(state, cpu, task, now));
}

/* An idle CPU must not keep the clock that it shares with others high. Not lower
 * than what it will have when it next runs something: the governor changes the
 * frequency only so often, and that might be too soon then. */
static __always_inline void lower_perf_when_idle(struct pp_cpu *state, s32 cpu)
{
	u32 floor = pp_perf_floor(state->capacity);

	if (topology.has_cpufreq && state->perf > floor)
		set_perf_target(state, cpu, floor);
}

#endif /* PP_FREQ_BPF_H */
