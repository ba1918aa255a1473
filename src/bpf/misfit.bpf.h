/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks on cores that are too small for them, where the larger ones were busy. At its ticks such a
 * task moves to a larger core that is idle by then; a larger core that goes idle in between fetches
 * one, as shorter runs than a tick would never see one that is idle for less.
 */
#ifndef PP_MISFIT_BPF_H
#define PP_MISFIT_BPF_H

#include "account.bpf.h"
#include "scope.bpf.h"

/* CPUs that run a task which is for a larger core and may move there. */
static u64 misfit_ranks[PP_RANK_WORDS], misfit_words;

/* Whether @p needs a larger core than @cpu is by what it uses, for long enough, and may go there.
 * What mode spread prefers for all tasks is not enough: it would cost the most of its energy. */
static __always_inline bool needs_larger(const struct task_struct *p, const struct pp_task *task,
					 s32 cpu)
{
	u32 kind = task->kind % PP_MAX_KINDS;

	return kind && task->workload != PP_WORKLOAD_EFFICIENT &&
	       !test_rank(ranks_in(topology.ranks_from_kind[kind]), rank_of(cpu)) &&
	       cpu_state(cpu)->curr_run_ns >= PP_PREEMPT_LEFT_MIN_NS && !task->restricted &&
	       !is_bound(p);
}

/* @p runs on @cpu from now on, or has a tick there. */
static __always_inline void note_misfit(const struct task_struct *p, const struct pp_task *task,
					s32 cpu)
{
	u32 rank = rank_of(cpu);
	bool misfit;

	if (topology.nr_kinds <= 1)
		return;
	misfit = needs_larger(p, task, cpu);
	if (misfit == test_rank(misfit_ranks, rank))
		return;
	if (misfit)
		add_to_ranks(&misfit_words, misfit_ranks, rank);
	else
		remove_from_ranks(&misfit_words, misfit_ranks, rank);
}

/* What ran on @cpu has stopped. */
static __always_inline void end_misfit(s32 cpu)
{
	if (topology.nr_kinds > 1 && test_rank(misfit_ranks, rank_of(cpu)))
		remove_from_ranks(&misfit_words, misfit_ranks, rank_of(cpu));
}

/* A CPU of a kind smaller than @kind that will run a misfit for a while yet; -1: there is none. */
static __always_inline s32 misfit_below(u32 kind)
{
	u32 word = pp_word_in_use(misfit_words, topology.nr_words, 0);
	const u64 *others = ranks_in(topology.ranks_from_kind[kind % PP_MAX_KINDS]);
	u64 smaller;
	s32 cpu;

	if (word >= topology.nr_words || word >= PP_RANK_WORDS)
		return -1;
	smaller = misfit_ranks[word] & ~others[word];
	if (!smaller)
		return -1;
	cpu = cpu_at(pp_lowest(word, smaller));
	return running_left(cpu_state(cpu), scx_bpf_now()) < PP_PREEMPT_LEFT_MIN_NS ? -1 : cpu;
}

/* @cpu has gone idle: have a CPU of a smaller kind that runs a misfit place that again. It comes
 * here, if nobody has been faster. */
static __always_inline void fetch_misfit(s32 cpu)
{
	u32 kind;
	s32 from;

	if (topology.nr_kinds <= 1)
		return;
	kind = kind_of_rank(rank_of(cpu));
	if (!kind || !in_scope(PP_SCOPE_KIND + kind, cpu))
		return;
	from = misfit_below(kind);
	if (from >= 0 && remove_from_ranks(&misfit_words, misfit_ranks, rank_of(from)))
		scx_bpf_kick_cpu(from, SCX_KICK_PREEMPT);
}

#endif /* PP_MISFIT_BPF_H */
