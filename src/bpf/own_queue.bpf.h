/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which CPU's own queue a task waits that may run, or is to run, on some CPUs only.
 */
#ifndef PP_OWN_QUEUE_BPF_H
#define PP_OWN_QUEUE_BPF_H

#include "contest.h"
#include "queues.bpf.h"
#include "scope.bpf.h"

/* What a real-time task that keeps a CPU for long counts as, beside runs of tasks and what waits:
 * more than any of them, so that such a CPU is chosen only where there is no other. */
#define PP_RT_KEEPS_NS (1000 * PP_NS_PER_MS)

/* The end of the ranks that a task may use, as far as its affinity allows: of the efficient ones if
 * that is its @scope, of those below the ceiling if it may run on any of them, or of all. */
static __always_inline u32 end_for(const struct pp_task *task, u32 scope)
{
	if (scope == PP_SCOPE_EFFICIENT)
		return efficient_below_ceiling();
	return may_run_in(task, PP_SCOPE_USABLE) ? active_set.ceiling : topology.nr_ranks;
}

/* Whether @task may run on @cpu, and its rank is before @end. */
verified_once bool may_use(const struct pp_task *task __arg_nonnull, s32 cpu, u32 end)
{
	return rank_of(cpu) < end && cpu_state(cpu)->online &&
	       test_rank(task->allowed, rank_of(cpu));
}

/* The next CPU from @rank on, all round, that the task may run on and that is online and before
 * @end; -1: there is none. Only for machines of many CPUs: those that it may not use are not to be
 * among the few that are looked at. */
verified_once s32 next_allowed(const struct pp_task *task __arg_nonnull, u32 rank, u32 end)
{
	u32 word = rank_word(rank), i;
	u64 bits = task->allowed[word] & online_ranks[word] & pp_ranks_below(end, word) &
		   ~0ULL << rank % PP_WORD_BITS;

	for (i = 0; !bits && i < topology.nr_words && i < PP_RANK_WORDS; i++) {
		word = word + 1 < topology.nr_words ? (word + 1) % PP_RANK_WORDS : 0;
		bits = task->allowed[word] & online_ranks[word] & pp_ranks_below(end, word);
	}
	return bits ? pp_lowest(word, bits) : -1;
}

/* A CPU for whose queue none waits: the one @here, or one near it by rank; -1: none was found. */
verified_once s32 empty_queue(const struct pp_task *task __arg_nonnull, s32 here, u32 end)
{
	u32 word = rank_word(rank_of(here));

	if (!test_rank(waiting_ranks, rank_of(here)) && may_use(task, here, end) &&
	    !is_rt_busy(cpu_state(here), scx_bpf_now()))
		return here;
	for (u32 i = 0; i < topology.nr_words && i < PP_RANK_WORDS; i++) {
		u64 empty = task->allowed[word] & online_ranks[word] & ~waiting_ranks[word] &
			    pp_ranks_below(end, word);

		if (empty)
			return cpu_at(pp_lowest(word, empty));
		word = word + 1 < topology.nr_words ? (word + 1) % PP_RANK_WORDS : 0;
	}
	return -1;
}

/* How much runs on @cpu or waits in its queue that goes before a task of @class and @weight, as it
 * is shorter or, running, is not cut short for it at once: a short run, and that of a task of twice
 * its weight (ns). Not in the loop itself: the verifier would follow each class through each of its
 * turns. */
verified_once u64 waits_before(s32 cpu, u32 class, u32 weight, u64 now)
{
	const struct pp_queue *queue = queue_of(cpu_queue(cpu));
	const struct pp_cpu *state = cpu_state(cpu);
	u64 running_ns = 0, ran_ns = since(now, state->exec_start_ns);
	u32 times = pp_times_long(state->curr_weight, weight);

	if (is_rt_busy(state, now))
		running_ns = PP_RT_KEEPS_NS;
	else if (pp_run_class(state->curr_run_ns) <= class || state->curr_weight / 2 >= weight ||
		 !pp_is_long(state->curr_run_ns * times, ran_ns * times))
		running_ns = turn_left(state, now);
	/* Each that waits counts as 2 ns, which is less than any of them takes. */
	return pp_expected_wait(queue->queued_ns, class, running_ns, 1) + 2 * (u32)queue->nr;
}

/* The CPU, of those that are looked at, in whose queue the least waits that goes before the task:
 * hogs do not, and if they counted, most of some short tasks that wake at once would wait for each
 * other behind the CPU of the fewest hogs. */
verified_once s32 shortest_queue(const struct pp_task *task __arg_nonnull, s32 here, u32 end)
{
	struct pp_walk walk = walk_from(rank_of(here));
	u32 step, class = task_run_class(task);
	u64 ahead_min_ns = ~0ULL, now = scx_bpf_now();
	s32 best = here;

	if (walks_set()) {
		s32 empty = empty_queue(task, here, end);

		if (empty >= 0)
			return empty;
	}
	bpf_for (step, 0, PP_LOOK_RANKS) {
		s32 cpu =
			walk_on(&walk, walks_set() ? next_allowed(task, walk.next, end) : -1, step);
		u64 ahead_ns;

		if (cpu < 0)
			break;
		/* Of those that are equal, the one that fewer share with it; and then the one
		 * @here. */
		ahead_ns = waits_before(cpu, class, task->weight, now) + (cpu != here);
		if (ahead_ns < ahead_min_ns && may_use(task, cpu, end)) {
			ahead_min_ns = ahead_ns;
			best = cpu;
		}
	}
	return best;
}

/* By how much more the tasks that compete for @cpu have had than this one, which has run @here.
 * A difference of more than a task can be owed is forgotten, once for all, by whichever is
 * ahead. If those behind were moved on, they would lead a third CPU by as much, whose tasks would
 * be owed what nobody has had. Lighter tasks than this one may be behind by more, as their turns
 * are longer by the clock. */
verified_once s64 lead_of(const struct pp_task *task __arg_nonnull, s32 cpu, s32 here)
{
	u64 *own_shift = &scale_of(cpu_queue(here))->shift,
	    *shift = &scale_of(cpu_queue(cpu))->shift;
	u32 theirs = cpu_state(cpu)->curr_weight, weight = task->weight;
	s64 lead = own_front(cpu) + *shift - (task->vtime + *own_shift), kept;

	if (lead < 0 && theirs && theirs < weight)
		weight = theirs;
	kept = pp_common_lead(lead, weight, topology.tick_ns);
	if (lead > kept)
		*shift -= lead - kept;
	else if (lead < kept)
		*own_shift -= kept - lead;
	return kept;
}

/* The CPU for which a task waits for its next turn: the one @here, unless the tasks that compete
 * for another one have had more for their weight. */
verified_once s32 fairest_queue(const struct pp_task *task __arg_nonnull, s32 here, u32 end)
{
	u64 now = scx_bpf_now();
	bool cut = since(now, cpu_state(here)->taken_ns) < topology.tick_ns;
	struct pp_walk walk = walk_from(rank_of(here));
	s64 lead_max = 0;
	s32 best = here;
	u32 step;

	if (task->queue != cpu_queue(here) || !has_own_rivals(here))
		return here;
	bpf_for (step, 0, PP_LOOK_RANKS) {
		s32 cpu =
			walk_on(&walk, walks_set() ? next_allowed(task, walk.next, end) : -1, step);
		s64 lead;

		if (cpu < 0)
			break;
		if (cpu == here || !may_use(task, cpu, end) || has_rt(cpu_state(cpu), now))
			continue;
		if (!has_own_rivals(cpu))
			return cpu;
		lead = lead_of(task, cpu, here);
		if (lead > lead_max) {
			lead_max = lead;
			best = cpu;
		}
	}
	return pp_is_worth_moving(lead_max, task->weight, topology.tick_ns, cut) ? best : here;
}

/* A waking task is served before hogs in any queue, and the sooner the fewer wait there. One
 * that has had a turn goes where it gets its share, unless a real-time task has taken its CPU. */
static __always_inline s32 own_queue_for(const struct pp_task *task, s32 here, u32 end, bool waking)
{
	if (waking || !may_use(task, here, end) || is_rt_busy(cpu_state(here), scx_bpf_now()))
		return shortest_queue(task, here, end);
	return fairest_queue(task, here, end);
}

#endif /* PP_OWN_QUEUE_BPF_H */
