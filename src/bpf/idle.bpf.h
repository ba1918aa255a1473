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

static __always_inline bool test_rank(const u64 *ranks, u32 rank)
{
	return ranks[rank_word(rank)] & rank_bit(rank);
}

static __always_inline bool test_idle(u32 rank)
{
	return test_rank(idle_ranks, rank);
}

static __always_inline void set_idle(u32 rank, bool idle)
{
	u32 word = rank_word(rank);

	if (idle)
		__sync_fetch_and_or(&idle_ranks[word], rank_bit(rank));
	else if (idle_ranks[word] & rank_bit(rank))
		__sync_fetch_and_and(&idle_ranks[word], ~rank_bit(rank));
}

/* Take the idle CPU at @rank; false if another CPU was faster. */
static __always_inline bool claim_rank(u32 rank)
{
	u32 word = rank_word(rank);
	u64 was;

	was = __sync_fetch_and_and(&idle_ranks[word], ~rank_bit(rank));
	return was & rank_bit(rank);
}

#endif /* PP_IDLE_BPF_H */
