/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: one DSQ per LLC, shared by its active CPUs and ordered by
 * virtual deadline, and one per CPU for tasks that may not run everywhere.
 *
 *	id	  0 .. 63	   1024 .. 2047
 *	queue	  of LLC id	   of CPU id - 1024
 *
 * @nr and @queued_ns are raised just before a task is in the DSQ, and lowered as it
 * begins to run, is placed again or leaves us: @nr may be too high for a moment, but
 * is never too low. Whether a CPU may go idle or a slice has ended is decided by
 * the DSQ itself, if @nr is not 0: to find a DSQ by its id the kernel looks in a hash table.
 */
#ifndef PP_QUEUES_BPF_H
#define PP_QUEUES_BPF_H

#include "idle.bpf.h"
#include "vtime.bpf.h"

/*
 * Sets of queues in which tasks wait, so that those who look for work do not look at all queues.
 * Others write them seldom: a queue is added when its first task comes, and removed when somebody
 * finds it empty much later. Who adds the first task raises @nr before it reads the set, and who
 * removes the queue reads @nr again after, in both cases with a full barrier between (see
 * add_to_ranks()): no queue with tasks is missing.
 */
verified_once int add_waiting_queue(u32 id)
{
	u32 rank;

	if (!is_cpu_queue(id)) {
		if (topology.nr_llcs > 1 && !test_rank(waiting_llcs, id))
			add_to_ranks(NULL, waiting_llcs, id);
		return 0;
	}
	rank = rank_of(id - PP_CPU_QUEUE_BASE);
	if (!test_rank(waiting_ranks, rank))
		add_to_ranks(&waiting_words, waiting_ranks, rank);
	return 0;
}

/* Whether tasks wait in the queue of any CPU, or have waited lately. */
static __always_inline bool is_any_waiting(void)
{
	return topology.nr_words > 1 ? waiting_words : waiting_ranks[0];
}

/* Whether a task waits in the queue of the CPU at @rank, which is removed from the set if not. */
verified_once bool is_rank_waiting(u32 rank)
{
	struct pp_queue *queue = queue_of(cpu_queue(cpu_at(rank)));

	if (queue->nr > 0 || !test_rank(waiting_ranks, rank))
		return queue->nr > 0;
	if (remove_from_ranks(&waiting_words, waiting_ranks, rank) && queue->nr > 0)
		add_to_ranks(&waiting_words, waiting_ranks, rank);
	return queue->nr > 0;
}

/* Remove the queues of LLCs in which none waits from the set. */
verified_once int forget_waiting_llcs(void)
{
	u32 llc;

	bpf_for (llc, 0, topology.nr_llcs) {
		if (test_rank(waiting_llcs, llc) && queue_of(llc)->nr <= 0 &&
		    remove_from_ranks(NULL, waiting_llcs, llc) && queue_of(llc)->nr > 0)
			add_to_ranks(NULL, waiting_llcs, llc);
	}
	return 0;
}

/* The first LLC from @llc on, all round, in whose queue tasks wait, or have waited lately; -1:
 * there is none. */
verified_once s32 next_waiting_llc(u32 llc)
{
	return pp_next_rank(waiting_llcs, (topology.nr_llcs + PP_WORD_BITS - 1) / PP_WORD_BITS,
			    llc);
}

/* The same of the queues of single CPUs, by rank. */
verified_once s32 next_waiting_rank(u32 rank)
{
	return pp_next_rank(waiting_ranks, topology.nr_words, rank);
}

static __always_inline u64 *waiting_of(struct pp_queue *queue)
{
	return (u64 *)&queue->nr;
}

/* Count a task as waiting, as the word @added of it says. */
static __always_inline void add_waiting(u64 added)
{
	struct pp_queue *queue = queue_of(pp_added_queue(added));

	if (pp_added_efficient(added))
		__sync_fetch_and_add(&nr_waiting_efficient, 1);
	__sync_fetch_and_add(&queue->queued_ns[pp_added_class(added) % PP_RUN_CLASSES],
			     pp_added_ns(added));
	if (pp_waiting_nr(__sync_fetch_and_add(waiting_of(queue), pp_waiting_word(added))) <= 0)
		add_waiting_queue(pp_added_queue(added));
}

/* Take that back. */
static __always_inline void remove_waiting(u64 added)
{
	struct pp_queue *queue = queue_of(pp_added_queue(added));

	if (!added)
		return;
	if (pp_added_efficient(added))
		__sync_fetch_and_add(&nr_waiting_efficient, -1);
	__sync_fetch_and_add(&queue->queued_ns[pp_added_class(added) % PP_RUN_CLASSES],
			     -(s64)pp_added_ns(added));
	__sync_fetch_and_add(waiting_of(queue), -pp_waiting_word(added));
}

/* The task does not wait any more, or is about to wait elsewhere. */
static __always_inline void leave_queue(struct pp_task *task)
{
	if (!task->added)
		return;
	task->for_efficient = false;
	remove_waiting(__sync_lock_test_and_set(&task->added, 0));
}

/* The task begins to run: it has been runnable while it waited, too. */
static __always_inline void end_wait(struct pp_task *task, u64 now)
{
	if (!task->waits_since_ns)
		return;
	task->runnable_ns += since(now, task->waits_since_ns);
	task->waits_since_ns = 0;
}

verified_once u32 task_run_class(const struct pp_task *task __arg_nonnull)
{
	return pp_run_class(task_run_left(task));
}

static __always_inline u64 deadline_of(const struct pp_task *task)
{
	return pp_deadline(task->vtime, task_run_left(task), task->weight);
}

/* The same where there is more than one call. */
verified_once u64 task_deadline(const struct pp_task *task __arg_nonnull)
{
	return deadline_of(task);
}

/* What @timer, or its own enqueue, is to add to queue @id for the task. */
static __always_inline u64 added_by(const struct pp_task *task, u32 id, bool efficient, u32 timer)
{
	struct pp_queue *queue = queue_of(id);
	/* One that is not known yet may be long, so it delays no short one; but eight new ones that
	 * turn out short are not to spill for the sum of what all might be. */
	struct pp_added added = {
		.queue = id,
		.class = pp_run_class(task_run_pessimistic(task)),
		.ns = pp_queued_work(task_run_left(task)),
		.efficient = efficient,
		.timer = timer,
		.weight = pp_queue_weight(task->weight),
	};

	if (queue->nr <= 0)
		queue->waiting_since_ns = scx_bpf_now();
	return pp_added_word(&added);
}

/* The task waits from now on, if it has not waited before. */
static __always_inline void begin_wait(struct pp_task *task)
{
	if (!task->waits_since_ns)
		task->waits_since_ns = scx_bpf_now();
}

/* The task is about to be put in queue @id. */
verified_once int note_queued(struct pp_task *task __arg_nonnull, u32 id)
{
	u64 added = added_by(task, id, task->for_efficient, 0);

	begin_wait(task);
	remove_waiting(__sync_lock_test_and_set(&task->added, added));
	add_waiting(added);
	return 0;
}

static __always_inline void insert_queue(struct task_struct *p, struct pp_task *task, u32 id,
					 u64 enq_flags)
{
	u64 deadline = task_deadline(task), *latest = &scale_of(id)->latest;

	note_queued(task, id);
	if ((s64)(deadline - *latest) > 0)
		*latest = deadline;
	scx_bpf_dsq_insert_vtime(p, id, PP_SLICE_ALONE_NS, deadline, enq_flags);
}

/* The same for tasks that are for the packed ones. */
static __always_inline u32 nr_packed_servers(u32 llc)
{
	barrier_var(llc);
	return packed_of_llc[llc % PP_MAX_LLCS] ?: 1;
}

/* See pp_longest_wait(); 0: none waits in queue @id, which @servers serve. */
verified_once u64 longest_wait(const struct pp_task *task __arg_nonnull, u32 id, u64 kept_ns,
			       u32 servers)
{
	const struct pp_queue *queue = queue_of(id);
	struct pp_queued queued = {
		.queued_ns = queue->queued_ns,
		.nr = queue->nr,
		.waiting_ns = since(scx_bpf_now(), queue->waiting_since_ns),
	};

	if ((s32)queued.nr <= 0)
		return 0;
	return pp_longest_wait(&queued, kept_ns, task_run_left(task), servers);
}

/* Move the first task of queue @id, in which some wait by their count, to this CPU's local DSQ. */
verified_once bool take_first(u32 id)
{
	return scx_bpf_dsq_move_to_local(id, 0);
}

/* The same of a queue that is most often empty, which is seen without a call. */
static __always_inline bool take_from(u32 id)
{
	return queue_of(id)->nr > 0 && take_first(id);
}

/* Whether the task, if it is not bound, may or is to run on some CPUs only. */
static __always_inline bool is_for_some_cpus(const struct pp_task *task)
{
	return task->restricted || task->kept_small || task->workload == PP_WORKLOAD_EFFICIENT;
}

/* Whether the task is for the CPU's own queue: it may not run everywhere. */
static __always_inline bool is_for_own_queue(const struct task_struct *p,
					     const struct pp_task *task)
{
	return is_for_some_cpus(task) || is_bound(p);
}

/* Whether a task waits in a queue that @cpu serves, or is about to, or has just left it. */
static __always_inline bool queues_counted(s32 cpu)
{
	return queue_of(cpu_queue(cpu))->nr > 0 ||
	       (is_active(cpu) && queue_of(llc_queue(cpu))->nr > 0);
}

/* Whether a task waits in queue @id; exact. */
static __always_inline bool queue_waits(u32 id)
{
	return queue_of(id)->nr > 0 && scx_bpf_dsq_nr_queued(id) > 0;
}

/* Whether a task waits in a queue that @cpu serves; exact. */
static __always_inline bool queues_wait(s32 cpu)
{
	return queue_waits(cpu_queue(cpu)) || (is_active(cpu) && queue_waits(llc_queue(cpu)));
}

/* Whether a task waits for the one that runs on @cpu; exact. */
static __always_inline bool others_wait(s32 cpu)
{
	return queues_wait(cpu) || scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

#endif /* PP_QUEUES_BPF_H */
