/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frequency of CPUs: what it is, and what performance they should have. Only
 * the schedutil governor obeys the latter; until a target is set it
 * gives a sched_ext scheduler the highest frequency. On a machine without
 * cpufreq all of this is gone after verification.
 */
#ifndef PP_FREQ_BPF_H
#define PP_FREQ_BPF_H

#include "idle.bpf.h"
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

/* What a CPU is to be set to that should have @target. */
static __always_inline u32 next_perf(struct pp_cpu *state, u32 target, u64 now)
{
	u32 peak = pp_perf_note(&state->perf_peaks, target, now);

	return pp_perf_next(target, state->perf, state->capacity, peak);
}

static __always_inline u32 perf_floor(const struct pp_cpu *state)
{
	return topology.perf_floor_of_rank[state->rank % PP_MAX_CPUS];
}

/* What to set a CPU to that runs @task, whose utilization is up to date. */
static __always_inline u32 perf_of(struct pp_cpu *state, const struct pp_task *task, bool race,
				   u64 now)
{
	u32 est = task->util_est, util = pp_util(task->util_fp);

	util = util > est ? util : est;
	return next_perf(state,
			 pp_perf_target(pp_util(cpu_util_now(state, now)), util, race,
					state->capacity, perf_floor(state)),
			 now);
}

/* A task begins to run. */
static __always_inline void update_perf_at_start(struct pp_cpu *state, s32 cpu,
						 const struct pp_task *task, u64 now)
{
	u32 perf;

	if (!topology.has_cpufreq)
		return;
	perf = perf_of(state, task, false, now);
	if (perf != state->perf)
		set_perf_target(state, cpu, perf);
}

static __always_inline bool others_wait_long(s32 queue, u64 now)
{
	const struct pp_queue *of = queue_of(queue);

	return pp_perf_others_wait(of->nr, since(now, of->waiting_since_ns));
}

/* It goes on: only now, for what is over sooner a change of frequency, which stalls a CPU for
 * tens of us on silicon, is not worth it. Set again even if it is the same: the governor may
 * have been called too soon after its last change, and have ignored it. */
static __always_inline void update_perf_at_tick(struct pp_cpu *state, s32 cpu,
						const struct pp_task *task, u64 now)
{
	bool race;

	if (!topology.has_cpufreq)
		return;
	race = !pp_perf_known(now - task->born_ns, task->nr_runs) ||
	       others_wait_long(cpu_queue(cpu), now) ||
	       (is_active(cpu) && others_wait_long(llc_queue(cpu), now));
	set_perf_target(state, cpu, perf_of(state, task, race, now));
}

/* What an idle CPU of this utilization needs when it next runs something. */
static __always_inline u32 idle_perf(const struct pp_cpu *state, u64 now)
{
	return pp_perf_target(pp_util(cpu_util_now(state, now)), 0, 0, state->capacity,
			      perf_floor(state));
}

/* What an idle CPU is to be set to: by however little it is less, for that halves from window to
 * window, so there are few steps, and the last one ends at the floor. */
static __always_inline u32 lower_perf(const struct pp_cpu *state, u64 now)
{
	u32 need = idle_perf(state, now), peak = pp_perf_peak(&state->perf_peaks, now);

	return need > peak ? need : peak;
}

/* An idle CPU must not keep the clock that it shares with others high; but it keeps what it
 * has lately needed: the governor changes the frequency only so often, and that might be too soon
 * when it next runs something. */
static __always_inline void lower_perf_when_idle(struct pp_cpu *state, s32 cpu, u64 now)
{
	u32 perf;

	if (!topology.has_cpufreq)
		return;
	perf = lower_perf(state, now);
	if (perf < state->perf)
		set_perf_target(state, cpu, perf);
}

static u64 perf_looked_ns;   /* when look_at_idle_perf() has last looked */
static u32 perf_looked_rank; /* and whom it has woken */

/* Wake an idle CPU that may have less by now: it lowers its target as it looks for a task. Its own
 * target alone: the governor goes by the clock of that CPU's run queue, which stands still while it
 * is idle, and ignores what seems to come too soon; since Linux 6.15 the kernel allows no other
 * under a run queue's lock. One CPU at a time: of two that share a clock the second would be
 * ignored too. */
static __always_inline void look_at_idle_perf(u64 now)
{
	u64 looked_ns = perf_looked_ns;
	u32 nth;

	if (!topology.has_cpufreq || since(now, looked_ns) < PP_PERF_LOOK_NS ||
	    !__sync_bool_compare_and_swap(&perf_looked_ns, looked_ns, now))
		return;
	bpf_for (nth, 0, topology.nr_ranks) {
		/* Each in turn: the first ones run something again and again. */
		u32 rank = (perf_looked_rank + 1 + nth) % topology.nr_ranks;
		const struct pp_cpu *state = cpu_state(cpu_at(rank));

		if (!test_idle(rank) || lower_perf(state, now) >= state->perf)
			continue;
		perf_looked_rank = rank;
		scx_bpf_kick_cpu(cpu_at(rank), 0);
		return;
	}
}

/* That CPU looks for a task. One that was claimed for a task is not idle any more. */
static __always_inline void lower_perf_when_woken(s32 cpu)
{
	if (topology.has_cpufreq && test_idle(rank_of(cpu)))
		lower_perf_when_idle(cpu_state(cpu), cpu, scx_bpf_now());
}

#endif /* PP_FREQ_BPF_H */
