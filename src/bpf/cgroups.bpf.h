/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel reports of cgroups: that they are made, removed and changed.
 */
#ifndef PP_CGROUPS_BPF_H
#define PP_CGROUPS_BPF_H

#include "throttle.bpf.h"

static __always_inline void note_cpu_max(struct cgroup *cgrp, struct pp_cgroup *state,
					 u64 period_us, u64 quota_us, u64 burst_us)
{
	struct pp_cpu_max max = {
		.quota_ns = quota_us == PP_QUOTA_MAX ? 0 : quota_us * PP_NS_PER_US,
		.period_ns = period_us * PP_NS_PER_US,
		.burst_ns = burst_us * PP_NS_PER_US,
	};
	u32 id = set_limit(cgrp->kn->id, &state->limit, &max);

	/* Those that are held by the old limit. */
	if (id)
		look_at_held_in(id, 0);
}

/* How many cgroups there have been: the agent sees by it that one has come. */
u32 nr_cgroups_made;

s32 BPF_STRUCT_OPS_SLEEPABLE(powerpack_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	struct pp_cgroup *state =
		bpf_cgrp_storage_get(&cgroups, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!state)
		return -ENOMEM;
	state->weight = args->weight;
	__sync_fetch_and_add(&nr_cgroups_made, 1);
	if (reports_cpu_max())
		note_cpu_max(cgrp, state, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	else
		poll_cpu_max(cgrp, state);
	return 0;
}

void BPF_STRUCT_OPS(powerpack_cgroup_exit, struct cgroup *cgrp)
{
	struct pp_cgroup *state = bpf_cgrp_storage_get(&cgroups, cgrp, NULL, 0);
	struct pp_limit *limit;
	u32 id;

	if (!state)
		return;
	state->weight = 0;
	id = state->limit;
	if (!id)
		return;
	limit = limit_of(id);
	state->limit = 0;
	limit->quota_ns = limit->nr_periods = limit->nr_throttled = 0;
	limit->throttled_ns = 0;
	limit->parent = 0;
	free_limit(id);
}

void BPF_STRUCT_OPS(powerpack_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct pp_cgroup *state = bpf_cgrp_storage_get(&cgroups, cgrp, NULL, 0);

	if (state)
		state->weight = weight;
}

void BPF_STRUCT_OPS(powerpack_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us,
		    u64 quota_us, u64 burst_us)
{
	struct pp_cgroup *state = bpf_cgrp_storage_get(&cgroups, cgrp, NULL, 0);

	if (state)
		note_cpu_max(cgrp, state, period_us, quota_us, burst_us);
}

void BPF_STRUCT_OPS(powerpack_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct pp_task *task = task_of(p);

	if (!task)
		return;
	/* What it counts for in @from is forgotten there. */
	task->counts = 0;
	/* At once: it may be held by the limit of @from. */
	refresh_cgroup(p, task, PP_STOP_GOES_ON);
}

#endif /* PP_CGROUPS_BPF_H */
