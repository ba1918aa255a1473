/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs as bits in rank space. A waker claims a CPU by clearing its bit;
 * the CPU sets it again when it next goes idle.
 */
#ifndef PP_IDLE_BPF_H
#define PP_IDLE_BPF_H

#include "state.bpf.h"

static __always_inline u64 rank_bit(u32 rank)
{
	return 1ULL << (rank % PP_WORD_BITS);
}

static __always_inline u32 rank_word(u32 rank)
{
	return rank / PP_WORD_BITS % PP_RANK_WORDS;
}

static __always_inline bool test_idle(u32 rank)
{
	return idle_ranks[rank_word(rank)] & rank_bit(rank);
}

/* Set or clear the bits of the whole core of @rank, as its CPUs are all idle or not. */
static __always_inline void update_idle_core(u32 rank, bool idle)
{
	u32 first, word, sibling;
	u64 bits = 0;

	/* clang knows that the rank is in range and drops the remainder, which the
	 * verifier of 6.12 does not know. */
	barrier_var(rank);
	first = core_of_rank[rank % PP_MAX_CPUS];
	word = rank_word(first);

	/* The ranks of a core are neighbours; of one that straddles two words
	 * only the first part is looked at, which errs to less idle cores. */
	bpf_for (sibling, first, first + cores_threads) {
		if (sibling < nr_ranks && rank_word(sibling) == word &&
		    core_of_rank[sibling % PP_MAX_CPUS] == first)
			bits |= rank_bit(sibling);
	}
	if (idle && (idle_ranks[word] & bits) == bits)
		__sync_fetch_and_or(&idle_core_ranks[word], bits);
	else if (idle_core_ranks[word] & bits)
		__sync_fetch_and_and(&idle_core_ranks[word], ~bits);
}

static __always_inline void set_idle(u32 rank, bool idle)
{
	u32 word = rank_word(rank);

	if (idle)
		__sync_fetch_and_or(&idle_ranks[word], rank_bit(rank));
	else if (idle_ranks[word] & rank_bit(rank))
		__sync_fetch_and_and(&idle_ranks[word], ~rank_bit(rank));
	if (smt)
		update_idle_core(rank, idle);
}

/* Take the idle CPU at @rank; false if somebody was faster. */
static __always_inline bool claim_rank(u32 rank)
{
	u32 word = rank_word(rank);
	u64 was;

	was = __sync_fetch_and_and(&idle_ranks[word], ~rank_bit(rank));
	if (!(was & rank_bit(rank)))
		return false;
	if (smt)
		update_idle_core(rank, false);
	return true;
}

#endif /* PP_IDLE_BPF_H */
