/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's report shows of us when it ends the scheduler, or is asked for one
 * (SysRq-D): the order of waiting tasks, and why a CPU serves which. Times are relative to
 * the report or to the queue's clock; a report is read by people.
 */
#ifndef PP_DUMP_BPF_H
#define PP_DUMP_BPF_H

#include "dispatch.bpf.h"

/* By how many us @time is after @from. */
static __always_inline s64 us_to(u64 time, u64 from)
{
	return (s64)(time - from) / (s64)PP_NS_PER_US;
}

static __always_inline s64 us_since(u64 then)
{
	return us_to(scx_bpf_now(), then);
}

void BPF_STRUCT_OPS(powerpack_dump, struct scx_dump_ctx *dump)
{
	u32 llc, node;

	scx_bpf_dump("powerpack: %u CPUs active, ceiling %u, demand %llu of 1024 a CPU, sized %lld "
		     "us ago%s\n",
		     active_set.nr, active_set.ceiling, active_set.demand,
		     us_since(active_set.updated_ns), active_set.stale ? "; stale" : "");
	bpf_for (node, 0, topology.nr_nodes) {
		const struct pp_node *state = node_state(node);

		scx_bpf_dump("node %u: ranks active before %u, room %lld, promised %lld\n", node,
			     state->end, state->room, state->promised >> PP_PROMISE_SHIFT);
	}
	bpf_for (llc, 0, topology.nr_llcs) {
		scx_bpf_dump("LLC %u: %d wait in its queue, not empty for %lld us, clock %llu\n",
			     llc, queue_of(llc)->nr, us_since(queue_of(llc)->waiting_since_ns),
			     queue_of(llc)->clock);
	}
}

void BPF_STRUCT_OPS(powerpack_dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	const struct pp_cpu *state = cpu_state(cpu);
	const struct pp_queue *queue = queue_of(cpu_queue(cpu));

	scx_bpf_dump(
		"powerpack: rank %d, %s, %d wait in its queue, clock %llu, utilization %u of %u\n",
		rank_of(cpu), is_active(cpu) ? "active" : "surplus", queue->nr, queue->clock,
		state->util, state->capacity);
	if (state->running_since_ns)
		scx_bpf_dump("powerpack: runs one of queue %u for %lld us, deadline %lld us off\n",
			     state->curr_queue, us_since(state->exec_start_ns),
			     us_to(state->curr_deadline, queue_of(state->curr_queue)->clock));
}

void BPF_STRUCT_OPS(powerpack_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	const struct pp_task *task = task_of(p);

	if (!task)
		return;
	scx_bpf_dump("powerpack: queue %u, waits for %lld us, lag %lld us, deadline %lld us off\n",
		     task->queue, task->waits_since_ns ? us_since(task->waits_since_ns) : 0,
		     us_to(queue_of(task->queue)->clock, task->vtime),
		     us_to(task_deadline(task), queue_of(task->queue)->clock));
	scx_bpf_dump("powerpack: utilization %u of 1024, run %llu us, weight %u%s\n",
		     pp_util(task->util_fp), task->run_est_ns / PP_NS_PER_US, task->weight,
		     task->restricted ? ", restricted" : "");
}

#endif /* PP_DUMP_BPF_H */
