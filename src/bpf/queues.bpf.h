/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: one DSQ per LLC, shared by its active CPUs and ordered by
 * virtual deadline, and one per CPU for tasks that may not run everywhere.
 *
 *	id	  0 .. 63	   64 .. 575
 *	queue	  of LLC id	   of CPU id - 64
 *
 * @nr and @queued_ns are estimates: they are raised after a task is in the DSQ
 * and lowered after one is taken, and nothing tells when a queued task changes
 * its class. Whoever finds the DSQ empty sets them right. What must not be
 * wrong (may a CPU go idle, has a slice ended) asks the DSQ itself. The queue
 * of a CPU has only that CPU to take from it, so that its @nr is never too low.
 */
#ifndef PP_QUEUES_BPF_H
#define PP_QUEUES_BPF_H

#include "account.bpf.h"

/* Take back what the task added to its queue's expected work. */
static __always_inline void leave_queue(struct pp_task *task)
{
	if (!task->queued_ns)
		return;
	__sync_fetch_and_add(&queue_of(task->queue)->queued_ns[task->queued_class % PP_RUN_CLASSES],
			     -(s64)task->queued_ns);
	task->queued_ns = 0;
}

/* Put the task's virtual time on the scale of @id and within the lag. */
verified_once int join_vtime(struct pp_task *task __arg_nonnull, u32 id)
{
	struct pp_queue *to = queue_of(id), *from = queue_of(task->queue);

	if (task->fresh) {
		task->vtime = to->vtime;
		task->fresh = false;
	} else if (to != from) {
		task->vtime += to->vtime - from->vtime;
	}
	task->queue = id;
	task->vtime = pp_vtime_join(task->vtime, to->vtime);
	return 0;
}

verified_once u32 task_run_class(const struct pp_task *task __arg_nonnull)
{
	return pp_run_class(task_run_left(task));
}

verified_once u64 task_deadline(const struct pp_task *task __arg_nonnull)
{
	return pp_deadline(task->vtime, task_run_left(task), task->weight);
}

static __always_inline void insert_queue(struct task_struct *p, struct pp_task *task, u32 id,
					 u64 enq_flags)
{
	struct pp_queue *queue = queue_of(id);
	u64 left = task_run_left(task);

	task->queued_class = task_run_class(task);
	task->queued_ns = left < PP_SLICE_SHARED_NS ? left + 1 : PP_SLICE_SHARED_NS;
	__sync_fetch_and_add(&queue->queued_ns[task->queued_class % PP_RUN_CLASSES],
			     task->queued_ns);
	scx_bpf_dsq_insert_vtime(p, id, PP_SLICE_ALONE_NS, task_deadline(task), enq_flags);
	__sync_fetch_and_add(&queue->nr, 1);
}

/* The DSQ was empty after @nr tasks were thought to be in it. */
static __always_inline void correct_queue(struct pp_queue *queue, s32 nr)
{
	__sync_fetch_and_add(&queue->nr, -nr);
	for (int class = 0; class < PP_RUN_CLASSES; class ++)
		queue->queued_ns[class] = 0;
}

/* Move the first task of queue @id to this CPU's local DSQ. */
verified_once bool take_from(u32 id)
{
	struct pp_queue *queue = queue_of(id);
	s32 nr = queue->nr;

	if (id >= PP_CPU_QUEUE_BASE && !nr)
		return false;
	if (scx_bpf_dsq_move_to_local(id, 0)) {
		__sync_fetch_and_add(&queue->nr, -1);
		return true;
	}
	if (nr && !scx_bpf_dsq_nr_queued(id))
		correct_queue(queue, nr);
	return false;
}

/* The queues' clocks, at the ticks of a busy CPU. */
verified_once int advance_vtime_floor(u32 id, u64 now)
{
	struct pp_queue *queue = queue_of(id);
	u64 elapsed = now - queue->floor_ns, floor;

	if (!queue->nr || elapsed > PP_NS_PER_MS * 1000) {
		queue->floor_ns = now;
		queue->floor_vtime = queue->vtime;
		return 0;
	}
	floor = pp_vtime_floor(queue->floor_vtime, elapsed);
	if ((s64)(floor - queue->vtime) > 0)
		queue->vtime = floor;
	return 0;
}

/* Whether anybody waits for what runs on @cpu; exact. */
static __always_inline bool others_wait(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(cpu_queue(cpu)) > 0 ||
	       (is_active(cpu) && scx_bpf_dsq_nr_queued(llc_queue(cpu)) > 0) ||
	       scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

#endif /* PP_QUEUES_BPF_H */
