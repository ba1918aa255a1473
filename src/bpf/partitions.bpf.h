/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Partitions of cpusets (cpuset.cpus.partition), which may be made at any time: their CPUs are not
 * for tasks of other cpusets. The kernel removes them from the affinity of those, which may still
 * run wherever free tasks may: they do not count as restricted.
 */
#ifndef PP_PARTITIONS_BPF_H
#define PP_PARTITIONS_BPF_H

#include "cpu_words.bpf.h"

/* How often they are looked for, while anything runs. */
#define PP_PARTITIONS_EVERY_NS (1000 * PP_NS_PER_MS)

/* Of the ranks below topology.nr_free those that are in no partition. */
static u64 free_ranks[PP_RANK_WORDS];
static u64 partitions_read_ns;
/* By CPU number; of whoever sizes the active set. */
static u64 root_cpus[PP_RANK_WORDS];
/* What that was when all ranks were last looked at for it, and how often CPUs had come or gone. */
static u64 root_followed[PP_RANK_WORDS];
static u32 hotplugs_followed;

static __always_inline bool is_free_rank(u32 rank)
{
	return test_rank(free_ranks, rank);
}

/* Until partitions are looked for there are none. */
static __always_inline void begin_free_rank(u32 rank)
{
	if (rank < topology.nr_free)
		free_ranks[rank_word(rank)] |= rank_bit(rank);
}

/* Whether the CPU at @rank is in no partition. Of an offline CPU the root cpuset does not say. */
static __always_inline bool is_in_root(u32 rank)
{
	u32 cpu = cpu_at(rank);

	return !cpu_state(cpu)->online ||
	       root_cpus[cpu / PP_WORD_BITS % PP_RANK_WORDS] >> cpu % PP_WORD_BITS & 1;
}

/* Whether the root cpuset has other CPUs than when it was last looked at, or they may be others: so
 * far there is nothing to do for each rank. */
static __always_inline bool has_root_changed(void)
{
	u32 hotplugs = nr_hotplugs, word;
	bool changed = hotplugs != hotplugs_followed;

	hotplugs_followed = hotplugs;
	for (word = 0; word < nr_cpu_words && word < PP_RANK_WORDS; word++) {
		changed |= root_cpus[word] != root_followed[word];
		root_followed[word] = root_cpus[word];
	}
	return changed;
}

/* Look for partitions that have come or gone, if it is time to; whether any has. */
verified_once bool follow_partitions(u64 now)
{
	bool changed = false, any = false;
	u32 rank;

	if (since(now, partitions_read_ns) < PP_PARTITIONS_EVERY_NS)
		return false;
	partitions_read_ns = now;
	if (!read_root_cpus(root_cpus, PP_RANK_WORDS) || !has_root_changed())
		return false;
	bpf_for (rank, 0, topology.nr_free)
		any |= cpu_state(cpu_at(rank))->online && is_in_root(rank);
	if (!any) {
		/* It is about to be another one. */
		hotplugs_followed--;
		return false;
	}
	bpf_for (rank, 0, topology.nr_free) {
		if (is_in_root(rank) == is_free_rank(rank))
			continue;
		free_ranks[rank_word(rank)] ^= rank_bit(rank);
		changed = true;
	}
	if (changed)
		__sync_fetch_and_add(&cpus_generation, 1);
	return changed;
}

#endif /* PP_PARTITIONS_BPF_H */
