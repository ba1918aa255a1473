/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler as it is, compiled natively. Its variables stand in sections of
 * their own, so that a simulation can begin with all of them as they were loaded.
 */
#pragma clang section bss = "pp_bss" data = "pp_data" rodata = "pp_rodata"
#include "account.bpf.h"
#include "sabotage.h"
#include "main.bpf.c"

/* sim/src/ffi.rs asserts the same. */
_Static_assert(sizeof(struct task_struct) == 72, "task_struct is shared with Rust");
_Static_assert(sizeof(struct sched_ext_ops) == 22 * 8 + 24, "sched_ext_ops is shared with Rust");

struct sim_ranked_cpu {
	u32 cpu, llc, node, capacity, kind;
	bool online, next_is_sibling, efficient;
};

/* A constant of the scheduler's that is set before it is loaded: the compiler
 * must not know, as it may leave out such writes. */
#define writable(constant)                                                                         \
	({                                                                                         \
		typeof_unqual(*(constant)) *address = (void *)(constant);                          \
		barrier_var(address);                                                              \
		address;                                                                           \
	})

static void set_kinds(const struct sim_ranked_cpu *ranked, u32 nr)
{
	u32 kinds = 1;

	for (u32 rank = 0; rank < nr; rank++) {
		const struct sim_ranked_cpu *cpu = &ranked[rank];

		if (cpu->kind + 1 > kinds)
			kinds = cpu->kind + 1;
		if (!capacity_of_kind[cpu->kind] || capacity_of_kind[cpu->kind] > cpu->capacity)
			*writable(&capacity_of_kind[cpu->kind]) = cpu->capacity;
		if (cpu->efficient)
			*writable(&efficient_end) = rank + 1;
		for (u32 kind = 0; kind <= cpu->kind; kind++)
			*writable(&ranks_from_kind[kind][rank / PP_WORD_BITS]) |=
				1ULL << (rank % PP_WORD_BITS);
	}
	*writable(&nr_kinds) = kinds;
}

static void set_nodes(const struct sim_ranked_cpu *ranked, u32 nr)
{
	for (u32 rank = 0; rank < nr; rank++) {
		u32 node = ranked[rank].node;

		if (!rank || node != ranked[rank - 1].node)
			*writable(&node_begin[node]) = rank;
		*writable(&node_end[node]) = rank + 1;
		*writable(&node_ranks[node][rank / PP_WORD_BITS]) |= 1ULL << (rank % PP_WORD_BITS);
		*writable(&nr_nodes) = node + 1;
	}
}

/* What the agent writes before loading; CPUs in rank order. */
void sim_setup(const struct sim_ranked_cpu *ranked, u32 nr, const struct pp_policy *policy,
	       u32 tick)
{
	u32 llcs = 0, threads = 1, most = 1;

	*writable(&nr_ranks) = nr;
	*writable(&nr_free) = nr;
	*writable(&tick_ns) = tick;
	*writable(&nr_words) = (nr + PP_WORD_BITS - 1) / PP_WORD_BITS;
	for (u32 rank = 0; rank < nr; rank++) {
		const struct sim_ranked_cpu *cpu = &ranked[rank];
		u64 bit = 1ULL << (rank % PP_WORD_BITS);
		u32 word = rank / PP_WORD_BITS;

		if (!rank || cpu->llc != ranked[rank - 1].llc ||
		    cpu->node != ranked[rank - 1].node) {
			llcs++;
			*writable(&llc_begin[llcs - 1]) = rank;
			*writable(&node_of_llc[llcs - 1]) = cpu->node;
		}
		*writable(&llc_end[llcs - 1]) = rank + 1;
		*writable(&llc_ranks[llcs - 1][word]) |= bit;
		*writable(&llc_of_cpu[cpu->cpu]) = llcs - 1;
		*writable(&cpu_of_rank[rank]) = cpu->cpu;
		*writable(&rank_of_cpu[cpu->cpu]) = rank;
		threads = cpu->next_is_sibling ? threads + 1 : 1;
		most = threads > most ? threads : most;
		if (cpu->next_is_sibling)
			*writable(&siblings[word]) |= bit;
		cpus[cpu->cpu].rank = rank;
		cpus[cpu->cpu].capacity = cpu->capacity;
		cpus[cpu->cpu].online = cpu->online;
		cpus[cpu->cpu].seen = cpu->online;
	}
	set_kinds(ranked, nr);
	set_nodes(ranked, nr);
	*writable(&threads_per_core) = most;
	*writable(&nr_llcs) = llcs;
	*writable(&has_cpufreq) = true;
	policies[0] = *policy;
}

/* What the agent does to switch. */
void sim_apply(const struct pp_policy *policy)
{
	struct pp_apply_args args = { .slot = policy_slot ^ 1 };

	policies[args.slot] = *policy;
	apply_policy(&args);
}

/* What it does for a cgroup of the user's table. */
void sim_classify(struct cgroup *cgrp, u32 workload)
{
	struct pp_classify_args args = { .cgroup_id = (u64)cgrp, .workload = workload };

	classify(&args);
	cgroup_generation++;
}

void sim_sabotage(u32 how)
{
	sabotage = how;
}

u64 sim_longest_jump(void)
{
	return longest_jump;
}

u32 sim_nr_active(void)
{
	return active_set.nr;
}

bool sim_is_active(s32 cpu)
{
	return is_active(cpu);
}
