/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU runs next, and when the running task has had its share.
 */
#ifndef PP_DISPATCH_BPF_H
#define PP_DISPATCH_BPF_H

#include "freq.bpf.h"
#include "confined.bpf.h"
#include "misfit.bpf.h"
#include "rivals.bpf.h"
#include "starving.bpf.h"
#include "steal.bpf.h"

/* Once in this many dispatches a CPU looks at the other LLCs' queues first: one whose CPUs have all
 * left the active set is served by no others, and in another one more may wait than here. And once
 * in so many it takes what waits there in any case: of five equal tasks on two LLCs of two CPUs two
 * would have a CPU each for good, and three two thirds. */
#define PP_STEAL_FIRST_EVERY 8
#define PP_STEAL_ANY_EVERY 64

/* Whether queue @own of @cpu goes before queue @shared: by their first tasks. */
static __always_inline bool own_first(s32 cpu, u32 own, u32 shared)
{
	u64 *offset = &cpu_state(cpu)->clock_offset;
	struct pp_rival ours, theirs;

	if (queue_of(own)->nr <= 0 || !head_rival(own, &ours))
		return false;
	if (queue_of(shared)->nr <= 0 || !head_rival(shared, &theirs))
		return true;
	if (pp_rival_gap(&ours, &theirs, offset) <= 0)
		return true;
	pass_clock_to(queue_of(own), pp_own_passes(&ours, &theirs, *offset));
	return false;
}

/* Whether the first task of queue @id is due before what runs on @cpu. The clock's offset is
 * kept, as in own_first(): a task that goes on is not owed the same at each tick. */
verified_once bool due_before_curr(u32 id, s32 cpu)
{
	struct pp_cpu *state = cpu_state(cpu);
	struct pp_rival head, curr;

	curr_rival(state, &curr);
	return queue_of(id)->nr > 0 && head_rival(id, &head) &&
	       pp_rival_gap(&head, &curr, &state->clock_offset) < 0;
}

/* An active CPU: what is bound to it or what its LLC shares, in order of deadline. */
static bool take_active(s32 cpu, u32 turn)
{
	u32 own = cpu_queue(cpu), shared = llc_queue(cpu);

	if (topology.nr_llcs > 1 && turn % PP_STEAL_FIRST_EVERY == 0 &&
	    take_from_others(shared, turn % PP_STEAL_ANY_EVERY != 0))
		return true;
	if (own_first(cpu, own, shared)) {
		if (take_from(own) || take_from(shared))
			return true;
	} else if (take_from(shared) || take_from(own)) {
		return true;
	}
	return topology.nr_llcs > 1 && take_from_others(shared, false);
}

/* By rank: the LLC, plus 1, that a surplus CPU was woken to help, as it may look at a few others
 * only. */
static u16 relieved[PP_MAX_CPUS];

/* A surplus CPU: what is bound to it, and what the active ones cannot do in time. */
static bool take_surplus(s32 cpu)
{
	s32 llc;

	if (take_from(cpu_queue(cpu)))
		return true;
	if (rank_of(cpu) >= active_set.ceiling)
		return false;
	llc = relieved[rank_of(cpu) % PP_MAX_CPUS] - 1;
	relieved[rank_of(cpu) % PP_MAX_CPUS] = 0;
	if (llc < 0 || !is_overdue(llc, PP_OVERDUE_BUDGETS_AWAKE))
		llc = overdue_from(llc_queue(queueing_cpu(PP_SCOPE_ACTIVE, cpu)),
				   PP_OVERDUE_BUDGETS_AWAKE);
	if (llc < 0 || !may_help(llc_queue(cpu), llc) || !take_from(llc))
		return false;
	count_spill(node_of_queue(llc));
	return true;
}

/* Tasks that wake together find the CPU idle, the first of them, and each other
 * in the queue, the rest: if one of these is due earlier than what has begun
 * to run, they change places. */
static __always_inline void let_earlier_first(const struct pp_cpu *state, s32 cpu)
{
	u32 shared = llc_queue(cpu);

	if (queue_of(shared)->nr > 0 && state->curr_run_ns >= PP_PREEMPT_LEFT_MIN_NS &&
	    is_active(cpu) && due_before_curr(shared, cpu)) {
		count(PP_EV_PREEMPT);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
}

/* Whether the task that @cpu runs may go on there if no other wants the CPU. */
static __always_inline bool may_stay(struct task_struct *prev, const struct pp_task *task, s32 cpu)
{
	u32 scope;

	if (!task || is_bound(prev))
		return true;
	if (task->restricted)
		return rank_of(cpu) < end_for(task, scope_of(task));
	if (runs_long(cpu, scx_bpf_now()) && is_crowded(task, cpu))
		return false;
	scope = scope_of(task);
	if (pp_may_overflow(scope) && !is_misfit(task, cpu))
		scope = PP_SCOPE_USABLE;
	return in_scope(scope, cpu);
}

/* Let @prev go on, if it may. One that may have its CPU without ticks must be placed again for
 * that, by place_bound(). */
static __always_inline bool stays(struct task_struct *prev, s32 cpu)
{
	struct pp_task *task = task_of(prev);

	if (task && (wants_no_ticks(prev, cpu) || is_throttled(task)))
		return false;
	if (!may_stay(prev, task, cpu))
		return false;
	if (task)
		pass_clock(task);
	scx_bpf_task_set_slice(prev, PP_SLICE_ALONE_NS);
	return true;
}

/* Whether the task whose turn has ended here goes on, as the one of its LLC's queue that goes first
 * has been taken by another CPU. The ticks of all CPUs come at the same instant, and each may see
 * the same one; and the kernel puts back what a CPU ran only when that has looked for another task.
 * So of three heavy tasks on two CPUs none waits just then, and the second CPU would take a light
 * one. */
verified_once bool goes_on(struct task_struct *prev __arg_trusted __arg_nullable, s32 cpu)
{
	struct pp_cpu *state = cpu_state(cpu);
	struct pp_task *task;
	struct pp_rival curr;

	state->turn_over = 0;
	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED) || queue_of(cpu_queue(cpu))->nr > 0)
		return false;
	curr_rival(state, &curr);
	if (is_due_before(llc_queue(cpu), curr.deadline))
		return false;
	task = task_of(prev);
	if (task)
		pass_clock(task);
	scx_bpf_task_set_slice(prev, PP_SLICE_ALONE_NS);
	return true;
}

/* Move to @cpu what find_starving() or find_stranded() has found in queue @id. */
static __always_inline bool take_found(u32 id, s32 cpu)
{
	if (is_cpu_queue(id) && id != cpu_queue(cpu))
		return take_from(id);
	return take_starving(id, cpu);
}

static __always_inline void dispatch_cpu(s32 cpu, struct task_struct *prev)
{
	struct pp_cpu *state = cpu_state(cpu);
	u32 starving = state->starving;

	size_active_if_due(scx_bpf_now());
	state->direct_streak = 0;
	state->dispatches++;
	if (starving) {
		state->starving = 0;
		if (take_found(starving - 1, cpu))
			return;
	}
	if (state->turn_over && goes_on(prev, cpu))
		return;
	if (is_active(cpu) ? take_active(cpu, state->dispatches) : take_surplus(cpu))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && stays(prev, cpu))
		return;
	if (take_from_cpus(cpu))
		return;
	/* An idle CPU that was claimed, looked, and found nothing stays idle, of
	 * which ops.update_idle is not notified: set its bit, then look again, as a task
	 * may have been queued in between. */
	if (!prev && !test_idle(rank_of(cpu)) && state->online) {
		/* A real-time task that was to run here may have gone before it did. */
		if (state->rt_since_ns)
			account_rt(state, scx_bpf_now());
		set_idle(rank_of(cpu), true);
		if (is_active(cpu))
			take_from(llc_queue(cpu));
	}
}

/* More waits for the active CPUs than they can do in time: wake a surplus one. An
 * LLC whose CPUs have all left the active set has no ticks of its own. */
static __always_inline void relieve(s32 cpu)
{
	s32 llc, idle;

	/* None could come. */
	if (!is_any_idle())
		return;
	llc = overdue_from(llc_queue(cpu), PP_OVERDUE_BUDGETS);
	if (llc < 0)
		return;
	idle = claim_idle_surplus(NULL, cpu_at(topology.llc_begin[llc % PP_MAX_LLCS]), false);
	if (idle < 0)
		return;
	relieved[rank_of(idle) % PP_MAX_CPUS] = llc + 1;
	scx_bpf_kick_cpu(idle, 0);
}

/* The queue, plus 1, whose first task is due before what runs on @cpu; 0: there is none. A heavy
 * task runs for several slices, for it is not in the queue when the next is taken. */
static __always_inline u32 due_queue(s32 cpu)
{
	u32 own = cpu_queue(cpu), shared = llc_queue(cpu);

	if (due_before_curr(own, cpu))
		return own + 1;
	return is_active(cpu) && due_before_curr(shared, cpu) ? shared + 1 : 0;
}

/* One without a slice is back from a real-time class, where a lock that it held has taken it: the
 * kernel lets it run on, takes its slice, and asks nobody. Its turn goes on, as long as it would
 * have. */
static __always_inline void begin_turn(struct task_struct *p, struct pp_cpu *cpu, u64 now)
{
	if (p->scx.slice)
		cpu->exec_start_ns = now;
	else
		scx_bpf_task_set_slice(p, PP_SLICE_ALONE_NS);
}

/* Whether what runs on @cpu has used its slice, or would keep a short task waiting. */
static __always_inline bool is_slice_over(s32 cpu, u64 now)
{
	const struct pp_cpu *state = cpu_state(cpu);
	const struct pp_queue *own = queue_of(cpu_queue(cpu)), *shared = queue_of(llc_queue(cpu));
	bool short_waits = pp_short_waits(own->queued_ns) ||
			   (is_active(cpu) && pp_short_waits(shared->queued_ns));

	return pp_slice_over(state->curr_run_ns, since(now, state->exec_start_ns), slice_shared_ns,
			     short_waits);
}

/* At a tick of @cpu: end the turn of @p if others wait and one of them goes first. Else it
 * has another one, for which the clock passes as if it had been taken from the queue. */
static __always_inline void end_turn(struct task_struct *p, const struct pp_task *task, s32 cpu,
				     u64 now)
{
	struct pp_cpu *state = cpu_state(cpu);
	bool waits = others_wait(cpu), direct = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu);
	u32 shared = llc_queue(cpu), due = 0;

	state->turn_over = 0;
	if (find_stranded(cpu, now) || (waits && find_starving(cpu, now))) {
		scx_bpf_task_set_slice(p, 0);
		return;
	}
	if (waits && !direct && task)
		due = due_queue(cpu);
	if (!waits || (task && !direct && !due)) {
		if (task)
			pass_clock(task);
		if (waits)
			scx_bpf_task_set_slice(p, PP_SLICE_ALONE_NS);
	} else if (is_slice_over(cpu, now)) {
		state->turn_over = due == shared + 1 && state->curr_queue == shared;
		scx_bpf_task_set_slice(p, 0);
	}
}

/* The order of what runs, as of now. */
static __always_inline void keep_order(struct pp_task *task, struct pp_cpu *state)
{
	task->vtime = pp_vtime_owed(task->vtime, queue_of(task->queue)->clock, task->weight,
				    owed_max_ns(task));
	set_curr(state, task);
}

/* The running task is to be placed by what is known now. */
static __always_inline void place_again(struct task_struct *p, struct pp_cpu *state)
{
	state->turn_over = 0;
	scx_bpf_task_set_slice(p, 0);
}

/* The tick of a busy CPU. */
static __always_inline void tick_cpu(struct task_struct *p, s32 cpu, u64 now)
{
	struct pp_cpu *state = cpu_state(cpu);
	struct pp_task *task = task_of(p);

	/* A CPU that was busy when we were loaded counts as idle. */
	if (test_idle(rank_of(cpu)))
		set_idle(rank_of(cpu), false);
	look_at_freq(state, cpu);
	account_run(task, state, now);
	if (task) {
		keep_order(task, state);
		update_perf_at_tick(state, cpu, task, now);
	}
	go_on_sizing(now);
	if (is_active(cpu))
		relieve(cpu);
	end_turn(p, task, cpu, now);
	if (!task)
		return;
	/* A hog that is alone never stops. */
	if (follow_cgroup(p, task, now, PP_STOP_GOES_ON))
		place_again(p, state);
	if (task->charged)
		charge_limit(p, task);
	if (task->charged != task->limit)
		follow_limit(p, task);
	if (task->charged && !reserve_more(task))
		place_again(p, state);
	refresh_kind(p, task);
	note_misfit(p, task, cpu);
	if (!is_bound(p) &&
	    (is_misfit(task, cpu) || (runs_long(cpu, now) && is_crowded(task, cpu))))
		place_again(p, state);
}

#endif /* PP_DISPATCH_BPF_H */
