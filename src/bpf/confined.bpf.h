/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task runs that is for some CPUs only: by its affinity, its cpuset, or the user's table.
 * Packing fills the CPUs that it may use as it fills all, one after the other by rank.
 */
#ifndef PP_CONFINED_BPF_H
#define PP_CONFINED_BPF_H

#include "place.bpf.h"

/* Whether the task is to wait for busy @cpu rather than take another one. */
verified_once bool should_share(const struct pp_task *task __arg_nonnull, s32 cpu, bool waking)
{
	const struct pp_cpu *state = cpu_state(cpu);
	struct pp_candidate candidate = {
		.util = state->util,
		.capacity = state->capacity,
		.is_prev = task->last_cpu == cpu,
	};
	struct pp_wait wait = { .run_left_ns = task_run_left(task) };
	u64 kept_ns, now = scx_bpf_now();
	u32 class = task_run_class(task);

	/* Not even for a short time: for how long is found out too late. */
	if (state->rt_preempts || is_rt_busy(state, now) ||
	    !pp_has_room(policy_now(), &candidate, task_util(task)))
		return false;
	/* By the clock of another queue it is not known which of the two goes first. */
	kept_ns = task->queue == cpu_queue(cpu) ? kept_by_running(task, cpu, waking)
						: running_left(state, now);
	/* The CPU serves both queues. */
	wait.wait_ns = pp_expected_wait(queue_of(cpu_queue(cpu))->queued_ns, class, kept_ns, 1);
	if (is_active(cpu))
		wait.wait_ns += pp_expected_wait(queue_of(llc_queue(cpu))->queued_ns, class, 0,
						 nr_servers(llc_queue(cpu)));
	wait.others_ns = longest_wait(task, cpu_queue(cpu), kept_ns, 1);
	wait.running_left_ns = waking ? running_left(state, now) : 0;
	return pp_should_wait(policy_now(), &wait);
}

/* Of word @word of the ranks those that the task may run on, and that are idle or had room for more
 * as the active set was last sized. */
static __always_inline u64 roomy_word(const struct pp_task *task, u32 word)
{
	if (!walks_set())
		return task->allowed[word];
	return task->allowed[word] & online_ranks[word] & (roomy_ranks[word] | idle_ranks[word]);
}

/* The first CPU by rank, before @end, that is idle, and is claimed, or that the task is to share;
 * -1: none of those looked at. */
verified_once s32 first_with_room(const struct pp_task *task __arg_nonnull, u32 end, bool waking,
				  bool *claimed __arg_nonnull)
{
	u32 step, word = 0;
	u64 left = roomy_word(task, 0);

	bpf_for (step, 0, PP_LOOK_RANKS + topology.nr_words) {
		s32 cpu;

		if (!left) {
			if (++word >= topology.nr_words)
				break;
			left = roomy_word(task, word % PP_RANK_WORDS);
			continue;
		}
		cpu = cpu_at(pp_lowest(word, left));
		left &= left - 1;
		if (!may_use(task, cpu, end))
			continue;
		*claimed = test_idle(rank_of(cpu)) && claim_rank(rank_of(cpu));
		if (*claimed || should_share(task, cpu, waking))
			return cpu;
	}
	return -1;
}

/* Whether tasks of @scope are packed. */
static __always_inline bool is_packed(u32 scope)
{
	const struct pp_policy *policy = policy_now();

	return scope == PP_SCOPE_PACKED || (scope == PP_SCOPE_ACTIVE && !policy->all_active);
}

/* An idle CPU for it, claimed, or one that it shares; -1: all are busy. */
static __always_inline s32 find_cpu(const struct pp_task *task, u32 scope, s32 here, bool waking,
				    bool *claimed)
{
	s32 cpu = claim_for_scope(scope, task, here);

	*claimed = cpu >= 0;
	if (cpu < 0 && is_packed(scope))
		cpu = first_with_room(task, end_for(task, scope), waking, claimed);
	if (cpu >= 0 || scope == PP_SCOPE_EFFICIENT)
		return cpu;
	cpu = claim_idle_surplus(task, here, !may_run_in(task, PP_SCOPE_USABLE));
	*claimed = cpu >= 0;
	return cpu;
}

/* The task runs on an idle CPU or one with room for it; else it waits for the one that it has
 * to itself the soonest. */
verified_once int place_confined(struct task_struct *p __arg_trusted,
				 struct pp_task *task __arg_nonnull, u32 scope, u64 enq_flags)
{
	bool waking = enq_flags & SCX_ENQ_WAKEUP, claimed = false;
	s32 here = scx_bpf_task_cpu(p), cpu = find_cpu(task, scope, here, waking, &claimed);

	if (claimed) {
		note_why(p, task, PP_WHY_CHOSEN_IDLE, cpu);
		run_on(p, task, cpu, on_idle(enq_flags));
		scx_bpf_kick_cpu(cpu, 0);
		return 0;
	}
	if (cpu < 0)
		cpu = own_queue_for(task, here, end_for(task, scope), waking);
	note_why(p, task, PP_WHY_CHOSEN_BUSY, cpu);
	join_queue(task, cpu_queue(cpu));
	note_confined_waits(p, task, cpu_state(cpu));
	task->for_efficient = scope == PP_SCOPE_EFFICIENT;
	wait_behind(p, task, cpu, cpu_queue(cpu), enq_flags);
	/* Whether another CPU is about to go idle is not known until the task is in its queue. */
	if (cpu != here || may_miss(p, cpu, enq_flags))
		scx_bpf_kick_cpu(cpu, 0);
	return 0;
}

#endif /* PP_CONFINED_BPF_H */
