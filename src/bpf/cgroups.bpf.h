/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel reports of cgroups: that they come, go and change.
 */
#ifndef PP_CGROUPS_BPF_H
#define PP_CGROUPS_BPF_H

#include "throttle.bpf.h"

/* As the kernel passes "max". */
#define PP_QUOTA_MAX_US (~0ULL)

/* Where the next free place in limits[] is looked for: far from one that has just become free,
 * which tasks that have left the cgroup may still name. */
static u32 limit_cursor;
/* Cgroups whose limit is not enforced, as all places are taken; the agent reads it. */
u32 nr_unlimited;

/* A free place for cgroup @cgroup_id; 0: there is none. */
verified_once u32 claim_limit(u64 cgroup_id)
{
	u32 step;

	bpf_for (step, 1, PP_MAX_LIMITS) {
		u32 id = 1 + (limit_cursor + step) % (PP_MAX_LIMITS - 1);

		if (!__sync_val_compare_and_swap(&limit_of(id)->cgroup_id, 0, cgroup_id)) {
			limit_cursor = id;
			return id;
		}
	}
	return 0;
}

/* As tg_set_cfs_bandwidth() of the kernel: from now on with a full budget, and no debts. */
static __always_inline void set_limit(struct cgroup *cgrp, struct pp_cgroup *state, u64 period_us,
				      u64 quota_us, u64 burst_us)
{
	bool limited = quota_us != PP_QUOTA_MAX_US;
	struct pp_limit *limit;
	u32 id;

	if (!limited && !state->limit)
		return;
	if (!state->limit)
		state->limit = claim_limit(cgrp->kn->id);
	id = state->limit;
	if (!id) {
		__sync_fetch_and_add(&nr_unlimited, 1);
		return;
	}
	limit = limit_of(id);
	limit->quota_ns = 0;
	limit->period_ns = period_us * PP_NS_PER_US;
	limit->burst_ns = burst_us * PP_NS_PER_US;
	limit->period_began_ns = scx_bpf_now();
	limit->budget_ns = limited ? quota_us * PP_NS_PER_US : 0;
	limit->quota_ns = limited ? quota_us * PP_NS_PER_US : 0;
	__sync_fetch_and_add(&cgroup_generation, 1);
	/* Those that are held by the old limit. */
	look_at_held_in(id, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(powerpack_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	struct pp_cgroup *state =
		bpf_cgrp_storage_get(&cgroups, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!state)
		return -ENOMEM;
	state->weight = args->weight;
	/* Since Linux 6.17. */
	if (bpf_core_field_exists(args->bw_quota_us))
		set_limit(cgrp, state, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

void BPF_STRUCT_OPS(powerpack_cgroup_exit, struct cgroup *cgrp)
{
	struct pp_cgroup *state = bpf_cgrp_storage_get(&cgroups, cgrp, NULL, 0);
	struct pp_limit *limit;

	if (!state)
		return;
	state->weight = 0;
	if (!state->limit)
		return;
	limit = limit_of(state->limit);
	state->limit = 0;
	limit->quota_ns = limit->nr_periods = limit->nr_throttled = 0;
	limit->throttled_ns = 0;
	limit->parent = 0;
	limit->cgroup_id = 0;
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
		set_limit(cgrp, state, period_us, quota_us, burst_us);
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
