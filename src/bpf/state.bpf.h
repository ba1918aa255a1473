/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All state of the scheduler, and how to reach it: the topology that the agent
 * fills in before loading, CPUs, queues, tasks, the policy in force.
 */
#ifndef PP_STATE_BPF_H
#define PP_STATE_BPF_H

/* Sets of CPUs in an arena, not used here: relocating them takes 8 ms at each load. */
#define __SCX_CID_BPF_H
#include "kernel.bpf.h"
#include "added.h"
#include "intf.h"
#include "pick.h"
#include "scope.h"
#include "sizing.h"

/* A function that the verifier looks at once per program, for any arguments,
 * not again at each call: loading takes a third of the time. It must return a
 * number and has at most five arguments. */
#define verified_once __weak __noinline

/* Set by the agent before loading; constants to the verifier. */
const volatile struct pp_topology topology;

/* Written here, read by the agent through mapped memory and by people through bpftool: libbpf
 * makes a map of each section ".bss.*", with the section's name and BTF. To the programs all
 * variables are constant addresses, so this costs them nothing. */
struct pp_cpu cpus[PP_MAX_CPUS] SEC(".bss.pp_cpus");
struct pp_active active_set SEC(".bss.pp_active");
u64 sampled_ns; /* the agent's, in the common .bss as all that follows */

/* By how many levels the kernel disables migration of the current task while a program runs
 * that may not sleep: 1, or since 6.18 none, but for kernels with PREEMPT_RCU. Set by
 * ops.enable, which the kernel first calls from a task of its own that has not disabled it. */
static u32 prologue_levels = 1;

/* How deep cgroups may be nested; what is below counts as this level. */
#define CGROUP_DEPTH_MAX 16

/* Set by ops.init from topology.tick_ns. */
static u64 slice_shared_ns = PP_SLICE_SHARED_NS;

/* Double-buffered: the agent fills the slot not in use, apply_policy flips. */
struct pp_policy policies[2];
u32 policy_slot;

/* Rank space. */
u64 idle_ranks[PP_RANK_WORDS];
static u64 idle_words; /* a bit for each word of them that is not 0: see pp_word_in_use() */
static u64 online_ranks[PP_RANK_WORDS];
static u64 sibling_ranks[PP_RANK_WORDS]; /* the next one is on the same core, and both are online */
u64 scope_ranks[PP_NR_SCOPES][PP_RANK_WORDS];
u64 active_of_node[PP_MAX_NODES][PP_RANK_WORDS];
u32 rank_capacity[PP_MAX_CPUS];
static u64 roomy_ranks[PP_RANK_WORDS]; /* had room for more when the active set was last sized */

/* The part of the active set that is of one memory node. */
struct pp_node {
	u64 shrink_since_ns; /* since when a smaller set would suffice; 0: it would not */
	u64 quiet_since_ns;  /* since when next to nothing runs there; 0: more does */
	s64 room;	     /* what more its active ranks take until they are full */
	s64 promised;	     /* see pp_missing(); 1024 a CPU, << PP_PROMISE_SHIFT */
	u64 promised_ns;     /* the time that it stands for */
	u32 end;	     /* ranks from its first one to here are active */
	u32 last;	     /* the highest of them that is online, and free for all */
	u32 packed;	     /* ranks from its first one to here would carry the demand */
	u32 spills;	     /* since the active set was sized */
	u32 full;	     /* all of the node would be fuller than it should be */
};

struct pp_node nodes[PP_MAX_NODES];

/* The agent reads how many wait. */
struct pp_queue queues[PP_MAX_QUEUES];
/* How many CPUs that are online serve the queue of an LLC: active ones, and of these those that
 * would be in packing. */
static u16 servers_of_llc[PP_MAX_LLCS], packed_of_llc[PP_MAX_LLCS];
/* The capacity that real-time and bound tasks left of the active ones, as of the last sweep, or all
 * if there are others since then. At least 1 of each: one that bound tasks have takes what is fair.
 */
static u32 left_of_llc[PP_MAX_LLCS];
/* Queues that tasks wait in, or have waited in lately: see add_waiting_queue(). Of LLCs, if there
 * are several, and of single CPUs, by rank; and a bit for each word of the latter that is not 0. */
static u64 waiting_llcs[PP_RANK_WORDS], waiting_ranks[PP_RANK_WORDS], waiting_words;
_Static_assert(PP_MAX_LLCS <= PP_RANK_WORDS * PP_WORD_BITS, "a bit for each LLC");
static s32 nr_waiting_efficient; /* tasks that wait for efficient CPUs alone */

/* A CPU's own queue on the scale that is common to all of these: see pp_common_lead(); of the queue
 * of an LLC what is not said to be of own ones. Its CPU writes it at each switch, so it has a cache
 * line of its own. */
struct pp_scale {
	u64 shift;	    /* what the clock of an own queue is behind that scale */
	u64 front;	    /* vtime of the task of an own queue that has run last */
	u64 latest;	    /* of all deadlines in the queue, or that were there before */
	u32 running_weight; /* see pp_running_weight(); not of a CPU's own queue */
	u32 front_weight;   /* of that task */
	u32 looks;	    /* how often one that has waited too long was looked for */
} __attribute__((aligned(64)));

static struct pp_scale scales[PP_MAX_QUEUES];

/* What a CPU runs as one that wakes others. Written and read as that runs. */
struct pp_waker {
	u64 made_way_ns; /* when it first said that it makes way for the one that it woke; 0: not
			    yet */
	u64 runs_on_ns;	 /* for how long it is expected to run on after that */
} __attribute__((aligned(64)));

static struct pp_waker wakers[PP_MAX_CPUS];

/* Bumped when a cgroup's limit or workload changes, and when a CPU comes or goes: tasks look up
 * again what they know of these. */
u32 cgroup_generation; /* by the agent too, when it has set its table */
static u32 cpus_generation;
static u32 nr_hotplugs;

struct pp_task {
	u64 vtime;		    /* by the clock of queue @queue */
	s64 slept_lag;		    /* owed as it went to sleep, until it is queued */
	u64 updated_ns;		    /* the time that util_fp stands for */
	u64 born_ns;		    /* when it became ours */
	u64 run_ns;		    /* so far in this run, from wakeup to sleep */
	u64 run_est_ns;		    /* expected length of a run */
	u64 runs_on_ns;		    /* see pp_runs_on() */
	u64 expected_wait_ns;	    /* for the active CPUs, when that was last computed */
	u64 woken_ns;		    /* when it woke, if that is watched; 0: it has run since */
	u64 added;		    /* to a queue: see added.h; 0: nothing, as it runs */
	u64 waits_since_ns;	    /* since when it has waited in queues; 0: it does not */
	u64 allowed[PP_RANK_WORDS]; /* rank space */
	u64 back_since_ns;	    /* when it came back after it was away */
	u64 last_wake_ns;	    /* when it woke for this run; 0: not yet */
	u64 wake_period_ns;	    /* how long after the wakeup before; 0: not known */
	u64 promised_ns;	    /* the time that @promised stands for */
	s64 promised;		    /* its part of what is promised to a node */
	s64 reserved_ns;	    /* of limit @charged, not used yet */
	u64 exec_ns;		    /* se.sum_exec_runtime as of that */
	u64 held_since_ns;
	u64 counts;	 /* in the load of its cgroup: see count_in() */
	u64 counted_ns;	 /* when that was put down */
	u64 runnable_ns; /* since then */
	u32 held;	 /* see pp_hold(); 0: it is not held */
	u32 util_fp;
	u32 util_est; /* 0..1024 */
	u32 weight;   /* its part of its cgroups' weights: see shares.h */
	u32 cgroup_generation, cpus_generation;
	u16 queue;
	u16 last_cpu; /* where it has run last */
	u16 limit;    /* the innermost limit of its cgroups; 0: none */
	u16 charged;  /* the same as it began to run; 0: it does not run */
	u16 nr_holds;
	u16 behind; /* its last run took most of its time: pp_util_behind(); 0: it did not */
	u8 promised_node;
	u8 nr_runs;	    /* so far, up to PP_RUNS_KNOWN */
	u8 workload;	    /* enum pp_workload */
	u8 kind;	    /* the smallest kind of core that carries it */
	bool kept_small;    /* uclamp_max asks for the smallest kind */
	bool restricted;    /* not allowed everywhere */
	bool fresh;	    /* has not joined a queue yet */
	bool off_demand;    /* what it uses is not for the active set to carry */
	bool for_efficient; /* it waits for efficient CPUs alone */
	bool rt_preempted;  /* a real-time task has just taken its CPU */
	bool async_woken;   /* not by one that is about to sleep, as who passes a message is */
	bool runs_for_watchdog;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pp_task);
} tasks SEC(".maps");

/* A table of the agent's for pure code, which knows nothing of volatile. The compiler must not
 * see which one it is: it would take the zeros that it begins with for all that it holds. */
static __always_inline const u64 *ranks_in(const volatile u64 *table)
{
	const u64 *ranks = (const u64 *)table;

	barrier_var(ranks);
	return ranks;
}

/* For how long it has been so at @now; not less than 0 if another CPU, whose clock is
 * ahead, has written @then. */
static __always_inline u64 since(u64 now, u64 then)
{
	s64 elapsed = now - then;

	return elapsed > 0 ? elapsed : 0;
}

static __always_inline struct pp_task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

/* All array sizes are powers of two and every index is in range by the agent's
 * checks; the remainder shows that to the verifier for the price of an AND. */
static __always_inline struct pp_cpu *cpu_state(s32 cpu)
{
	return &cpus[(u32)cpu % PP_MAX_CPUS];
}

static __always_inline struct pp_queue *queue_of(u32 id)
{
	return &queues[id % PP_MAX_QUEUES];
}

/* Whether queue @id is of one CPU, not of an LLC. */
static __always_inline bool is_cpu_queue(u32 id)
{
	return id >= PP_CPU_QUEUE_BASE;
}

static __always_inline struct pp_waker *waker_on(s32 cpu)
{
	return &wakers[(u32)cpu % PP_MAX_CPUS];
}

static __always_inline struct pp_scale *scale_of(u32 id)
{
	return &scales[id % PP_MAX_QUEUES];
}

/* How many active CPUs serve the queue of LLC @llc. */
static __always_inline u32 nr_servers(u32 llc)
{
	/* What the compiler knows of it the verifier may have lost: keep the bound. */
	barrier_var(llc);
	return servers_of_llc[llc % PP_MAX_LLCS] ?: 1;
}

static __always_inline u32 rank_of(s32 cpu)
{
	return topology.rank_of_cpu[(u32)cpu % PP_MAX_CPUS];
}

static __always_inline s32 cpu_at(u32 rank)
{
	return topology.cpu_of_rank[rank % PP_MAX_CPUS];
}

/* The queue that the active CPUs around @cpu share. */
static __always_inline u32 llc_queue(s32 cpu)
{
	return topology.llc_of_cpu[(u32)cpu % PP_MAX_CPUS];
}

static __always_inline u32 cpu_queue(s32 cpu)
{
	return PP_CPU_QUEUE_BASE + cpu;
}

static __always_inline struct pp_node *node_state(u32 node)
{
	return &nodes[topology.nr_nodes > 1 ? node % PP_MAX_NODES : 0];
}

static __always_inline u32 node_of_queue(u32 llc)
{
	return topology.nr_nodes > 1 ? topology.node_of_llc[llc % PP_MAX_LLCS] : 0;
}

static __always_inline u32 node_of(s32 cpu)
{
	return node_of_queue(llc_queue(cpu));
}

static __always_inline bool is_active(s32 cpu)
{
	u32 rank = rank_of(cpu);

	return scope_ranks[PP_SCOPE_ACTIVE][rank / PP_WORD_BITS % PP_RANK_WORDS] >>
		       rank % PP_WORD_BITS &
	       1;
}

/* Whether a node has active CPUs. */
static __always_inline bool is_node_active(u32 node)
{
	return node_state(node)->end > topology.node_begin[node % PP_MAX_NODES];
}

/* The node that a task that ran on @cpu is for. */
static __always_inline u32 home_node(s32 cpu)
{
	u32 node = node_of(cpu);

	return topology.nr_nodes <= 1 || is_node_active(node) ? node : active_set.main;
}

/* The end of the efficient ranks that may be used. */
static __always_inline u32 efficient_below_ceiling(void)
{
	return topology.efficient_end < active_set.ceiling ? topology.efficient_end
							   : active_set.ceiling;
}

/* Whether this CPU is on its way offline. An interrupt to itself, which is how
 * the kernel kicks others, may be lost there, and with it all later ones. */
static __always_inline bool is_dying_here(void)
{
	return !cpu_state(bpf_get_smp_processor_id())->online;
}

static __always_inline const struct pp_policy *policy_now(void)
{
	return &policies[policy_slot & 1];
}

/* Whether what is of @node is packed there and nowhere else. Not while the set is to be
 * sized: its CPUs may have gone. */
static __always_inline bool keeps_to_itself(u32 node)
{
	return topology.nr_nodes > 1 && !node_state(node)->full && !active_set.stale &&
	       !policy_now()->all_active;
}

/* Counted where it happens: the counters of a CPU have one writer. */
static __always_inline void count(enum pp_event event)
{
	cpu_state(bpf_get_smp_processor_id())->events[event]++;
}

/* A spill is evidence that the active set of @node is small. */
static __always_inline void count_spill(u32 node)
{
	__sync_fetch_and_add(&node_state(node)->spills, 1);
	count(PP_EV_SPILL);
}

/* Bound to where it is, for now or for good. */
static __always_inline bool is_bound(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 ||
	       pp_is_migration_off(p->migration_disabled, p == bpf_get_current_task_btf(),
				   prologue_levels);
}

/* Whether @cpu is kept free of what is not bound to it (nohz_full). */
static __always_inline bool is_isolated(s32 cpu)
{
	return topology.nr_ranks > topology.nr_free && rank_of(cpu) >= topology.nr_free;
}

/* Whether @p, which is on @cpu, is to have no ticks there: on an isolated CPU, and for good. */
static __always_inline bool wants_no_ticks(const struct task_struct *p, s32 cpu)
{
	return is_isolated(cpu) && p->nr_cpus_allowed == 1;
}

/* For is_bound(). */
static __always_inline void note_prologue(void)
{
	u32 levels = bpf_get_current_task_btf()->migration_disabled;

	levels = pp_prologue_levels(prologue_levels, levels);
	if (prologue_levels != levels)
		prologue_levels = levels;
}

/* Whether @p may not run on @cpu. */
static __always_inline bool is_bound_elsewhere(const struct task_struct *p, s32 cpu)
{
	return !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	       (p->migration_disabled && scx_bpf_task_cpu(p) != cpu);
}

#endif /* PP_STATE_BPF_H */
