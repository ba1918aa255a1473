/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the agent calls, or reads from.
 */
#ifndef PP_AGENT_BPF_H
#define PP_AGENT_BPF_H

#include "dispatch.bpf.h"
#include "throttle.bpf.h"

/* The agent has filled a policy slot: use it from now on, and let a CPU look for
 * what to run, which sizes the active set. */
SEC("syscall")
int apply_policy(struct pp_apply_args *args)
{
	/* A barrier: who sees the request goes by this policy. */
	u32 was = __sync_lock_test_and_set(&policy_slot, args->slot & 1);

	barrier_var(was);
	request_sizing();
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
	return 0;
}

/* What the user's table says of a cgroup. When all are set the agent bumps
 * cgroup_generation. */
SEC("syscall")
int classify(struct pp_classify_args *args)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(args->cgroup_id);
	struct pp_cgroup *state;

	if (!cgrp)
		return -ENOENT;
	state = bpf_cgrp_storage_get(&cgroups, cgrp, NULL,
				     args->workload ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (state)
		state->workload = args->workload;
	bpf_cgroup_release(cgrp);
	return state || !args->workload ? 0 : -ENOMEM;
}

/* The present on the clock of every other time here, for the agent to compare with. */
SEC("syscall")
int sample_now(void *unused)
{
	sampled_ns = scx_bpf_now();
	return 0;
}

/* A row for each task of ours that has run lately; the agent sorts them. */
SEC("iter/task")
int list_tasks(struct bpf_iter__task *iter)
{
	struct task_struct *p = iter->task;
	struct pp_listed_task row = {};
	struct pp_task *task;

	if (!p)
		return 0;
	task = bpf_task_storage_get(&tasks, p, NULL, 0);
	if (!task)
		return 0;
	/* Of one that runs it is as of its last tick. */
	row.util = pp_util(util_after(task->util_fp, scx_bpf_now() - task->updated_ns, 0, 0));
	if (!row.util)
		return 0;
	row.pid = p->pid;
	row.tgid = p->tgid;
	row.cpu = task->last_cpu;
	bpf_seq_write(iter->meta->seq, &row, sizeof(row));
	return 0;
}

/* The agent is the timer of held tasks. Returns in how many us it has to call again; 0: when the
 * ring says so. */
SEC("syscall")
int release_due(void *unused)
{
	u64 now = scx_bpf_now(), first_ns = ~0ULL;
	u32 id;

	timer_tgid = bpf_get_current_task_btf()->tgid;
	bpf_for (id, 0, PP_HELD_QUEUES) {
		const struct held_queue *queue = held_queue_of(id);

		if (queue->due_ns && (s64)(now - queue->due_ns) >= 0)
			release_queue(id);
		if (queue->due_ns && since(queue->due_ns, now) < first_ns)
			first_ns = since(queue->due_ns, now);
	}
	return first_ns == ~0ULL ? 0 : first_ns / PP_NS_PER_US + 1;
}

#endif /* PP_AGENT_BPF_H */
