/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stand-in for the scx headers with which src/bpf/ compiles natively: types
 * with the fields that are used, and kfuncs that the simulated kernel implements
 * (sim/src/kfuncs.rs). What is missing here does not compile, and what is declared
 * and missing there does not link: nothing is a silent no-op.
 */
#ifndef SIM_COMMON_BPF_H
#define SIM_COMMON_BPF_H

#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "intf.h" /* u8 to s64, as everywhere but in the kernel */

/* What only the BPF compiler or the verifier needs. */
#define SEC(name)
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __arg_trusted
#define __arg_nullable
#define __arg_nonnull
#define barrier_var(var) __asm__ volatile("" : "+r"(var))

/* Values of Linux 7.2 (kernel/sched/ext_internal.h, include/linux/sched/ext.h). */
enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1ULL,
	SCX_ENQ_IMMED = 1ULL << 33,
	SCX_ENQ_REENQ = 1ULL << 40,
	SCX_ENQ_LAST = 1ULL << 41
};
enum scx_wake_flags { SCX_WAKE_SYNC = 16 };
enum scx_kick_flags { SCX_KICK_PREEMPT = 2 };
enum scx_dsq_id_flags { SCX_DSQ_GLOBAL = 1ULL << 63 | 1, SCX_DSQ_LOCAL_ON = 3ULL << 62 };
enum scx_dsq_iter_flags { SCX_DSQ_ITER_REV = 1U << 16 };
enum scx_ent_flags { SCX_TASK_QUEUED = 1 };
enum scx_exit_code { SCX_ECODE_ACT_RESTART = 1LL << 48 };
enum scx_ops_flags { SCX_OPS_ENQ_LAST = 2, SCX_OPS_ENQ_EXITING = 4 };
enum { NUMA_NO_NODE = -1 };
enum scx_public_consts { SCX_SLICE_INF = ~0ULL };

/* Shared with sim/src/ffi.rs, which asserts the sizes too. */
struct cpumask {
	u64 bits[16];
};

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct cgroup;
struct css_set {
	struct cgroup *dfl_cgrp;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct css_set set; /* of its tasks */
	struct cgroup *parent;
	void *storage;
	s32 level;
	struct kernfs_node *kn;
};

struct signal_struct {
	u32 flags;
};

struct task_struct {
	struct sched_ext_entity scx;
	struct sched_entity se;
	const struct cpumask *cpus_ptr;
	void *storage;
	struct css_set *cgroups;
	s32 pid;
	s32 cpu;
	s32 nr_cpus_allowed;
	u32 migration_disabled;
	u32 tgid;
	u32 __state;
	u32 flags;
	const struct signal_struct *signal;
};
#define PF_EXITING 0x00000004

struct scx_exit_info {
	s32 kind;
};
struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};
struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us;
};

struct sched_ext_ops {
	void *init_task, *enable, *set_cpumask, *set_weight, *select_cpu, *enqueue, *dispatch;
	void *running, *tick, *yield, *stopping, *update_idle, *disable, *cpu_online, *cpu_offline;
	void *cgroup_init, *cgroup_exit, *cgroup_set_weight, *cgroup_set_bandwidth, *cgroup_move;
	void *init, *exit;
	void *dump, *dump_cpu, *dump_task;
	u64 flags;
	u32 timeout_ms;
	const char *name;
};
#define BPF_STRUCT_OPS(name, args...) name(args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) name(args)
#define SCX_OPS_DEFINE(name, ...) struct sched_ext_ops name = { __VA_ARGS__ }

/* The simulated kernel reports an error as it happens: there is no exit to record. */
#define UEI_DEFINE(name) static const struct scx_exit_info *name
#define UEI_RECORD(name, info) (name = (info))

/* No report is made here. */
struct scx_dump_ctx;
#define scx_bpf_dump(format, args...) __builtin_printf(format, args)

/* What walks all tasks for the agent: not used here. */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#define bpf_seq_write(seq, data, size) ((void)(seq), (void)(data))

/* Maps: storage of tasks and cgroups, an array, and a ring that is not read here. */
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
enum {
	BPF_MAP_TYPE_TASK_STORAGE,
	BPF_MAP_TYPE_CGRP_STORAGE,
	BPF_MAP_TYPE_RINGBUF,
	BPF_MAP_TYPE_ARRAY,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_RB_FORCE_WAKEUP = 2 };

static inline void *sim_storage(void **storage, size_t size, u64 flags)
{
	if (!*storage && (flags & BPF_LOCAL_STORAGE_GET_F_CREATE))
		*storage = __builtin_calloc(1, size);
	return *storage;
}
/* One map of a kind is all that is used. */
#define bpf_task_storage_get(map, p, init, flags)                                                  \
	((typeof((map)->value))sim_storage(&(p)->storage, sizeof(*(map)->value), flags))
#define bpf_cgrp_storage_get(map, cgrp, init, flags)                                               \
	((typeof((map)->value))sim_storage(&(cgrp)->storage, sizeof(*(map)->value), flags))
/* Timers: the elements of one array. */
#define CLOCK_MONOTONIC 1
#define SIM_MAX_TIMERS 4096
struct bpf_timer {
	int (*callback)(void *map, u32 *key, struct bpf_timer *timer);
};
static struct bpf_timer sim_timers[SIM_MAX_TIMERS];
void sim_timer_start(u32 key, u64 ns);

#define bpf_map_lookup_elem(map, key) ((typeof((map)->value))&sim_timers[*(key) % SIM_MAX_TIMERS])
#define bpf_timer_init(timer, map, clock) 0
#define bpf_timer_set_callback(timer, function) ((timer)->callback = (function))
#define bpf_ringbuf_output(ring, data, size, flags) ((void)(data), 0)

#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

static inline void bpf_rcu_read_lock(void)
{
}
static inline void bpf_rcu_read_unlock(void)
{
}

static inline bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return mask->bits[cpu / 64] >> (cpu % 64) & 1;
}
u32 bpf_cpumask_first(const struct cpumask *mask);

static inline s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	return p->cpu;
}
static inline struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level)
{
	while (cgrp && cgrp->level > level)
		cgrp = cgrp->parent;
	return cgrp && cgrp->level == level ? cgrp : NULL;
}
/* Their addresses are their ids. */
static inline struct cgroup *bpf_cgroup_from_id(u64 id)
{
	return (struct cgroup *)id;
}
/* Cgroups live as long as the simulation. */
static inline void bpf_cgroup_release(struct cgroup *cgrp)
{
}

/* Implemented by the simulated kernel. */
u64 scx_bpf_now(void);
u32 bpf_get_smp_processor_id(void);
struct task_struct *bpf_get_current_task_btf(void);
s32 scx_bpf_create_dsq(u64 id, s32 node);
s32 scx_bpf_dsq_nr_queued(u64 id);
bool scx_bpf_dsq_move_to_local(u64 id, u64 enq_flags);
void scx_bpf_dsq_insert(struct task_struct *p, u64 id, u64 slice_ns, u64 enq_flags);
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 id, u64 slice_ns, u64 vtime,
			      u64 enq_flags);
struct task_struct *__COMPAT_scx_bpf_dsq_peek(u64 id);
void scx_bpf_kick_cpu(s32 cpu, u64 flags);
void scx_bpf_task_set_slice(struct task_struct *p, u64 slice_ns);
void scx_bpf_cpuperf_set(s32 cpu, u32 perf);
u32 scx_bpf_cpuperf_cur(s32 cpu);
void sim_error(const char *format);
#define scx_bpf_error(format, args...) sim_error(format)
/* Of CPUs that were offline at first, which there are none of. */
#define scx_bpf_exit(code, format, args...) sim_error(format)

/* Walks a DSQ in its order; what is visited may be moved away. */
struct sim_dsq_walk {
	u64 id, vtime, seq;
	u64 set_vtime; /* of what is moved next */
	bool begun, reverse;
};
struct task_struct *sim_dsq_walk_next(struct sim_dsq_walk *walk);
bool scx_bpf_dsq_move(struct sim_dsq_walk *walk, struct task_struct *p, u64 id, u64 enq_flags);
void scx_bpf_dsq_move_set_vtime(struct sim_dsq_walk *walk, u64 vtime);
bool scx_bpf_dsq_move_vtime(struct sim_dsq_walk *walk, struct task_struct *p, u64 id,
			    u64 enq_flags);
#define bpf_iter_scx_dsq sim_dsq_walk
#define BPF_FOR_EACH_ITER (&sim_walk)
#define bpf_for_each(kind, p, dsq, flags)                                                          \
	for (struct sim_dsq_walk sim_walk = { .id = (dsq),                                         \
					      .reverse = (flags) & SCX_DSQ_ITER_REV };             \
	     ((p) = sim_dsq_walk_next(&sim_walk));)

#endif /* SIM_COMMON_BPF_H */
