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
_Static_assert(sizeof(struct task_struct) == 96, "task_struct is shared with Rust");
_Static_assert(sizeof(struct sched_ext_ops) == 25 * 8 + 24, "sched_ext_ops is shared with Rust");

/* A constant of the scheduler's that is set before it is loaded: the compiler
 * must not know, as it may leave out such writes. */
#define writable(constant)                                                                         \
	({                                                                                         \
		typeof_unqual(*(constant)) *address = (void *)(constant);                          \
		barrier_var(address);                                                              \
		address;                                                                           \
	})

/* sim/src/ext/native.rs has both as bytes, TopologyBytes and PolicyBytes, of this size. */
_Static_assert(sizeof(struct pp_topology) == 154560, "TopologyBytes is shared with Rust");
_Static_assert(sizeof(struct pp_policy) == 56, "PolicyBytes is shared with Rust");

/* What the agent writes before loading. */
void sim_setup(const struct pp_topology *machine, const struct pp_policy *policy)
{
	*writable(&topology) = *machine;
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

/* A timer is due. */
void sim_timer_fires(u32 key)
{
	sim_timers[key].callback(NULL, &key, &sim_timers[key]);
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
