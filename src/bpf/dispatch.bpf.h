/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU runs next, and when what runs has had its share.
 */
#ifndef PP_DISPATCH_BPF_H
#define PP_DISPATCH_BPF_H

#include "freq.bpf.h"
#include "place.bpf.h"

/* Every so many dispatches a CPU looks at the other LLCs' queues first: one
 * whose CPUs have all left the active set is served by nobody else. */
#define PP_STEAL_FIRST_EVERY 8

/* Whether more is queued in LLC @llc than its active CPUs can do in @budgets. */
verified_once bool is_overdue(u32 llc, u32 budgets)
{
	struct pp_queue *queue = queue_of(llc);

	return queue->nr > 0 && pp_is_overdue(policy_now(), queue->queued_ns, nr_servers(llc),
					      scx_bpf_now() - queue->waiting_since_ns, budgets);
}

/* Whether a CPU of a memory node is idle that may be used. */
verified_once bool has_idle_of_node(u32 node)
{
	const u64 *usable = ranks_of_scope(PP_SCOPE_USABLE);

	for (u32 word = 0; word < nr_words && word < PP_RANK_WORDS; word++) {
		if (idle_ranks[word] & usable[word] & node_ranks[node % PP_MAX_NODES][word])
			return true;
	}
	return false;
}

/* Whether idle CPUs of LLC @llc take what waits in LLC @other. From another memory node
 * only what that one does not get done by itself: who has left it does not come back. */
static __always_inline bool may_help(u32 llc, u32 other)
{
	u32 node = node_of_queue(other);

	return node == node_of_queue(llc) || !is_node_active(node) || !keeps_to_itself(node) ||
	       (!has_idle_of_node(node) && is_overdue(other, PP_OVERDUE_BUDGETS_AWAKE));
}

static bool take_from_others(u32 llc)
{
	u32 step;

	bpf_for (step, 1, nr_llcs) {
		u32 other = (llc + step) % nr_llcs;

		if (may_help(llc, other) && take_from(other)) {
			count(PP_EV_STEAL);
			return true;
		}
	}
	return false;
}

/* Whether the first task of queue @id is due before @deadline. */
verified_once bool due_before(u32 id, u64 deadline)
{
	struct task_struct *head;
	bool before;

	bpf_rcu_read_lock();
	head = __COMPAT_scx_bpf_dsq_peek(id);
	before = head && (s64)(head->scx.dsq_vtime - deadline) < 0;
	bpf_rcu_read_unlock();
	return before;
}

/* Whether the first task of queue @id is due before that of queue @other. */
static __always_inline bool head_before(u32 id, u32 other)
{
	struct task_struct *head;
	u64 deadline = 0;

	bpf_rcu_read_lock();
	head = __COMPAT_scx_bpf_dsq_peek(other);
	if (head)
		deadline = head->scx.dsq_vtime;
	bpf_rcu_read_unlock();
	return !head || due_before(id, deadline);
}

/* Whether queue @own goes before queue @shared: by their first tasks. */
static __always_inline bool own_first(u32 own, u32 shared)
{
	return queue_of(own)->nr > 0 && !(queue_of(shared)->nr > 0 && head_before(shared, own));
}

/* An active CPU: what is bound to it or what its LLC shares, in order of deadline. */
static bool take_active(s32 cpu, u32 turn)
{
	u32 own = cpu_queue(cpu), shared = llc_queue(cpu);

	if (nr_llcs > 1 && turn % PP_STEAL_FIRST_EVERY == 0 && take_from_others(shared))
		return true;
	if (own_first(own, shared)) {
		if (take_from(own) || take_from(shared))
			return true;
	} else if (take_from(shared) || take_from(own)) {
		return true;
	}
	return nr_llcs > 1 && take_from_others(shared);
}

/* The first LLC from @llc on of which more waits than its active CPUs do in @budgets
 * latency budgets; -1: none. */
verified_once s32 overdue_from(u32 llc, u32 budgets)
{
	u32 step;

	if (is_overdue(llc, budgets))
		return llc;
	if (nr_llcs <= 1)
		return -1;
	bpf_for (step, 1, nr_llcs) {
		if (is_overdue((llc + step) % nr_llcs, budgets))
			return (llc + step) % nr_llcs;
	}
	return -1;
}

/* A surplus CPU: what is bound to it, and what the active ones cannot do in time. */
static bool take_surplus(s32 cpu)
{
	s32 llc;

	if (take_from(cpu_queue(cpu)))
		return true;
	if (rank_of(cpu) >= active_set.ceiling)
		return false;
	llc = overdue_from(llc_queue(queueing_cpu(cpu)), PP_OVERDUE_BUDGETS_AWAKE);
	if (llc < 0 || !may_help(llc_queue(cpu), llc) || !take_from(llc))
		return false;
	count_spill(node_of_queue(llc));
	return true;
}

/* A CPU with nothing to do: what waits for another one and may run here. While some
 * wait for the efficient CPUs alone, others leave the queues of those alone: only the
 * first in a queue can be looked at. */
static bool take_from_cpus(s32 cpu)
{
	u32 rank, from = 0;

	if (nr_waiting_for_cpus <= 0)
		return false;
	if (nr_waiting_efficient > 0 && rank_of(cpu) >= efficient_end)
		from = efficient_end;
	bpf_for (rank, from, nr_ranks) {
		if (take_from(cpu_queue(cpu_at(rank)))) {
			count(PP_EV_STEAL);
			return true;
		}
	}
	return false;
}

/* Tasks that wake together find the CPU idle, the first of them, and each other
 * in the queue, the rest: if one of these is due earlier than what has begun
 * to run, they change places. */
static __always_inline void let_earlier_first(const struct pp_cpu *state, s32 cpu)
{
	u32 shared = llc_queue(cpu);

	if (queue_of(shared)->nr > 0 && state->curr_run_ns >= PP_PREEMPT_LEFT_MIN_NS &&
	    is_active(cpu) &&
	    due_before(shared, on_scale_of(shared, state->curr_deadline, state->curr_queue))) {
		count(PP_EV_PREEMPT);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
}

/* Whether the task that @cpu runs may go on there if nobody else wants the CPU. */
static __always_inline bool may_stay(struct task_struct *prev, s32 cpu)
{
	struct pp_task *task;
	u32 scope;

	if (!(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	task = task_of(prev);
	if (!task || task->restricted || is_bound(prev))
		return true;
	scope = scope_of(task);
	if (pp_may_overflow(scope) && !is_misfit(task, cpu))
		scope = PP_SCOPE_USABLE;
	return in_scope(scope, cpu);
}

static __always_inline void dispatch_cpu(s32 cpu, struct task_struct *prev)
{
	struct pp_cpu *state = cpu_state(cpu);

	size_active_if_due(scx_bpf_now());
	state->direct_streak = 0;
	state->dispatches++;
	if (is_active(cpu) ? take_active(cpu, state->dispatches) : take_surplus(cpu))
		return;
	if (prev && may_stay(prev, cpu)) {
		scx_bpf_task_set_slice(prev, PP_SLICE_ALONE_NS);
		return;
	}
	if (take_from_cpus(cpu))
		return;
	/* An idle CPU that was claimed, looked, and found nothing stays idle, of
	 * which ops.update_idle is not told: say so, then look again, as a task
	 * may have been queued in between. */
	if (!prev && !test_idle(rank_of(cpu)) && state->online) {
		set_idle(rank_of(cpu), true);
		if (is_active(cpu))
			take_from(llc_queue(cpu));
	}
}

/* More waits for the active CPUs than they can do in time: wake a surplus one. An
 * LLC whose CPUs have all left the active set has no ticks of its own. */
static __always_inline void relieve(s32 cpu)
{
	s32 llc = overdue_from(llc_queue(cpu), PP_OVERDUE_BUDGETS), idle;

	if (llc < 0)
		return;
	idle = claim_surplus(NULL, cpu_at(llc_begin[llc % PP_MAX_LLCS]), false);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, 0);
}

/* Whether what runs on @cpu is still due before all that wait: a heavy task
 * runs for several slices, for it is not in the queue when the next is taken. */
static __always_inline bool still_first(const struct pp_task *task, s32 cpu)
{
	u64 deadline = on_scale_of(cpu_queue(cpu), task_deadline(task), task->queue);

	return !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) &&
	       !due_before(cpu_queue(cpu), deadline) &&
	       !(is_active(cpu) && due_before(llc_queue(cpu), deadline));
}

/* The tick of a busy CPU. */
static __always_inline void tick_cpu(struct task_struct *p, s32 cpu, u64 now)
{
	struct pp_cpu *state = cpu_state(cpu);
	struct pp_task *task = task_of(p);
	struct pp_queue *own = queue_of(cpu_queue(cpu)), *shared = queue_of(llc_queue(cpu));
	bool short_waits;
	u64 ran;

	/* A CPU that was busy when we were loaded was taken to be idle. */
	if (test_idle(rank_of(cpu)))
		set_idle(rank_of(cpu), false);
	look_at_freq(state, cpu);
	account_run(task, state, now);
	if (task) {
		lead_clock(task);
		wish_at_tick(state, cpu, task, now);
	}
	advance_vtime_floor(llc_queue(cpu), now);
	if (is_active(cpu))
		relieve(cpu);
	ran = now - state->stint_start_ns;
	short_waits = pp_short_waits(own->queued_ns) ||
		      (is_active(cpu) && pp_short_waits(shared->queued_ns));
	/* A hog that is alone never stops. It is placed anew by what is known now. */
	if (task && task->cgroup_generation != cgroup_generation) {
		refresh_cgroup(p, task);
		scx_bpf_task_set_slice(p, 0);
	}
	if (task && nr_kinds > 1) {
		refresh_kind(p, task);
		if (!is_bound(p) && is_misfit(task, cpu))
			scx_bpf_task_set_slice(p, 0);
	}
	if (pp_slice_over(state->curr_run_ns, ran, short_waits) && others_wait(cpu))
		scx_bpf_task_set_slice(p, task && still_first(task, cpu) ? PP_SLICE_ALONE_NS : 0);
}

#endif /* PP_DISPATCH_BPF_H */
