/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task has from its cgroups: its part of their weights (shares.h), the innermost limit,
 * and what the user's table says.
 */
#ifndef PP_INHERIT_BPF_H
#define PP_INHERIT_BPF_H

#include "bandwidth.bpf.h"
#include "shares.h"

/* The load of a cgroup, as pp_load_of() has it; see shares.h. */
struct pp_load {
	s64 counted; /* of what has been seen in this epoch */
	s64 left;    /* of what has been seen in the last one, and not yet in this one */
	u32 epoch;
};

struct pp_cgroup {
	struct pp_load load;
	u64 counts;   /* in its parent: see count_in() */
	u32 weight;   /* cpu.weight; 0: it has no cpu controller, and its tasks are its parent's */
	u32 workload; /* enum pp_workload */
	u32 limit;    /* its place in limits[], once it has had one */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pp_cgroup);
} cgroups SEC(".maps");

/* Before Linux 6.17 the kernel does not report cpu.max: it is read wherever a task looks for what
 * it has from its cgroups, ten times a second at least. */
verified_once int poll_cpu_max(struct cgroup *cgrp __arg_trusted,
			       struct pp_cgroup *group __arg_nonnull)
{
	struct pp_cpu_max max = {};

	if (!read_cpu_max(cgrp, &max))
		return 0;
	if (group->limit ? pp_is_other_limit(limit_of(group->limit), &max) : max.quota_ns != 0)
		set_limit(cgrp->kn->id, &group->limit, &max);
	return 0;
}

/* The same for all cgroups of @p, which waits until the limit of one of them lets it run. */
verified_once int poll_limits_of(struct task_struct *p __arg_trusted)
{
	struct cgroup *cgrp;
	u32 level;

	bpf_rcu_read_lock();
	cgrp = p->cgroups->dfl_cgrp;
	bpf_for (level, 1, CGROUP_DEPTH_MAX) {
		struct cgroup *ancestor = bpf_cgroup_ancestor(cgrp, level);
		struct pp_cgroup *group;

		if (!ancestor)
			break;
		group = bpf_cgrp_storage_get(&cgroups, ancestor, NULL, 0);
		if (group)
			poll_cpu_max(ancestor, group);
		bpf_cgroup_release(ancestor);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* From a task's cgroup up to the root. */
struct pp_path {
	u64 *counts;	      /* that of the task, or of the last cgroup */
	u64 part;	      /* what the task has of that cgroup: see shares.h */
	u32 weight, runnable; /* of the same, see pp_runnable_part() */
	u32 epoch;
	u32 workload, limit; /* the innermost ones */
	u32 outer;	     /* the last limit */
};

/* The cgroup's limit, if it has one now, is above those of the path. */
static __always_inline void add_limit(struct pp_path *path, u32 id)
{
	if (!id || !limit_of(id)->quota_ns)
		return;
	if (!path->limit)
		path->limit = id;
	else if (limit_of(path->outer)->parent != id)
		limit_of(path->outer)->parent = id;
	path->outer = id;
}

/* No limit is above the last one. */
static __always_inline void end_limits(const struct pp_path *path)
{
	if (path->outer && limit_of(path->outer)->parent)
		limit_of(path->outer)->parent = 0;
}

/* A new epoch begins, for one of the CPUs that see it. What another one counts just then may be
 * off for an epoch. */
static __always_inline void begin_epoch(struct pp_load *load, u32 epoch)
{
	u32 last = load->epoch;
	s64 counted = load->counted;

	if ((s32)(epoch - last) <= 0 ||
	    __sync_val_compare_and_swap(&load->epoch, last, epoch) != last)
		return;
	__sync_fetch_and_add(&load->counted, -counted);
	load->left = epoch - last == 1 ? counted : 0;
}

/* From now on @counts, an epoch and the word that is counted for it, is in the load for one of
 * @weight that is runnable for @part of the time; returns the load. */
verified_once s64 count_in(struct pp_load *load __arg_nonnull, u64 *counts __arg_nonnull, u32 epoch,
			   u32 weight, u32 part)
{
	u64 before = *counts, after;
	u32 age = epoch - (before >> 32), word;
	s64 last = pp_load_of(before), others, now;

	begin_epoch(load, epoch);
	others = load->counted + load->left - (age <= 1 ? last : 0);
	word = pp_count_word(
		pp_counts_for(weight, part, pp_load_counts(others), pp_load_part(others)), part);
	after = (u64)epoch << 32 | word;
	now = pp_load_of(word);
	if (before != after && __sync_val_compare_and_swap(counts, before, after) == before) {
		__sync_fetch_and_add(&load->counted, now - (age ? 0 : last));
		if (age == 1 && last)
			__sync_fetch_and_add(&load->left, -last);
	}
	return others + now;
}

/* pp_part() and pp_load_part() of a load. Not in the loop over cgroups: the verifier would follow
 * each of their branches at each level. */
verified_once u64 part_in(s64 load, u64 part, u32 weight)
{
	return pp_part(part, weight, pp_load_counts(load));
}

verified_once u32 part_of_time(s64 load)
{
	return pp_load_part(load);
}

/* The task has a part of what is above it. */
static __always_inline void add_group(struct pp_path *path, struct pp_cgroup *group, bool idle)
{
	s64 load = count_in(&group->load, path->counts, path->epoch, path->weight, path->runnable);

	path->part = part_in(load, path->part, path->weight);
	path->runnable = part_of_time(load);
	path->counts = &group->counts;
	path->weight = idle ? PP_WEIGHT_IDLE : group->weight;
}

static void look_up_path(struct cgroup *cgrp, struct pp_path *path)
{
	u32 depth = cgrp->level, step;

	if (depth >= CGROUP_DEPTH_MAX)
		depth = CGROUP_DEPTH_MAX - 1;
	bpf_for (step, 0, depth) {
		struct cgroup *ancestor = bpf_cgroup_ancestor(cgrp, depth - step);
		struct pp_cgroup *group;

		if (!ancestor)
			break;
		group = bpf_cgrp_storage_get(&cgroups, ancestor, NULL, 0);
		if (group) {
			if (group->weight)
				add_group(path, group, is_idle_group(ancestor));
			if (!reports_cpu_max())
				poll_cpu_max(ancestor, group);
			path->workload = path->workload ?: group->workload;
			add_limit(path, group->limit);
		}
		bpf_cgroup_release(ancestor);
	}
}

verified_once int refresh_cgroup(struct task_struct *p __arg_trusted,
				 struct pp_task *task __arg_nonnull, enum pp_stop stop)
{
	u64 now = scx_bpf_now();
	struct pp_path path = {
		.counts = &task->counts,
		.part = PP_PART_ALL,
		.weight = p->scx.weight,
		.runnable = pp_runnable_part(task->run_ns, task->runnable_ns,
					     since(now, task->counted_ns), stop),
		.epoch = pp_epoch(now),
	};

	task->cgroup_generation = cgroup_generation;
	task->counted_ns = now;
	task->runnable_ns = 0;
	/* Not scx_bpf_task_cgroup(): that knows only cgroups with the cpu controller, and the
	 * user's table may name any. */
	bpf_rcu_read_lock();
	look_up_path(p->cgroups->dfl_cgrp, &path);
	bpf_rcu_read_unlock();
	end_limits(&path);
	task->weight = pp_weight_of(path.part, path.weight);
	task->workload = path.workload;
	task->limit = path.limit;
	return 0;
}

/* Look the task's cgroups up if it is time to, or what they say has changed; whether it has. */
static __always_inline bool follow_cgroup(struct task_struct *p, struct pp_task *task, u64 now,
					  enum pp_stop stop)
{
	bool changed = task->cgroup_generation != cgroup_generation;

	if (changed ||
	    pp_is_share_due(task->run_ns, task->runnable_ns, since(now, task->counted_ns), stop))
		refresh_cgroup(p, task, stop);
	return changed;
}

/* A task is treated as its parent until it is looked up: a short-lived one never is. */
static __always_inline void inherit_cgroup(struct pp_task *task, const struct pp_task *parent)
{
	if (!parent)
		return;
	task->weight = parent->weight;
	task->workload = parent->workload;
	task->limit = parent->limit;
}

/* The task's nice value or cgroup has changed: look it up when it next stops or ticks. */
static __always_inline void invalidate_cgroup(struct pp_task *task)
{
	task->cgroup_generation = cgroup_generation - 1;
}

#endif /* PP_INHERIT_BPF_H */
