/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task runs: the mechanism around the decisions of policy.h.
 */
#ifndef PP_PLACE_BPF_H
#define PP_PLACE_BPF_H

#include "claim.bpf.h"
#include "observe.bpf.h"
#include "own_queue.bpf.h"
#include "preempt.bpf.h"

/* The order that what runs on a CPU has among the tasks that wait for it. */
static __always_inline void set_curr(struct pp_cpu *state, const struct pp_task *task)
{
	state->curr_deadline = deadline_of(task);
	state->curr_weight = task->weight;
	state->curr_queue = task->queue;
	if (is_cpu_queue(task->queue)) {
		scale_of(task->queue)->front = task->vtime;
		scale_of(task->queue)->front_weight = task->weight;
	}
}

/* A task bound to an isolated CPU is alone there, mostly, and is to have no ticks: the kernel
 * stops them for a slice without end. note_tickless() sees to it that it does not keep others
 * from the CPU. */
static __always_inline u64 slice_on(const struct task_struct *p, const struct pp_task *task,
				    s32 cpu)
{
	return wants_no_ticks(p, cpu) && !task->limit ? SCX_SLICE_INF : PP_SLICE_ALONE_NS;
}

/* @p, which begins to run on @cpu, may have a slice without end: which a task that comes for the
 * CPU ends, in wait_behind(). One that comes at this instant is seen here or sees @tickless, as
 * both sides write before they read, with an atomic add to the queue between. (What is lost
 * nevertheless waits for a second: then the kernel calls ops.tick, from another CPU.) */
static __always_inline void note_tickless(const struct task_struct *p, struct pp_cpu *state,
					  s32 cpu)
{
	if (!is_isolated(cpu))
		return;
	state->tickless = p->scx.slice == SCX_SLICE_INF;
	if (state->tickless && (__sync_fetch_and_add(&queue_of(cpu_queue(cpu))->nr, 0) > 0 ||
				scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* The flags with which a task of @enq_flags is put on an idle CPU. One that has come back stays
 * where it is put next: all CPUs count as idle as the scheduler is loaded, and the kernel ends one
 * that has a task come back 256 times. */
static __always_inline u64 on_idle(u64 enq_flags)
{
	return enq_flags & SCX_ENQ_REENQ ? enq_flags : enq_flags | enq_immed();
}

/* What was about to run on the CPU has come back, as a real-time task takes that: it may not have
 * begun yet. */
static __always_inline void note_taken_back(struct pp_cpu *cpu)
{
	cpu->direct_waiting = 0;
	cpu->rt_preempts = PP_RT_PREEMPTS;
	if (!cpu->rt_since_ns)
		cpu->rt_since_ns = scx_bpf_now();
}

/* Put @p straight into the local DSQ of @cpu; no queue is involved. Its clock is that of @queue. */
static __always_inline void run_by(struct task_struct *p, struct pp_task *task, s32 cpu, u32 queue,
				   u64 enq_flags)
{
	struct pp_cpu *state = cpu_state(cpu);

	join_queue(task, queue);
	/* Wakers that come before it has begun to run see what is about to run. */
	if (!state->running_since_ns) {
		state->curr_run_ns = task_run_pessimistic(task);
		set_curr(state, task);
		state->direct_waiting = 1;
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, slice_on(p, task, cpu), enq_flags);
}

/* The same by the clock that @p goes by on @cpu. */
verified_once int run_on(struct task_struct *p __arg_trusted, struct pp_task *task __arg_nonnull,
			 s32 cpu, u64 enq_flags)
{
	run_by(p, task, cpu, is_for_own_queue(p, task) ? cpu_queue(cpu) : llc_queue(cpu),
	       enq_flags);
	return 0;
}

/* Whether a task may pass the queues of busy @cpu: none is known to wait
 * there, and not many have done so in a row. */
static __always_inline bool may_go_direct(s32 cpu)
{
	struct pp_cpu *state = cpu_state(cpu);
	struct pp_queue *own = queue_of(cpu_queue(cpu)), *shared = queue_of(llc_queue(cpu));

	return !state->direct_waiting && !(state->running_since_ns && state->tickless) &&
	       own->nr <= 0 && shared->nr <= 0 && state->direct_streak < PP_DIRECT_STREAK_MAX;
}

static __always_inline void go_direct(s32 cpu)
{
	struct pp_cpu *state = cpu_state(cpu);

	state->direct_waiting = 1;
	state->direct_streak++;
}

/* Where a task of @scope waits, if no CPU of that is idle. What is packed inside a group may have
 * any active CPU that is idle; in spread, where all are active, it waits for those that it is
 * packed on. */
static __always_inline u32 waiting_scope(u32 scope)
{
	return scope == PP_SCOPE_PACKED && policy_now()->all_active ? PP_SCOPE_PACKED
								    : PP_SCOPE_ACTIVE;
}

/* The last CPU that is packed, of @node or, if none is there, of the first node that has any. */
static __always_inline s32 last_packed(u32 node)
{
	u32 end = node_state(node)->packed;

	if (end <= topology.node_begin[node % PP_MAX_NODES])
		end = node_state(active_set.main)->packed ?: 1;
	return cpu_at(end - 1);
}

/* The CPU whose queue a task of @scope that ran on @cpu waits in: an active one, and if it waits
 * for what is packed one of these. */
static __always_inline s32 queueing_cpu(u32 scope, s32 cpu)
{
	u32 among = waiting_scope(scope), home = home_node(cpu);
	s32 last = among == PP_SCOPE_PACKED ? last_packed(home) : cpu_at(node_state(home)->last);

	if (in_scope(among, cpu) && cpu_state(cpu)->online)
		return cpu;
	/* Offline: it has just gone, and the set is about to be sized. */
	return cpu_state(last)->online ? last : cpu;
}

/* Queue @p behind busy @cpu, and take the CPU if it is to go first, or what runs there would
 * never end by itself. */
verified_once int wait_behind(struct task_struct *p __arg_trusted,
			      struct pp_task *task __arg_nonnull, s32 cpu, u32 queue, u64 enq_flags)
{
	struct pp_cpu *state = cpu_state(cpu);
	u64 now = scx_bpf_now();
	bool preempt = (enq_flags & SCX_ENQ_WAKEUP) && state->running_since_ns &&
		       goes_before(task, cpu, now);

	/* Or clang makes two of all that follows. */
	barrier_var(preempt);
	insert_queue(p, task, queue, enq_flags);
	if (preempt) {
		state->taken_ns =
			pp_taken(state->taken_ns, now, topology.tick_ns, p->nr_cpus_allowed == 1);
		count(PP_EV_PREEMPT);
	}
	if (preempt || state->tickless)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* A task with some of its slice left stops only for a higher class. It would be kept in
 * the local DSQ; with no slice it comes to ops.enqueue instead. */
static __always_inline void note_rt_preempts(struct task_struct *p, struct pp_task *task,
					     struct pp_cpu *cpu)
{
	cpu->rt_preempts = PP_RT_PREEMPTS;
	task->rt_preempted = true;
	scx_bpf_task_set_slice(p, 0);
}

/* @p waits for the CPU: whoever goes idle and may run it is not to leave it to a real-time task. */
static __always_inline void note_confined_waits(const struct task_struct *p,
						const struct pp_task *task, struct pp_cpu *cpu)
{
	if (cpu->rt_preempts && task->restricted && !is_bound(p))
		cpu->rt_preempts = PP_RT_KEEPS_CONFINED;
}

/* Whether @p, which a real-time task has just preempted, waits for its CPU: if that is expected to
 * be short. One that may run on some CPUs only does not where one of these is idle: it would be
 * woken by nobody, and those that have ticks may not run it. */
static __always_inline bool waits_for_rt(const struct task_struct *p, const struct pp_task *task,
					 const struct pp_cpu *cpu)
{
	if (pp_is_rt_long(cpu->rt_est_ns, 0))
		return false;
	return !task->restricted || is_bound(p) || !has_idle_allowed(task);
}

/* A task that a real-time task has just preempted, and that is expected to go on soon: from the
 * CPU's own queue another CPU can take it if it does not. From the local DSQ none could. */
static __always_inline void wait_for_rt(struct task_struct *p, struct pp_task *task, s32 cpu,
					u64 enq_flags)
{
	u32 own = cpu_queue(cpu);

	join_queue(task, own);
	note_confined_waits(p, task, cpu_state(cpu));
	insert_queue(p, task, own, enq_flags);
}

/* Whether @cpu is idle, or may become so without having seen @p, which is being put in its queue.
 * One that puts back what it ran looks for another task after that, or has found one before (Linux
 * 6.12) if SCX_ENQ_LAST does not say otherwise: a kick would be an interrupt at each such switch.
 */
static __always_inline bool may_miss(const struct task_struct *p, s32 cpu, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_LAST)
		return true;
	if (cpu == scx_bpf_task_cpu(p) && p == bpf_get_current_task_btf())
		return false;
	return !cpu_state(cpu)->running_since_ns;
}

/* How long what runs on @cpu, or is about to, keeps @task from it. */
static __always_inline u64 kept_by_running(const struct pp_task *task, s32 cpu, bool waking)
{
	const struct pp_cpu *state = cpu_state(cpu);
	u64 now = scx_bpf_now();

	/* No CPU of the set was idle: this one stands for all of them, also for what the others
	 * lose to real-time tasks. */
	if (is_rt_busy(state, now))
		return rt_left(state, now);
	if ((waking || !state->running_since_ns) && goes_before(task, cpu, now))
		return 0;
	return turn_left(state, now);
}

/* Whether a task of @scope should wait in the queue of @cpu's LLC. */
verified_once bool should_wait(struct pp_task *task __arg_nonnull, u32 scope, s32 cpu, bool waking)
{
	u32 llc = llc_queue(cpu);
	u32 servers =
		waiting_scope(scope) == PP_SCOPE_PACKED ? nr_packed_servers(llc) : nr_servers(llc);
	u64 kept_ns = kept_by_running(task, cpu, waking);
	struct pp_wait wait = {
		.wait_ns = pp_expected_wait(queue_of(llc)->queued_ns, task_run_class(task), kept_ns,
					    servers),
		.others_ns = longest_wait(task, llc, kept_ns, servers),
		.run_left_ns = task_run_left(task),
		.running_left_ns = waking ? running_left(cpu_state(cpu), scx_bpf_now()) : 0,
		.room = node_state(home_node(cpu))->room,
		.promised = task->promised > 0,
	};

	task->expected_wait_ns = wait.wait_ns > wait.others_ns ? wait.wait_ns : wait.others_ns;
	if (servers == 1 && is_rt_busy(cpu_state(cpu), scx_bpf_now()))
		return false;
	return pp_should_wait(policy_now(), &wait);
}

/* Whether there is a CPU to spill to: an idle one, or that where the slice of a task has ended.
 * Where all are busy that saves working out how long it waits, which `why` shows of those it
 * watches. */
static __always_inline bool may_spill(s32 here, bool waking)
{
	return is_any_idle() || (!waking && !is_active(here)) || watched_pid;
}

/* Run @p on a surplus CPU: the one it is on if its slice ended there, after what
 * waits for that, else the nearest idle one. */
verified_once bool spill(struct task_struct *p __arg_trusted, struct pp_task *task __arg_nonnull,
			 s32 here, u64 enq_flags)
{
	s32 cpu = here;

	if ((enq_flags & SCX_ENQ_WAKEUP) || is_active(here) ||
	    rank_of(here) >= active_set.ceiling || cpu_state(here)->rt_preempts) {
		cpu = claim_idle_surplus(task, here, false);
		if (cpu < 0)
			return false;
		note_why(p, task, PP_WHY_SPILLED, cpu);
		run_on(p, task, cpu, on_idle(enq_flags));
	} else {
		note_why(p, task, PP_WHY_SPILLED, cpu);
		join_queue(task, cpu_queue(here));
		insert_queue(p, task, cpu_queue(here), enq_flags);
	}
	/* In a group what does not wait for the packed CPUs may have another active one. */
	if (!is_active(cpu))
		count_spill(home_node(here));
	/* This one too: it may be about to go idle (SCX_ENQ_LAST). */
	scx_bpf_kick_cpu(cpu, 0);
	return true;
}

/* A free task that found no idle CPU, or whose slice has ended. */
verified_once int place_free(struct task_struct *p __arg_trusted,
			     struct pp_task *task __arg_nonnull, u32 scope, u64 enq_flags)
{
	s32 here = scx_bpf_task_cpu(p), cpu = queueing_cpu(scope, here), idle;
	bool waking = enq_flags & SCX_ENQ_WAKEUP;

	/* On a wakeup ops.select_cpu has looked already. */
	if (!waking) {
		idle = claim_for_scope(scope, task, here);
		if (idle >= 0) {
			note_why(p, task, PP_WHY_IDLE, idle);
			run_on(p, task, idle, on_idle(enq_flags));
			scx_bpf_kick_cpu(idle, 0);
			return 0;
		}
	}
	join_queue(task, llc_queue(cpu));
	if (task->async_woken && is_new_hog(cpu))
		cpu = hog_to_preempt(task, waiting_scope(scope), cpu);
	if (may_spill(here, waking) &&
	    ((enq_flags & SCX_ENQ_REENQ) || !should_wait(task, scope, cpu, waking)) &&
	    spill(p, task, here, enq_flags))
		return 0;
	count(PP_EV_QUEUED);
	note_why(p, task, PP_WHY_QUEUED, cpu);
	wait_behind(p, task, cpu, llc_queue(cpu), enq_flags);
	/* A CPU of the set may have gone idle since it was looked for, or be about to:
	 * the set serves this queue, whatever the scope of what waits in it, but what is to be
	 * packed waits for those that it is packed on. The kernel puts the task in the queue only
	 * as this returns: one that looks before and is idle after must be kicked, which comes
	 * later. */
	if (may_miss(p, cpu, enq_flags))
		scx_bpf_kick_cpu(cpu, 0);
	if (active_set.nr > 1 || cpu != here) {
		idle = claim_idle(waiting_scope(scope), false, task, cpu);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, 0);
	}
	return 0;
}

/* A task bound to the CPU it is on. */
verified_once int place_bound(struct task_struct *p __arg_trusted,
			      struct pp_task *task __arg_nonnull, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	note_why(p, task, PP_WHY_BOUND, cpu);
	/* None waits. The CPU is about to go idle: see spill(). */
	if ((enq_flags & SCX_ENQ_LAST) && wants_no_ticks(p, cpu)) {
		run_on(p, task, cpu, enq_flags);
		scx_bpf_kick_cpu(cpu, 0);
		return 0;
	}
	/* Not behind a long run, which would not be preempted for it. */
	if ((enq_flags & SCX_ENQ_WAKEUP) && may_go_direct(cpu) &&
	    !runs_long_for(task->weight, cpu, scx_bpf_now())) {
		run_on(p, task, cpu, enq_flags);
		go_direct(cpu);
		return 0;
	}
	join_queue(task, cpu_queue(cpu));
	wait_behind(p, task, cpu, cpu_queue(cpu), enq_flags);
	/* One that waited for other CPUs as it was bound to this one, which is idle. The kernel has
	 * a CPU look for work as a task wakes there or moves there, and here it does neither. */
	if (!(enq_flags & SCX_ENQ_WAKEUP) && may_miss(p, cpu, enq_flags))
		scx_bpf_kick_cpu(cpu, 0);
	return 0;
}

#endif /* PP_PLACE_BPF_H */
