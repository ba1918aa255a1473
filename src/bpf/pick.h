/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which idle CPU: sets of ranks as bits, a few words at a time. Pure, as policy.h.
 */
#ifndef PP_PICK_H
#define PP_PICK_H

#include "policy.h"

/* The max number of SMT siblings of a core (POWER has 8). */
#define PP_THREADS_MAX 8

/* On a machine of more CPUs at most this many are looked at one by one, of which each has cache
 * lines of its own: those that come next by rank. */
#define PP_LOOK_RANKS 16

/* Ranks [0, end) as bits of word @word. */
static inline u64 pp_ranks_below(u32 end, u32 word)
{
	u32 base = word * PP_WORD_BITS;

	if (end <= base)
		return 0;
	return end - base >= PP_WORD_BITS ? ~0ULL : (1ULL << (end - base)) - 1;
}

/* What a placement looks at: sets of ranks, a bit each, in @nr_words words. */
struct pp_view {
	const u64 *idle;     /* idle CPUs */
	const u64 *siblings; /* the next rank is on the same core */
	const u64 *allowed;  /* where the task may run */
	const u64 *among;    /* where it is looked for: active or surplus CPUs */
	const u64 *near;     /* share a last-level cache with the previous CPU */
	const u64 *node;     /* are of the memory node to stay on; NULL: all are */
	u64 idle_words; /* a bit for each word of @idle that is not 0, at least; for one word it is
			   not used */
	u32 nr_words;
	u32 threads;	/* the most SMT siblings that a core has; 1: no SMT */
	u32 whole_only; /* rather none than the sibling of a busy CPU */
};

/* Those of @idle whose whole core is idle. The ranks of a core are neighbours;
 * one that straddles two words counts as two cores. */
static inline u64 pp_whole_cores(u64 idle, u64 siblings, u32 threads)
{
	u64 cores = idle;
	u32 i;

	/* Is it idle, and all that follow it on its core? */
	for (i = 1; i < threads && i < PP_THREADS_MAX; i++)
		cores &= ~siblings | cores >> 1;
	/* For the first CPU of a core that is the answer: copy it to the others. */
	cores &= ~(siblings << 1);
	for (i = 1; i < threads && i < PP_THREADS_MAX; i++)
		cores |= cores << 1 & siblings << 1;
	return cores;
}

/* Whether the busy CPU that is @bit shares its core with another busy one. */
static inline int pp_is_crowded(u64 idle, u64 siblings, u32 threads, u64 bit)
{
	return !(pp_whole_cores(idle | bit, siblings, threads) & bit);
}

/* The next word of a set from @word on that is in use, or @nr_words, if @words has a bit for each
 * that is. One word is always looked at. */
static inline u32 pp_word_in_use(u64 words, u32 nr_words, u32 word)
{
	u64 left;

	if (nr_words <= 1)
		return word;
	left = word < PP_RANK_WORDS ? words >> word : 0;
	return left ? word + __builtin_ctzll(left) : nr_words;
}

/* The first rank of @set from @rank on, all round; -1: it is empty. */
static inline s32 pp_next_rank(const u64 *set, u32 nr_words, u32 rank)
{
	u32 word, i;
	u64 bits;

	/* The verifier knows it, and has no loop to follow. */
	if (nr_words <= 1) {
		bits = rank < PP_WORD_BITS ? set[0] & ~0ULL << rank : 0;
		bits = bits ? bits : set[0];
		return bits ? __builtin_ctzll(bits) : -1;
	}
	word = rank / PP_WORD_BITS % PP_RANK_WORDS;
	bits = set[word] & ~0ULL << rank % PP_WORD_BITS;
	for (i = 0; !bits && i < nr_words && i < PP_RANK_WORDS; i++) {
		word = word + 1 < nr_words ? (word + 1) % PP_RANK_WORDS : 0;
		bits = set[word];
	}
	return bits ? (s32)(word * PP_WORD_BITS + __builtin_ctzll(bits)) : -1;
}

static inline u64 pp_candidates(const struct pp_view *view, u32 word, int whole_cores)
{
	u64 idle = view->idle[word];

	if (whole_cores)
		idle = pp_whole_cores(idle, view->siblings[word], view->threads);
	return idle & view->allowed[word] & view->among[word];
}

static inline s32 pp_lowest(u32 word, u64 bits)
{
	return word * PP_WORD_BITS + __builtin_ctzll(bits);
}

static inline u32 pp_highest(u32 word, u64 bits)
{
	return word * PP_WORD_BITS + 63 - __builtin_clzll(bits);
}

static inline u64 pp_of_node(const struct pp_view *view, u32 word, u64 bits)
{
	return view->node ? bits & view->node[word] : bits;
}

/* The previous CPU, then one near it in cache, then of its memory node, then any, by
 * rank; -1: none. */
static inline s32 pp_nearest(const struct pp_view *view, int whole_cores, u32 prev)
{
	u32 word = prev / PP_WORD_BITS % PP_RANK_WORDS;
	s32 of_node = -1, any = -1;
	u64 bits;

	bits = pp_candidates(view, word, whole_cores);
	if (bits >> prev % PP_WORD_BITS & 1)
		return prev;
	/* The ranks of a cache are neighbours. */
	if (bits & view->near[word])
		return pp_lowest(word, bits & view->near[word]);
	for (word = pp_word_in_use(view->idle_words, view->nr_words, 0);
	     word < view->nr_words && word < PP_RANK_WORDS;
	     word = pp_word_in_use(view->idle_words, view->nr_words, word + 1)) {
		bits = pp_candidates(view, word, whole_cores);
		if (bits & view->near[word])
			return pp_lowest(word, bits & view->near[word]);
		if (of_node < 0 && pp_of_node(view, word, bits))
			of_node = pp_lowest(word, pp_of_node(view, word, bits));
		if (view->node && any < 0 && bits)
			any = pp_lowest(word, bits);
	}
	return of_node >= 0 ? of_node : any;
}

/* Which idle active CPU takes the task; -1: none. */
static inline s32 pp_pick_idle(const struct pp_policy *policy, const struct pp_view *view, u32 prev)
{
	int whole_cores = view->threads > 1 && policy->idle_core_first;
	s32 rank;

	do {
		rank = pp_nearest(view, whole_cores, prev);
	} while (rank < 0 && whole_cores-- && !view->whole_only);
	return rank;
}

/* The lowest rank of the candidates; -1: none. */
static inline s32 pp_lowest_of(const struct pp_view *view, int whole_cores, int of_node)
{
	for (u32 word = pp_word_in_use(view->idle_words, view->nr_words, 0);
	     word < view->nr_words && word < PP_RANK_WORDS;
	     word = pp_word_in_use(view->idle_words, view->nr_words, word + 1)) {
		u64 bits = pp_candidates(view, word, whole_cores);

		if (of_node)
			bits = pp_of_node(view, word, bits);
		if (bits)
			return pp_lowest(word, bits);
	}
	return -1;
}

/* Which idle surplus CPU takes what the active ones cannot: the one nearest to
 * the active set, which is the next that would join it; -1: none. Not the sibling
 * of a busy CPU while there is a whole core: it would slow both down. Of another
 * memory node only if there is none of this one. */
static inline s32 pp_pick_surplus(const struct pp_view *view)
{
	int of_node = !!view->node;
	s32 rank;

	do {
		rank = view->threads > 1 ? pp_lowest_of(view, 1, of_node) : -1;
		if (rank < 0)
			rank = pp_lowest_of(view, 0, of_node);
	} while (rank < 0 && of_node--);
	return rank;
}

#endif /* PP_PICK_H */
