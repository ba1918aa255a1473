/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ran, where and for how long: utilization of CPUs and tasks, virtual
 * time. Nothing is decided here.
 */
#ifndef PP_ACCOUNT_BPF_H
#define PP_ACCOUNT_BPF_H

#include "inherit.bpf.h"

/* An average after @idle_ns without and @ran_ns with running. */
verified_once u32 util_after(u32 util_fp, s64 idle_ns, s64 ran_ns, u32 capacity)
{
	if (idle_ns > 0)
		util_fp = pp_util_decay(util_fp, idle_ns);
	if (ran_ns > 0)
		util_fp = pp_util_run(util_fp, ran_ns, capacity);
	return util_fp;
}

static __always_inline u32 capacity_now(const struct pp_cpu *cpu)
{
	return pp_capacity_now(cpu->capacity, cpu->freq);
}

/* What a CPU's average would be now: from updated_ns on it ran nothing, and since running_since_ns
 * a task of ours. */
static __always_inline u32 cpu_util_now(const struct pp_cpu *cpu, u64 now)
{
	u64 runs_since = cpu->running_since_ns ?: now;
	s64 idle = runs_since - cpu->updated_ns;

	/* Being accounted, on that CPU. */
	if (idle < 0)
		runs_since = cpu->updated_ns;
	return util_after(cpu->util_fp, idle, now - runs_since, capacity_now(cpu));
}

/* The same for the part that bound tasks use, summed separately: another CPU could not
 * take that work. */
static __always_inline void update_bound_util(struct pp_cpu *cpu, u64 now, u64 ran)
{
	cpu->bound_fp = util_after(cpu->bound_fp, now - ran - cpu->bound_updated_ns, ran,
				   capacity_now(cpu));
	cpu->bound_updated_ns = now;
}

/* Bring an average, and the time that it stands for, to @now: nothing ran until @begin, and what
 * pp_decay_factor() makes of the time since is @factor. */
static __always_inline void account_util(u32 *util_fp, u64 *updated_ns, u64 begin, u64 now,
					 u64 factor, u32 capacity)
{
	*util_fp = pp_util_toward(pp_util_decay(*util_fp, since(begin, *updated_ns)), factor,
				  capacity);
	*updated_ns = now;
}

/* The clock of an LLC's queue passes as those run that go by it, while others wait. */
static __always_inline void share_clock(const struct pp_task *task, u64 ran)
{
	struct pp_queue *queue = queue_of(task->queue);
	struct pp_scale *scale = scale_of(task->queue);
	u32 running;

	if (is_cpu_queue(task->queue) || queue->nr <= 0)
		return;
	running = pp_running_weight(scale->running_weight, task->weight, ran);
	/* Mostly it is the same: all CPUs of the LLC read it. */
	if (running != scale->running_weight)
		scale->running_weight = running;
	__sync_fetch_and_add(&queue->clock, pp_clock_share(ran, task->weight, queue->weight,
							   running, nr_servers(task->queue)));
}

/* Charge the time since the last account to the running task and its CPU. */
static __always_inline void account_run(struct pp_task *task, struct pp_cpu *cpu, u64 now)
{
	u64 begin = cpu->running_since_ns, ran = since(now, begin), factor;
	u32 capacity = capacity_now(cpu);

	if (!begin || !ran)
		return;
	factor = pp_decay_factor(ran);
	account_util(&cpu->util_fp, &cpu->updated_ns, begin, now, factor, capacity);
	cpu->busy_ns += ran;
	cpu->work_ns += pp_work(ran, capacity);
	cpu->running_since_ns = now;
	if (!task)
		return;
	account_util(&task->util_fp, &task->updated_ns, begin, now, factor, capacity);
	if (task->off_demand)
		update_bound_util(cpu, now, ran);
	task->vtime += pp_vtime_delta(ran, task->weight);
	share_clock(task, ran);
	task->run_ns += ran;
	task->runnable_ns += ran;
}

/* For how long real-time tasks have had the CPU now. */
static __always_inline u64 rt_used_since(const struct pp_cpu *cpu, u64 now)
{
	s64 since = now - cpu->rt_since_ns;

	return cpu->rt_since_ns && since >= (s64)PP_RT_MIN_NS ? since : 0;
}

/* The CPU is ours again, or idle. */
static __always_inline void account_rt(struct pp_cpu *cpu, u64 now)
{
	u64 ran = rt_used_since(cpu, now);

	cpu->rt_since_ns = 0;
	if (cpu->rt_preempts)
		cpu->rt_est_ns = pp_run_est(cpu->rt_est_ns, ran);
	cpu->rt_preempts = 0;
	if (!ran)
		return;
	cpu->busy_ns += ran;
	cpu->work_ns += pp_work(ran, capacity_now(cpu));
	cpu->rt_ns += ran;
}

/* Whether a real-time task is known to have a CPU, for however long: one that has preempted nothing
 * is known only after a while, as each switch begins like that. */
static __always_inline bool has_rt(const struct pp_cpu *cpu, u64 now)
{
	return cpu->rt_preempts || rt_used_since(cpu, now);
}

/* Whether real-time tasks keep a CPU for long. */
static __always_inline bool is_rt_busy(const struct pp_cpu *cpu, u64 now)
{
	return cpu->rt_since_ns &&
	       pp_is_rt_long(cpu->rt_preempts ? cpu->rt_est_ns : 0, rt_used_since(cpu, now));
}

/* Whether one has just preempted a task of ours, is expected to be over soon, and is waited for.
 * What is confined is taken at once: a CPU that may run it and finds nothing else looks but once.
 */
static __always_inline bool is_back_soon(const struct pp_cpu *cpu, u64 now)
{
	return cpu->rt_preempts == PP_RT_PREEMPTS && !is_rt_busy(cpu, now);
}

/* For how long they will keep it, as far as is known. */
static __always_inline u64 rt_left(const struct pp_cpu *cpu, u64 now)
{
	return pp_run_left(cpu->rt_est_ns, since(now, cpu->rt_since_ns));
}

/* Add to what is promised to a node; its room is less by that until it is sized. */
static __always_inline void add_promise(u32 node, s64 promise)
{
	__sync_fetch_and_add(&node_state(node)->promised, promise);
	__sync_fetch_and_add(&node_state(node)->room, -(promise >> PP_PROMISE_SHIFT));
}

/* From now on @missing is what the task, which is on @node, promises. */
verified_once int promise(struct pp_task *task __arg_nonnull, u32 node, u32 missing, u64 now)
{
	s64 left = pp_promise_left(task->promised, since(now, task->promised_ns));
	s64 promised = (s64)missing << PP_PROMISE_SHIFT;

	if (task->promised && task->promised_node != node) {
		add_promise(task->promised_node, -left);
		left = 0;
	}
	if (promised != left)
		add_promise(node, promised - left);
	task->promised = promised;
	task->promised_ns = now;
	task->promised_node = node;
	return 0;
}

/* A task that ran on @cpu wakes: what it will use, if it is free to move, is promised to the node
 * that it is for. */
static __always_inline void account_wakeup(struct pp_task *task, s32 cpu, u64 now)
{
	u64 slept = since(now, task->updated_ns);
	u32 util, missing;

	task->wake_period_ns = task->last_wake_ns ? since(now, task->last_wake_ns) : 0;
	task->last_wake_ns = now;
	if (slept < PP_FORGETS_NS)
		return;
	if (slept >= PP_AWAY_NS) {
		if (since(task->updated_ns, task->back_since_ns) < PP_SETTLED_NS)
			task->util_est = pp_util_est(task->util_est, pp_util(task->util_fp));
		task->back_since_ns = now;
	}
	util = pp_util(pp_util_decay(task->util_fp, slept));
	missing = task->off_demand || task->restricted ? 0 : pp_missing(task->util_est, util);
	if (missing || task->promised)
		promise(task, home_node(cpu), missing, now);
}

/* What a task that is behind on a CPU of @capacity is assumed to use. */
static __always_inline u32 util_behind(u32 capacity)
{
	if (topology.nr_kinds <= 1)
		return 0;
	return pp_util_behind(capacity,
			      topology.capacity_of_kind[(topology.nr_kinds - 1) % PP_MAX_KINDS]);
}

/* A run on @cpu has ended because the task sleeps: remember what it needed. */
static __always_inline void account_sleep(struct pp_task *task, const struct pp_cpu *cpu, u64 now)
{
	u32 util = pp_util(task->util_fp), capacity = cpu->capacity;

	task->run_est_ns = pp_run_est(task->run_est_ns, task->run_ns);
	if (task->nr_runs < PP_RUNS_KNOWN)
		task->nr_runs++;
	if (util > task->util_est || since(now, task->back_since_ns) >= PP_SETTLED_NS)
		task->util_est = pp_util_est(task->util_est, util);
	task->behind = 0;
	if (pp_is_behind(task->run_ns, task->wake_period_ns, cpu->freq))
		task->behind = util_behind(capacity);
	if (task->behind && topology.nr_kinds > 1)
		task->util_est = pp_est_behind(task->util_est, capacity);
	task->run_ns = 0;
	task->slept_lag = queue_of(task->queue)->clock - task->vtime;
	if (task->promised)
		promise(task, task->promised_node, pp_missing(task->util_est, util), now);
}

/* The expected length of what the task has left to do before it sleeps. */
static __always_inline u64 task_run_left(const struct pp_task *task)
{
	return pp_run_left(task->run_est_ns, task->run_ns);
}

/* The same for tasks that wait for it: one that is not known yet may be long. */
static __always_inline u64 task_run_pessimistic(const struct pp_task *task)
{
	u64 left = task_run_left(task);

	return task->nr_runs >= PP_RUNS_KNOWN || left >= PP_LONG_RUN_NS ? left : PP_LONG_RUN_NS;
}

/* Why @p stops. */
static __always_inline enum pp_stop stop_of(const struct task_struct *p, bool runnable)
{
	if (p->flags & PF_EXITING)
		return PP_STOP_EXITS;
	return runnable || p->__state == TASK_RUNNING ? PP_STOP_GOES_ON : PP_STOP_SLEEPS;
}

/* What is left of what runs on @cpu or is about to, as far as is known. */
static __always_inline u64 running_left(const struct pp_cpu *cpu, u64 now)
{
	if (!cpu->running_since_ns)
		return cpu->direct_waiting ? cpu->curr_run_ns : 0;
	return pp_run_left(cpu->curr_run_ns, since(now, cpu->exec_start_ns));
}

/* How long it keeps the CPU from those that wait for it: until its next tick, at most. */
static __always_inline u64 turn_left(const struct pp_cpu *cpu, u64 now)
{
	u64 left = running_left(cpu, now), turn = topology.tick_ns + PP_TICK_LATE_NS;

	return left < turn ? left : turn;
}

#endif /* PP_ACCOUNT_BPF_H */
