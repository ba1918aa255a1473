/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that compete for a CPU, as clock.h compares them: one that is about to be queued, the one
 * that runs, the first of a queue.
 */
#ifndef PP_RIVALS_BPF_H
#define PP_RIVALS_BPF_H

#include "queues.bpf.h"

static __always_inline void task_rival(const struct pp_task *task, struct pp_rival *rival)
{
	rival->deadline = task_deadline(task);
	rival->clock = queue_of(task->queue)->clock;
	rival->weight = task->weight;
	rival->own = is_cpu_queue(task->queue);
	rival->latest = scale_of(task->queue)->latest;
}

/* What runs on a CPU, or is about to; without weight if none of ours has run there yet. */
static __always_inline void curr_rival(const struct pp_cpu *state, struct pp_rival *rival)
{
	rival->deadline = state->curr_deadline;
	rival->clock = queue_of(state->curr_queue)->clock;
	rival->weight = state->curr_weight;
	rival->own = is_cpu_queue(state->curr_queue);
	rival->latest = scale_of(state->curr_queue)->latest;
	if (!rival->own && rival->weight)
		rival->deadline = pp_curr_deadline(rival->deadline, rival->clock,
						   state->curr_run_ns, rival->weight);
}

/* The first task of queue @id; false: there is none. */
verified_once bool head_rival(u32 id, struct pp_rival *rival __arg_nonnull)
{
	struct task_struct *head;
	bool found = false;

	rival->clock = queue_of(id)->clock;
	rival->own = is_cpu_queue(id);
	rival->latest = scale_of(id)->latest;
	bpf_rcu_read_lock();
	head = __COMPAT_scx_bpf_dsq_peek(id);
	if (head) {
		const struct pp_task *task = task_of(head);

		rival->deadline = head->scx.dsq_vtime;
		rival->weight = task ? task->weight : PP_WEIGHT_NICE_0;
		found = true;
	}
	bpf_rcu_read_unlock();
	return found;
}

/* Whether the first task of queue @id is due before @deadline, which is by the same clock. */
static __always_inline bool is_due_before(u32 id, u64 deadline)
{
	struct task_struct *head;
	bool due;

	bpf_rcu_read_lock();
	head = __COMPAT_scx_bpf_dsq_peek(id);
	due = head && (s64)(head->scx.dsq_vtime - deadline) < 0;
	bpf_rcu_read_unlock();
	return due;
}

/* How much later @a is due than @b; they compete for @cpu. */
verified_once s64 rival_gap(s32 cpu, const struct pp_rival *a __arg_nonnull,
			    const struct pp_rival *b __arg_nonnull)
{
	u64 offset = cpu_state(cpu)->clock_offset;

	return pp_rival_gap(a, b, &offset);
}

#endif /* PP_RIVALS_BPF_H */
