/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From CPU numbers to ranks, for sets of them: 64 CPUs at a time. What an affinity costs to
 * translate depends on how many single CPUs it names, or leaves out, not on how many there are.
 */
#ifndef PP_CPU_WORDS_BPF_H
#define PP_CPU_WORDS_BPF_H

#include "idle.bpf.h"

/* The CPUs that there are, by number. Written by ops.init, as all here. */
static u64 known_cpus[PP_RANK_WORDS];
/* The ranks of the CPUs in each word of @known_cpus. */
static u64 ranks_of_word[PP_RANK_WORDS][PP_RANK_WORDS];
/* Words with a CPU, and those before. The kernel's masks have at least as many. */
static u32 nr_cpu_words;

static __always_inline u32 cpu_word(u32 cpu)
{
	return cpu / PP_WORD_BITS % PP_RANK_WORDS;
}

static __always_inline void begin_cpu_word(u32 cpu, u32 rank)
{
	u32 word = cpu_word(cpu);

	known_cpus[word] |= 1ULL << cpu % PP_WORD_BITS;
	ranks_of_word[word][rank_word(rank)] |= rank_bit(rank);
	if (word >= nr_cpu_words)
		nr_cpu_words = word + 1;
}

/* Turn the bits of @ranks that stand for @cpus of word @word. */
static __always_inline void flip_ranks(u64 *ranks, u64 cpus, u32 word)
{
	u32 step;

	bpf_for (step, 0, PP_WORD_BITS) {
		u32 rank;

		if (!cpus)
			break;
		rank = rank_of(word * PP_WORD_BITS + __builtin_ctzll(cpus));
		ranks[rank_word(rank)] ^= rank_bit(rank);
		cpus &= cpus - 1;
	}
}

/* The task may run on @cpus of word @word, of which nothing is known yet: their ranks one by one,
 * or all of the word but for the other ones, whichever are fewer. */
verified_once int allow_cpus(struct pp_task *task __arg_nonnull, u64 cpus, u32 word)
{
	u64 known = known_cpus[word % PP_RANK_WORDS];
	u64 in = cpus & known, out = known & ~cpus;
	u32 at;

	word %= PP_RANK_WORDS;
	if (__builtin_popcountll(in) <= __builtin_popcountll(out)) {
		flip_ranks(task->allowed, in, word);
		return 0;
	}
	for (at = 0; at < topology.nr_words && at < PP_RANK_WORDS; at++)
		task->allowed[at] |= ranks_of_word[word][at];
	flip_ranks(task->allowed, out, word);
	return 0;
}

#endif /* PP_CPU_WORDS_BPF_H */
