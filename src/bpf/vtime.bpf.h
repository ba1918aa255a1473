/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual time of tasks by the clocks of the queues that they join: see clock.h.
 */
#ifndef PP_VTIME_BPF_H
#define PP_VTIME_BPF_H

#include "account.bpf.h"

/* The clock of a CPU's own queue on the scale that is common to all of these. */
static __always_inline u64 common_clock(u32 id)
{
	return queue_of(id)->clock + scale_of(id)->shift;
}

/* Whether any task of the CPU's own queue competes for it: waits, runs or is about to. */
static __always_inline bool has_own_rivals(s32 cpu)
{
	const struct pp_cpu *state = cpu_state(cpu);

	return queue_of(cpu_queue(cpu))->nr > 0 ||
	       ((state->running_since_ns || state->direct_waiting) &&
		state->curr_queue == cpu_queue(cpu));
}

/* By how much the clock of CPU queue @id leads that of the one that the task leaves. Where no
 * task competes the clock has stood still: it goes on as the other. */
static __always_inline s64 common_lead(const struct pp_task *task, u32 id)
{
	if (!has_own_rivals(id - PP_CPU_QUEUE_BASE))
		scale_of(id)->shift = common_clock(task->queue) - queue_of(id)->clock;
	return pp_common_lead(common_clock(id) - common_clock(task->queue), task->weight,
			      topology.tick_ns);
}

/* Where the last turn of a task of the CPU's own queue began. While that is owed something it is
 * before the clock. */
static __always_inline u64 own_front(s32 cpu)
{
	u32 id = cpu_queue(cpu);
	u64 clock = queue_of(id)->clock;

	return has_own_rivals(cpu) ? pp_vtime_min(clock, scale_of(id)->front) : clock;
}

/* Put the virtual time of a task that has come from another queue by the clock of @id. In the
 * middle of its run one that is for some CPUs keeps its place on their common scale. One that has
 * slept has not competed with those of either: what they have had of their CPU is nothing that it
 * owes, or is owed. */
static __always_inline void change_queue(struct pp_task *task, u32 id)
{
	u64 from = queue_of(task->queue)->clock, to = queue_of(id)->clock;
	u64 vtime = pp_vtime_move(task->vtime, from, to);

	if (!is_cpu_queue(task->queue) || !is_cpu_queue(id)) {
		task->vtime = vtime;
	} else if (task->run_ns) {
		task->vtime = vtime - common_lead(task, id);
	} else {
		s64 ahead = task->vtime - own_front(task->queue - PP_CPU_QUEUE_BASE);

		ahead = pp_wake_ahead(ahead, task->run_est_ns, task->weight);
		task->vtime = pp_vtime_max(vtime, own_front(id - PP_CPU_QUEUE_BASE) + ahead);
	}
}

/* What a task may be owed at most. In the middle of its run one that is for some CPUs has been in
 * one of their queues all the time. */
static __always_inline u64 owed_max_ns(const struct pp_task *task)
{
	return task->run_ns && is_cpu_queue(task->queue)
		       ? PP_LEAD_MAX_TURNS * (PP_SLICE_SHARED_NS + topology.tick_ns)
		       : PP_SLICE_SHARED_NS;
}

/* Put the task's virtual time by the clock of @id, with the lag that it has. One that wakes has it
 * by what is served now: it is not to wait until all have what they are owed. */
verified_once int join_queue(struct pp_task *task __arg_nonnull, u32 id)
{
	u64 clock = queue_of(id)->clock;

	if (task->fresh) {
		task->vtime = clock;
		task->fresh = false;
	} else if (task->queue != id) {
		change_queue(task, id);
	}
	task->queue = id;
	if (!is_cpu_queue(id) && !task->run_ns) {
		task->vtime = pp_vtime_slept(task->vtime, clock, task->slept_lag);
		/* What it waits for from now on it is owed, wherever it is put then. */
		task->slept_lag = PP_LAG_KEPT;
	}
	if (is_cpu_queue(id) && !task->run_ns) {
		u64 front =
			pp_front_for(clock, own_front(id - PP_CPU_QUEUE_BASE),
				     scale_of(id)->front_weight, task->weight, topology.tick_ns);

		task->vtime =
			pp_vtime_wake(task->vtime, clock, front, task->weight, topology.tick_ns);
		return 0;
	}
	task->vtime = pp_vtime_join(task->vtime, clock, task->weight, topology.tick_ns,
				    owed_max_ns(task));
	return 0;
}

static __always_inline void pass_clock_to(struct pp_queue *queue, u64 vtime)
{
	u64 clock = pp_clock_pass(queue->clock, vtime);

	/* Not written if it is the same: other CPUs read it. */
	if (clock != queue->clock)
		queue->clock = clock;
}

/* The clock of its queue passes as the task begins to run, and at its ticks if it goes on
 * although others wait, or none does. */
static __always_inline void pass_clock(const struct pp_task *task)
{
	pass_clock_to(queue_of(task->queue), task->vtime);
}

/* A task that has come from the queue of another CPU or LLC goes by the clock of those
 * that it competes with here. */
static __always_inline void follow_clock(struct pp_task *task, s32 cpu)
{
	u32 here = is_cpu_queue(task->queue) ? cpu_queue(cpu) : llc_queue(cpu);

	if (task->queue != here)
		join_queue(task, here);
}

#endif /* PP_VTIME_BPF_H */
