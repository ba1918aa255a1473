/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's constants that are used here. libbpf looks them up in the
 * kernel's BTF as it loads the object. (The scx headers want the agent to do
 * so, which means to parse that BTF twice: a tenth of the load time.)
 */
#ifndef PP_KERNEL_BPF_H
#define PP_KERNEL_BPF_H

#include <scx/common.bpf.h>
#include <bpf/bpf_core_read.h>

#include "bandwidth.h"

/* Macros of the kernel's. What runs, or is about to: as old as __state. */
#define TASK_RUNNING 0
/* All threads of the process are to end. */
#define SIGNAL_GROUP_EXIT 0x4
#ifndef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC 1
#endif

#undef SCX_ENQ_WAKEUP
#undef SCX_ENQ_LAST
#undef SCX_ENQ_REENQ
#undef SCX_ENQ_IMMED
#undef SCX_KICK_PREEMPT
#undef SCX_SLICE_INF
#undef SCX_DSQ_GLOBAL
#undef SCX_DSQ_LOCAL_ON
#undef SCX_DSQ_ITER_REV
#undef SCX_TASK_QUEUED
#undef SCX_ECODE_ACT_RESTART

#define SCX_ENQ_WAKEUP bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_LAST bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_LAST)
#define SCX_ENQ_REENQ bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_REENQ)
#define SCX_KICK_PREEMPT bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_DSQ_GLOBAL bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_GLOBAL)
#define SCX_SLICE_INF bpf_core_enum_value(enum scx_public_consts, SCX_SLICE_INF)
#define SCX_DSQ_LOCAL_ON bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define SCX_DSQ_ITER_REV bpf_core_enum_value(enum scx_dsq_iter_flags, SCX_DSQ_ITER_REV)
#define SCX_ECODE_ACT_RESTART bpf_core_enum_value(enum scx_exit_code, SCX_ECODE_ACT_RESTART)
#define SCX_TASK_QUEUED bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)

/* Not inline, as task_group_of(). */
static __noinline u64 enq_immed_flag(void)
{
	return bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_IMMED);
}

/* With this flag a task that is put in the local DSQ of an idle CPU comes back to ops.enqueue if
 * that cannot run it at once, as a real-time task takes it: since Linux 7.1. Before, it stays there
 * until that one is done, or the kernel's deadline server runs it, as no other CPU can take it. */
static __always_inline u64 enq_immed(void)
{
	return bpf_core_enum_value_exists(enum scx_enq_flags, SCX_ENQ_IMMED) ? enq_immed_flag() : 0;
}

/* Only with CONFIG_UCLAMP_TASK; libbpf finds the fields by these names. Without a name for
 * the inner struct it searches the kernel's types once, not twice: 10 ms at each load. */
struct task_struct___uclamp {
	struct {
		unsigned int value : 11;
	} uclamp[2]; /* UCLAMP_MIN, UCLAMP_MAX */
} __attribute__((preserve_access_index));

/* What the user asks @p to be given at least and at most, 0..1024, as it was when it
 * last became runnable; left alone if the kernel does not say. */
static __always_inline void task_clamps(struct task_struct *p, u32 *clamp_min, u32 *clamp_max)
{
	struct task_struct___uclamp *clamped = (void *)p;
	u32 max;

	if (!bpf_core_field_exists(clamped->uclamp))
		return;
	max = BPF_CORE_READ_BITFIELD(clamped, uclamp[1].value);
	/* 0: no task uses clamps, and the kernel has not filled them in. */
	if (!max)
		return;
	*clamp_min = BPF_CORE_READ_BITFIELD(clamped, uclamp[0].value);
	*clamp_max = max;
}

/* CPUs @word * 64 and on of those that @p may run on, a bit each; 0: it cannot be read. Not by
 * bpf_cpumask_test_cpu(), whose cost grows with the CPUs. */
static __always_inline u64 allowed_cpus(struct task_struct *p, u32 word)
{
	const struct cpumask *mask = BPF_CORE_READ(p, cpus_ptr);
	u64 cpus = 0;

	bpf_probe_read_kernel(&cpus, sizeof(cpus), (const u64 *)mask + word);
	return cpus;
}

/* What is read of a cgroup with the cpu controller. */
struct cgroup___subsys {
	void *subsys[16];
} __attribute__((preserve_access_index));

/* Without a name for the inner struct, as in task_struct___uclamp. */
struct task_group___own {
	int idle;
	struct {
		s64 period;
		u64 quota, burst;
	} cfs_bandwidth;
} __attribute__((preserve_access_index));

/* What the cpu controller knows of a cgroup: NULL for one without it. A css is the first member of
 * its task_group. Called only where the kernel has that controller: elsewhere libbpf leaves an
 * instruction that no verifier takes in the place of cpu_cgrp_id. A function of its own, as inline
 * the compiler moves that instruction up to where it is reached in any case, out of a loop. */
static __noinline struct task_group___own *task_group_of(struct cgroup *cgrp)
{
	struct cgroup___subsys *group = (void *)cgrp;
	struct task_group___own *task_group = NULL;

	bpf_core_read(&task_group, sizeof(task_group),
		      group->subsys + bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id));
	return task_group;
}

/* Whether its cpu.idle is set. Newer kernels have an operation for that, but it can be read on
 * all. */
static __always_inline bool is_idle_group(struct cgroup *cgrp)
{
	struct task_group___own *task_group = NULL;

	if (!bpf_core_field_exists(task_group->idle))
		return false;
	task_group = task_group_of(cgrp);
	return task_group && BPF_CORE_READ(task_group, idle) > 0;
}

/* Whether the kernel reports cpu.max and its changes: since Linux 6.17. */
static __always_inline bool reports_cpu_max(void)
{
	struct scx_cgroup_init_args *args = NULL;

	return bpf_core_field_exists(args->bw_quota_us);
}

/* As the kernel has RUNTIME_INF, for "max". */
#define PP_QUOTA_MAX (~0ULL)

/* A cgroup's cpu.max as the kernel's own scheduler keeps it; false: that has none. */
static __always_inline bool read_cpu_max(struct cgroup *cgrp, struct pp_cpu_max *max)
{
	struct task_group___own *task_group = NULL;
	u64 quota;

	if (!bpf_core_field_exists(task_group->cfs_bandwidth.quota))
		return false;
	task_group = task_group_of(cgrp);
	if (!task_group)
		return false;
	quota = BPF_CORE_READ(task_group, cfs_bandwidth.quota);
	max->quota_ns = quota == PP_QUOTA_MAX ? 0 : quota;
	max->period_ns = BPF_CORE_READ(task_group, cfs_bandwidth.period);
	max->burst_ns = BPF_CORE_READ(task_group, cfs_bandwidth.burst);
	return true;
}

/* What is read of cgroup v2's root, and of its cpuset: its CPUs are a pointer or, with
 * CONFIG_CPUMASK_OFFSTACK off, in it. A css is the first member of its cpuset, too. */
struct cgroup_root___cpuset {
	struct cgroup___subsys cgrp;
} __attribute__((preserve_access_index));

struct cgroup___root {
	struct cgroup_root___cpuset *root;
} __attribute__((preserve_access_index));

struct cpuset___pointer {
	struct cpumask *effective_cpus;
} __attribute__((preserve_access_index));

struct cpuset___array {
	struct cpumask effective_cpus[1];
} __attribute__((preserve_access_index));

/* The CPUs that are in no partition, online ones, in @words words; false: the kernel does not
 * say, as it has no cpusets of cgroup v2. */
static __always_inline bool read_root_cpus(u64 *cpus, u32 words)
{
	struct cgroup___root *group = (void *)bpf_get_current_task_btf()->cgroups->dfl_cgrp;
	struct cgroup_root___cpuset *root = BPF_CORE_READ(group, root);
	void *cpuset = NULL, *mask;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, cpuset_cgrp_id))
		return false;
	bpf_core_read(&cpuset, sizeof(cpuset),
		      root->cgrp.subsys +
			      bpf_core_enum_value(enum cgroup_subsys_id, cpuset_cgrp_id));
	if (!cpuset)
		return false;
	if (bpf_core_field_exists(((struct cpuset___pointer *)cpuset)->effective_cpus))
		mask = BPF_CORE_READ((struct cpuset___pointer *)cpuset, effective_cpus);
	else
		mask = ((struct cpuset___array *)cpuset)->effective_cpus;
	return !bpf_probe_read_kernel(cpus, words * sizeof(u64), mask);
}

#endif /* PP_KERNEL_BPF_H */
