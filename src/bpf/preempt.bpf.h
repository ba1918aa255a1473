/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPU a waking task takes from what runs there: the mechanism around pp_may_preempt().
 */
#ifndef PP_PREEMPT_BPF_H
#define PP_PREEMPT_BPF_H

#include "contest.h"
#include "rivals.bpf.h"
#include "scope.bpf.h"

/* Whether @cpu runs a task whose run is, or has become, long to one of @weight that wakes there. */
static __always_inline bool runs_long_for(u32 weight, s32 cpu, u64 now)
{
	const struct pp_cpu *state = cpu_state(cpu);
	u32 times = pp_times_long(state->curr_weight, weight);

	return state->running_since_ns &&
	       pp_is_long(state->curr_run_ns * times, since(now, state->exec_start_ns) * times);
}

/* Whether it is long to one of any weight. */
static __always_inline bool runs_long(s32 cpu, u64 now)
{
	return runs_long_for(0, cpu, now);
}

/* Whether @task goes before what runs on @cpu or is about to: from the former
 * it takes the CPU as it wakes, from the latter let_earlier_first() does. */
verified_once bool goes_before(const struct pp_task *task __arg_nonnull, s32 cpu, u64 now)
{
	const struct pp_cpu *state = cpu_state(cpu);
	u64 left = running_left(state, now), ran = since(now, state->exec_start_ns);
	struct pp_rival waking, curr;
	struct pp_contest contest;

	task_rival(task, &waking);
	curr_rival(state, &curr);
	contest = (struct pp_contest){
		.ran_ns = ran,
		.left_ns = left,
		.taken_ns = since(now, state->taken_ns),
		.weight = curr.weight,
		.waking_weight = waking.weight,
		.own = waking.own,
		.async = task->async_woken,
		.gap = rival_gap(cpu, &waking, &curr),
	};
	if (!state->running_since_ns)
		return pp_goes_first(contest.gap, task_run_left(task), left, 1);
	return ran && pp_may_preempt(&contest) &&
	       pp_should_preempt(&contest, task_run_left(task), state->curr_run_ns);
}

/* Whether @cpu runs a hog that has only just begun. */
static __always_inline bool is_new_hog(s32 cpu)
{
	const struct pp_cpu *state = cpu_state(cpu);

	return state->running_since_ns && pp_is_hog(state->curr_run_ns) &&
	       since(scx_bpf_now(), state->exec_start_ns) < PP_PREEMPT_RAN_MIN_NS;
}

/* How many neighbours by rank a waking task looks at for a hog that makes way. Tasks that do so
 * move on from CPU to CPU: one of three neighbours has mostly been left alone for a ms. */
#define PP_PREEMPT_LOOKS 3

/* Whether @task may take @cpu, one of those that serve its queue, from what runs there for long.
 * A function of its own, as next_server(): in the loop that calls them the verifier would follow
 * each combination of their branches. */
verified_once bool makes_way(const struct pp_task *task __arg_nonnull, u32 among, s32 cpu, u64 now)
{
	return in_scope(among, cpu) && test_rank(task->allowed, rank_of(cpu)) &&
	       runs_long_for(task->weight, cpu, now) && goes_before(task, cpu, now);
}

/* The next CPU by rank of those of the LLC of @cpu that serve its queue, all round. */
verified_once s32 next_server(u32 among, s32 cpu)
{
	u32 llc = llc_queue(cpu) % PP_MAX_LLCS, rank = rank_of(cpu) + 1;

	if (rank >= topology.llc_end[llc] || !in_scope(among, cpu_at(rank)))
		rank = topology.llc_begin[llc];
	return cpu_at(rank);
}

/* The CPU, of those that serve the queue that @task is to wait in, from which it takes a hog: @cpu,
 * unless the hog there has only just begun and does not make way, and one on a neighbour does. */
verified_once s32 hog_to_preempt(const struct pp_task *task __arg_nonnull, u32 among, s32 cpu)
{
	u64 now = scx_bpf_now();
	s32 other = cpu;

	for (u32 i = 0; i <= PP_PREEMPT_LOOKS; i++) {
		if (makes_way(task, among, other, now))
			return other;
		other = next_server(among, other);
	}
	return cpu;
}

#endif /* PP_PREEMPT_BPF_H */
