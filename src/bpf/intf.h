/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF side and the agent share: constants and structs, nothing else.
 * Every struct has its size asserted here and, through bindgen, in Rust.
 */
#ifndef PP_INTF_H
#define PP_INTF_H

#include "events.h"

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
#endif

enum pp_limits {
	PP_MAX_CPUS = 1024,
	PP_WORD_BITS = 64,
	PP_RANK_WORDS = PP_MAX_CPUS / PP_WORD_BITS,
	/* Each CPU its own: a virtual machine may say so. */
	PP_MAX_LLCS = PP_MAX_CPUS,
	/* Memory nodes: eight sockets of four. */
	PP_MAX_NODES = 32,
	/* Kinds of cores by capacity (LP-E, E, P; little, middle, big): four are known. */
	PP_MAX_KINDS = 4,
	/* Queue ids, which are the DSQ ids too: one per LLC from 0, one per CPU from here. */
	PP_CPU_QUEUE_BASE = PP_MAX_CPUS,
	PP_MAX_QUEUES = PP_CPU_QUEUE_BASE + PP_MAX_CPUS,
	/* A CPU at full capacity, and the weight of nice 0, on the kernel's scales. */
	PP_CAPACITY_MAX = 1024,
	PP_WEIGHT_DEFAULT = 100,
	/* Weights of tasks are in 1/1024 of that scale (shares.h): a task of nice 0 in the root. */
	PP_WEIGHT_SHIFT = 10,
	PP_WEIGHT_NICE_0 = PP_WEIGHT_DEFAULT << PP_WEIGHT_SHIFT,
	/* The same in the sums of what waits in queues. */
	PP_QUEUE_WEIGHT_NICE_0 = 64,
	/* Queued work is summed by the length of the runs: see policy.h, pp_run_class(). */
	PP_RUN_CLASSES = 4,
	/* The ring through which ops.exit wakes the agent. A page: the smallest there is. */
	PP_EXIT_RING_BYTES = 4096,
	/* Room for a thousand placements between two questions; more are counted as lost. */
	PP_WHY_RING_BYTES = 65536,
	/* When held tasks are to be looked at, on PREEMPT_RT: a page is as small as a ring may be.
	 */
	PP_HELD_RING_BYTES = 4096,
	/* Cgroups with a cpu.max, and one that is never used. Half a MiB. */
	PP_MAX_LIMITS = 4096,
	/* Wake-up latencies by powers of two from 1 us on: up to 262 ms, and beyond. */
	PP_LATENCY_BUCKETS = 20,
};

enum pp_mode {
	PP_MODE_SPREAD = 0,
	PP_MODE_PACKING = 1,
	PP_MODE_BALANCE = 2,
	PP_MODE_ENERGY = 3,
};

/* What the user's table says of a cgroup; nothing: the mode decides. */
enum pp_workload {
	PP_WORKLOAD_NONE = 0,
	PP_WORKLOAD_PACK,
	PP_WORKLOAD_SPREAD,
	PP_WORKLOAD_EFFICIENT,
	PP_NR_WORKLOADS,
};

/* Sets of ranks that tasks are for; see scope.h. */
enum pp_scope {
	PP_SCOPE_ACTIVE = 0, /* the active set */
	PP_SCOPE_PACKED,     /* what the active set would be in packing */
	PP_SCOPE_EFFICIENT,  /* the lowest ranks: the smallest kind of core */
	PP_SCOPE_USABLE,     /* all below the ceiling */
	PP_SCOPE_KIND,	     /* plus n: those of kind n and larger ones */
	PP_NR_SCOPES = PP_SCOPE_KIND + PP_MAX_KINDS,
};

/*
 * A mode is a row of parameters; no decision asks for the mode by name.
 * Ranges are checked in policy.rs.
 */
struct pp_policy {
	/* How long a task may wait for a busy active CPU before it spills. */
	u64 latency_budget_ns;
	/* A lower need must have held for this long before the active set shrinks. */
	u64 shrink_hold_ns;
	/* Which mode this row is, for reports only (enum pp_mode). */
	u32 mode;
	/* The active set is sized so that it is no fuller than this; 1..100. */
	u32 fill_pct;
	/* All CPUs that may be used are active, whatever they carry. */
	u32 all_active;
	/* Only this many cores may be used, however many of their threads are online; 1.. */
	u32 max_cores;
	/* A wakeup goes to a wholly idle core before the sibling of a busy one. */
	u32 idle_core_first;
	/* A synchronous wakeup takes the waker's CPU even if another one is idle. */
	u32 sync_stacks;
	/* The active set is made of whole LLCs. */
	u32 whole_llcs;
	/* Tasks that need more may use any CPU; 0..1024, 1024: none does. */
	u32 small_util;
	/* Tasks are for this kind of core or a larger one as long as one is idle. */
	u32 min_kind;
	/* The active set is made of whole groups, and short runs are packed inside it. */
	u32 whole_groups;
};
_Static_assert(sizeof(struct pp_policy) == 56, "pp_policy is shared with Rust");

#define PP_EVENT_ENUM(name, ...) PP_EV_##name,
enum pp_event { PP_EVENTS(PP_EVENT_ENUM) PP_NR_EVENTS };

/*
 * The machine as the agent has ranked its CPUs. Written once, before loading; the simulator
 * takes what the agent would write. Sets of ranks are words of bits.
 */
struct pp_topology {
	u64 online[PP_RANK_WORDS];   /* as the scheduler is loaded */
	u64 siblings[PP_RANK_WORDS]; /* the next rank is on the same core */
	u64 llc_ranks[PP_MAX_LLCS][PP_RANK_WORDS];
	u64 node_ranks[PP_MAX_NODES][PP_RANK_WORDS];
	/* Kinds of cores, smallest first: the ranks of each and of larger ones. */
	u64 ranks_from_kind[PP_MAX_KINDS][PP_RANK_WORDS];
	u32 capacity_of_kind[PP_MAX_KINDS]; /* what each of a kind has at least */
	u32 nr_ranks;			    /* CPUs that can ever be online */
	u32 nr_free;  /* the first of them: for tasks free to move, not isolated */
	u32 nr_words; /* for that many ranks */
	u32 nr_llcs, nr_nodes, nr_kinds;
	u32 threads_per_core; /* the most of any core */
	u32 efficient_end;    /* ranks below are the efficient ones */
	u32 tick_ns;	      /* from one tick of a busy CPU to the next: 1 s / HZ */
	u32 has_cpufreq;      /* frequencies change, and can be requested */
	u16 cpu_of_rank[PP_MAX_CPUS], rank_of_cpu[PP_MAX_CPUS];
	u16 capacity_of_rank[PP_MAX_CPUS];
	/* The lowest performance target of each that saves energy, 0..capacity. */
	u16 perf_floor_of_rank[PP_MAX_CPUS];
	u16 llc_of_cpu[PP_MAX_CPUS];
	/* Spans of ranks; an LLC is of one memory node. */
	u16 llc_begin[PP_MAX_LLCS], llc_end[PP_MAX_LLCS], node_of_llc[PP_MAX_LLCS];
	u16 node_begin[PP_MAX_NODES], node_end[PP_MAX_NODES];
	/* Cores of one kind in one LLC, where a run can be worth waking another of them: of each
	 * rank the end of its group. */
	u16 group_end[PP_MAX_CPUS];
	u64 group_run_ns; /* shorter runs are not worth it; 0: there are no groups */
};
_Static_assert(sizeof(struct pp_topology) == 154560, "pp_topology is shared with Rust");

/* What a CPU is to tasks that are free to move. */
enum pp_cpu_state {
	PP_CPU_OFFLINE,
	PP_CPU_SURPLUS,
	PP_CPU_ACTIVE,
	PP_CPU_ISOLATED,
};

/* The most performance that a CPU has needed (0..1024) in the window that has begun at begun_ns,
 * and in the one before. */
struct pp_perf_peaks {
	u64 begun_ns;
	u16 now, before;
	u32 reserved;
};

/* What the real-time task that has a CPU has done to tasks of ours. */
enum pp_rt_preempts {
	PP_RT_PREEMPTS_NONE = 0,
	PP_RT_PREEMPTS,
	/* What waits there now may run on some other CPUs only. */
	PP_RT_KEEPS_CONFINED,
};

/*
 * A CPU as it was when it last changed its task; util is as of when the active set was last
 * sized (pp_active, updated_ns). Written by BPF, read by anyone: by the agent, and by
 * people through bpftool, field by field (docs/operating.md).
 */
struct pp_cpu {
	u64 running_since_ns; /* 0: no task of ours runs */
	u64 updated_ns;	      /* the time that util_fp stands for */
	u64 busy_ns;	      /* not idle since the scheduler was loaded */
	u64 bound_updated_ns;
	u64 exec_start_ns; /* when the running task was put on the CPU */
	u64 taken_ns;	   /* when a waking task last took the CPU: see pp_taken() */
	struct pp_perf_peaks perf_peaks;
	u64 curr_deadline;  /* its virtual deadline, by the clock of queue curr_queue */
	u64 curr_run_ns;    /* how long it is expected to run in all */
	u32 util_fp;	    /* utilization, 1024 << 20 = all of the fastest CPU */
	u32 bound_fp;	    /* the part of it that could not run elsewhere */
	u16 capacity;	    /* 0..1024, of this CPU at its highest frequency */
	u16 freq;	    /* 0..1024, current frequency over the highest */
	u16 perf;	    /* 0..1024, the performance target that was last set */
	u16 util;	    /* 0..1024, utilization at that instant */
	u16 direct_streak;  /* tasks put straight into the local DSQ since a dispatch */
	u16 direct_waiting; /* one of them has not run yet */
	u32 dispatches;
	u16 online;
	u16 tickless; /* an isolated CPU: what it runs has a slice without end */
	u32 curr_queue;
	/* Real-time tasks and the like, which go before all of ours. */
	u16 rt_preempts;  /* enum pp_rt_preempts */
	u16 turn_over;	  /* the turn of what it runs has ended, as one of its LLC goes first */
	u32 curr_weight;  /* of the running task */
	u32 starving;	  /* a task in this queue, less 1, has waited too long; 0: none */
	u64 rt_ns;	  /* what they have used since the scheduler was loaded */
	u64 rt_est_ns;	  /* for how long they are expected to take it */
	u64 rt_since_ns;  /* since when a higher class has had the CPU; 0: it has not */
	u64 clock_offset; /* see pp_clock_offset() */
	u64 work_ns;	  /* the work done since the scheduler was loaded: see pp_work() */
	u64 events[PP_NR_EVENTS];
	u32 rank; /* its place in the order in which CPUs are filled */
	enum pp_cpu_state state;
} __attribute__((aligned(64)));
/* It grows by whole cache lines with the table of events. Before them, they, rank and state. */
_Static_assert(sizeof(struct pp_cpu) == (168 + 8 * PP_NR_EVENTS + 8 + 63) / 64 * 64,
	       "pp_cpu is shared with Rust");

/* A queue is a DSQ and what is known of it. */
struct pp_queue {
	u64 clock;		       /* its virtual time: see clock.h */
	u64 look_ns;		       /* when to look next whether a task has waited too long */
	u64 waiting_since_ns;	       /* since when it has not been empty */
	s64 queued_ns[PP_RUN_CLASSES]; /* expected work waiting in it */
	/* Changed as one word: see pp_waiting_word(). */
	s32 nr;	    /* tasks waiting in it */
	u32 weight; /* their weights, in PP_QUEUE_WEIGHT_NICE_0 */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct pp_queue) == 64, "pp_queue is shared with Rust");

/* A cgroup's cpu.max, and what is left of it: see bandwidth.h. */
struct pp_limit {
	u64 cgroup_id; /* 0: this place is free */
	u64 quota_ns;  /* each period; 0: no limit at present */
	u64 period_ns;
	u64 burst_ns;
	u64 period_began_ns;
	s64 budget_ns;		 /* may be used now; below 0: was used too much */
	u64 throttled_since_ns;	 /* 0: no task is held */
	u64 nr_periods;		 /* that have begun while it was used */
	u64 nr_throttled;	 /* of these: a task was held */
	u64 throttled_ns;	 /* for how long in all */
	u64 throttled_period_ns; /* when the last of those began */
	s32 nr_held;		 /* tasks that wait for the next period */
	u32 parent;		 /* the next limited cgroup above; 0: there is none */
	u32 looks;		 /* which look of the timer @releases is of */
	u32 releases;		 /* how many more held tasks it may release */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct pp_limit) == 128, "pp_limit is shared with Rust");

/* Whether the active set is not what the policy and the CPUs ask for. */
enum pp_stale {
	PP_STALE = 1,	  /* it is not, and is to be sized from the beginning */
	PP_STALE_IN_WORK, /* on a machine of many CPUs: that has begun */
};

/* The active set as it is now: the first ranks of each memory node. */
struct pp_active {
	u64 updated_ns;
	u64 demand;  /* summed utilization of tasks that are free to move, 1024 a CPU */
	u32 nr;	     /* ranks that are active */
	u32 ceiling; /* ranks at and above are never used by tasks free to move */
	u32 stale;   /* enum pp_stale: the policy or the CPUs have changed: size it at once */
	u32 main;    /* the node of the lowest active rank */
};
_Static_assert(sizeof(struct pp_active) == 32, "pp_active is shared with Rust");

/* How long tasks waited from their wake-up until they ran, on one CPU, while that is
 * watched: [n] up to 2^n us, the last one all beyond. */
struct pp_latency {
	u64 sum_ns;
	u64 counts[PP_LATENCY_BUCKETS];
	u64 pad[3];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct pp_latency) == 192, "pp_latency is shared with Rust");

/* Why a task was put on a CPU or in its queue; why.rs has the sentences. */
enum pp_why {
	PP_WHY_WAKER,	    /* with its waker, which is about to sleep */
	PP_WHY_IDLE,	    /* idle, of those that it is for */
	PP_WHY_QUEUED,	    /* it waits for the active CPUs: soon enough */
	PP_WHY_SPILLED,	    /* they would keep it waiting for too long, or are full */
	PP_WHY_BOUND,	    /* no other CPU is possible */
	PP_WHY_CHOSEN_IDLE, /* idle, of the CPUs that its affinity or the user's table names */
	PP_WHY_CHOSEN_BUSY, /* all of those are busy */
	PP_WHY_OFFLINE,	    /* its CPU goes offline */
	PP_WHY_THROTTLED,   /* held: its cgroup has used up its cpu.max */
	PP_WHY_RUNS,	    /* not a placement: it begins to run */
};

/* A placement, in the ring. */
struct pp_why_record {
	u64 now_ns;
	u64 expected_ns; /* how long it would have to wait for the active CPUs */
	u64 budget_ns;
	u32 pid;
	u32 why; /* enum pp_why */
	u32 cpu;
	u32 prev_cpu;
	u32 util;   /* 0..1024 */
	u32 active; /* the CPU is of the active set */
};
_Static_assert(sizeof(struct pp_why_record) == 48, "pp_why_record is shared with Rust");

/* A row of what list_tasks writes. */
struct pp_listed_task {
	u32 pid; /* of the thread */
	u32 tgid;
	u32 cpu;
	u32 util; /* 0..1024 */
};
_Static_assert(sizeof(struct pp_listed_task) == 16, "pp_listed_task is shared with Rust");

/* What the classify program is called with. */
struct pp_classify_args {
	u64 cgroup_id;
	u32 workload; /* enum pp_workload */
	u32 pad;
};

/* What the apply_policy program is called with. */
struct pp_apply_args {
	u32 slot; /* which of the two policy slots to use from now on */
};

#endif /* PP_INTF_H */
