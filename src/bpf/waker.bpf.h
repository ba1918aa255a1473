/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Synchronous wakeups: what wakes another task says that it makes way for that, and may be known
 * to run on instead. See pp_stacks() and pp_runs_on().
 */
#ifndef PP_WAKER_BPF_H
#define PP_WAKER_BPF_H

#include "place.bpf.h"

/* @task begins to run on @cpu. */
static __always_inline void begin_waker(const struct pp_task *task, s32 cpu)
{
	struct pp_waker *waker = waker_on(cpu);

	waker->made_way_ns = 0;
	waker->runs_on_ns = task->runs_on_ns;
}

/* What @here runs wakes a task of @scope and says that it makes way for it: whether that takes its
 * CPU. A function of its own: the verifier would follow all of ops.select_cpu for each of its
 * branches. */
verified_once bool waker_makes_way(u32 scope, s32 here, u64 now)
{
	bool runs = cpu_state(here)->running_since_ns;
	struct pp_waker *waker = waker_on(here);

	/* Else it is an interrupt, on an idle CPU. */
	if (runs && !waker->made_way_ns)
		waker->made_way_ns = now;
	return pp_stacks(policy_now(), scope, topology.group_run_ns != 0,
			 runs ? waker->runs_on_ns : 0);
}

/* It stops. */
static __always_inline void end_waker(struct pp_task *task, s32 cpu, u64 now)
{
	u64 made_way_ns = waker_on(cpu)->made_way_ns;

	if (made_way_ns)
		task->runs_on_ns = pp_runs_on(task->runs_on_ns, since(now, made_way_ns));
}

/* Whether a task that @here wakes and makes way for can take its place. Not that of a long run or
 * of a real-time task, which make way for none: what is received in their interrupt is said to make
 * way too, and a task in the local DSQ takes the CPU from nobody. */
static __always_inline bool can_stack(const struct pp_task *task, u32 scope, s32 here, u64 now)
{
	return !task->restricted && cpu_state(here)->online && is_active_in(scope, here) &&
	       may_go_direct(here) && !runs_long(here, now) && !cpu_state(here)->rt_since_ns;
}

#endif /* PP_WAKER_BPF_H */
