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

/* @rank has come or gone: the next rank is its sibling while both are online. */
static __always_inline void note_sibling(u32 rank)
{
	if (test_rank(ranks_in(topology.siblings), rank) && test_rank(online_ranks, rank) &&
	    test_rank(online_ranks, rank + 1))
		__sync_fetch_and_or(&sibling_ranks[rank_word(rank)], rank_bit(rank));
	else
		__sync_fetch_and_and(&sibling_ranks[rank_word(rank)], ~rank_bit(rank));
}

/* The same for it and the rank before. */
verified_once int note_siblings(u32 rank)
{
	note_sibling(rank);
	if (rank)
		note_sibling(rank - 1);
	return 0;
}

static __always_inline bool test_idle(u32 rank)
{
	return test_rank(idle_ranks, rank);
}

/*
 * Sets of ranks. @words, if there is one, has a bit for each word of @ranks that is not 0, so that
 * an empty set is seen at once however many words there are. Who adds the first rank to a word, or
 * removes the last, writes the word before it reads or writes @words, and the other way round
 * after. The atomic operations return what was there, and are full barriers by that: of two that
 * come at once the later one sees what the other has written, and @words has the bit. Between the
 * two operations of who removes the last rank it may lack it, for some ns: a third one that looks
 * then does not see an idle CPU or a queue, and what it looks for one for waits until a slice ends.
 */
static __always_inline void add_to_ranks(u64 *words, u64 *ranks, u32 rank)
{
	u32 word = rank_word(rank);
	u64 was = __sync_fetch_and_or(&ranks[word], rank_bit(rank));

	/* Used always: without a result it would be no barrier on arm64, and a CPU that goes idle
	 * could look for what waits before it is seen to be idle. */
	barrier_var(was);
	/* One word needs no other. The verifier knows, and does not follow what comes of it. */
	if (words && topology.nr_words > 1 && !was)
		__sync_fetch_and_or(words, 1ULL << word);
}

/* Returns whether it was there. */
static __always_inline bool remove_from_ranks(u64 *words, u64 *ranks, u32 rank)
{
	u32 word = rank_word(rank);
	u64 was = __sync_fetch_and_and(&ranks[word], ~rank_bit(rank));

	if (!words || topology.nr_words <= 1)
		return was & rank_bit(rank);
	if (was == rank_bit(rank) && __sync_fetch_and_and(words, ~(1ULL << word)) && ranks[word])
		__sync_fetch_and_or(words, 1ULL << word);
	return was & rank_bit(rank);
}

/* A walk of up to PP_LOOK_RANKS steps: on a machine with as few CPUs over all, in order of rank, on
 * a larger one over those of a set that come next after where it begins. */
struct pp_walk {
	s32 first; /* the rank at which it has begun; -1: it has not */
	u32 next;
};

/* Whether a walk is over a set: to find the next of it costs a call, which the verifier removes
 * where this is false. */
static __always_inline bool walks_set(void)
{
	return topology.nr_ranks > PP_LOOK_RANKS;
}

static __always_inline struct pp_walk walk_from(u32 rank)
{
	return (struct pp_walk){ .first = -1, .next = rank };
}

/* The CPU of step @step, on a large machine at @rank of the set (-1: that is empty); -1: there is
 * no other. */
static __always_inline s32 walk_on(struct pp_walk *walk, s32 rank, u32 step)
{
	if (!walks_set())
		return step < topology.nr_ranks ? cpu_at(step) : -1;
	if (rank < 0 || rank == walk->first)
		return -1;
	if (walk->first < 0)
		walk->first = rank;
	walk->next = rank + 1;
	return cpu_at(rank);
}

/* Whether any CPU is idle. */
static __always_inline bool is_any_idle(void)
{
	return topology.nr_words > 1 ? idle_words : idle_ranks[0];
}

/* Take the idle CPU at @rank; false if another CPU was faster. */
static __always_inline bool claim_rank(u32 rank)
{
	return remove_from_ranks(&idle_words, idle_ranks, rank);
}

static __always_inline void set_idle(u32 rank, bool idle)
{
	if (idle)
		add_to_ranks(&idle_words, idle_ranks, rank);
	else if (test_idle(rank))
		claim_rank(rank);
}

#endif /* PP_IDLE_BPF_H */
