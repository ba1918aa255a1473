/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: one DSQ per LLC, shared by its active CPUs and ordered by
 * virtual deadline, and one per CPU for tasks that may not run everywhere.
 *
 *	id	  0 .. 63	   1024 .. 2047
 *	queue	  of LLC id	   of CPU id - 1024
 *
 * @nr and @queued_ns are raised just before a task is in the DSQ, and lowered as it
 * begins to run, is placed anew or leaves us: @nr may be too high for a moment, but
 * is never too low. Whether a CPU may go idle or a slice has ended is asked of the
 * DSQ itself.
 */
#ifndef PP_QUEUES_BPF_H
#define PP_QUEUES_BPF_H

#include "account.bpf.h"

/* Count @nr more tasks, of class @class and @ns in all, as waiting in queue @id. */
static __always_inline void add_waiting(u32 id, s32 nr, u32 class, s64 ns)
{
	struct pp_queue *queue = queue_of(id);

	__sync_fetch_and_add(&queue->queued_ns[class % PP_RUN_CLASSES], ns);
	__sync_fetch_and_add(&queue->nr, nr);
	if (id >= PP_CPU_QUEUE_BASE)
		__sync_fetch_and_add(&nr_waiting_for_cpus, nr);
}

/* Whether the task waits for efficient CPUs alone. */
static __always_inline void note_efficient(struct pp_task *task, bool waits)
{
	if (task->queued_efficient == waits)
		return;
	task->queued_efficient = waits;
	__sync_fetch_and_add(&nr_waiting_efficient, waits ? 1 : -1);
}

/* The task does not wait any more, or is about to wait elsewhere. */
static __always_inline void leave_queue(struct pp_task *task)
{
	if (!task->queued_ns)
		return;
	add_waiting(task->queue, -1, task->queued_class, -(s64)task->queued_ns);
	task->queued_ns = 0;
	note_efficient(task, false);
}

/* Who has the clock of queue @id: all queues of an LLC go by one, so that those who
 * wait for a CPU in different ones can be compared. */
static __always_inline struct pp_queue *clock_of(u32 id)
{
	return queue_of(id < PP_CPU_QUEUE_BASE ? id : llc_queue(id - PP_CPU_QUEUE_BASE));
}

/* Put the task's virtual time on the scale of @id and within the lag. */
verified_once int join_vtime(struct pp_task *task __arg_nonnull, u32 id)
{
	struct pp_queue *to = clock_of(id), *from = clock_of(task->queue);

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

/* A clock is at the most advanced task that has run: set as one begins to, and at
 * its ticks, for a hog may go on alone for long. Whoever comes then would be behind
 * by all of that time, and would make up for it. */
static __always_inline void lead_clock(const struct pp_task *task)
{
	struct pp_queue *clock = clock_of(task->queue);

	if ((s64)(task->vtime - clock->vtime) > 0)
		clock->vtime = task->vtime;
}

/* Virtual time @vtime of queue @from on the scale of queue @to: as far from its clock. */
static __always_inline u64 on_scale_of(u32 to, u64 vtime, u32 from)
{
	return vtime + clock_of(to)->vtime - clock_of(from)->vtime;
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
	u64 left = task_run_feared(task);

	if (queue->nr <= 0)
		queue->waiting_since_ns = scx_bpf_now();
	task->queued_class = pp_run_class(left);
	task->queued_ns = left < PP_SLICE_SHARED_NS ? left + 1 : PP_SLICE_SHARED_NS;
	add_waiting(id, 1, task->queued_class, task->queued_ns);
	scx_bpf_dsq_insert_vtime(p, id, PP_SLICE_ALONE_NS, task_deadline(task), enq_flags);
}

/* Move the first task of queue @id to this CPU's local DSQ. */
verified_once bool take_from(u32 id)
{
	return queue_of(id)->nr > 0 && scx_bpf_dsq_move_to_local(id, 0);
}

/* A task that another LLC has taken goes by the clock of that from now on: else it
 * would be ahead of its own clock alone, and might never be behind those here. */
static __always_inline void follow_clock(struct pp_task *task, s32 cpu)
{
	if (nr_llcs > 1 && clock_of(task->queue) != queue_of(llc_queue(cpu)))
		join_vtime(task, llc_queue(cpu));
}

/* The clock of LLC queue @id, at the ticks of a busy CPU: it goes on at least at
 * the floor's pace from where it was at the last one. */
verified_once int advance_vtime_floor(u32 id, u64 now)
{
	struct pp_queue *queue = queue_of(id);
	u64 elapsed = now - queue->floor_ns, floor = pp_vtime_floor(queue->floor_vtime, elapsed);
	bool waits = queue->nr > 0 || nr_waiting_for_cpus > 0;

	if (waits && elapsed < PP_NS_PER_MS * 1000 && (s64)(floor - queue->vtime) > 0)
		queue->vtime = floor;
	queue->floor_ns = now;
	queue->floor_vtime = queue->vtime;
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
