/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that go offline and come back.
 */
#ifndef PP_HOTPLUG_BPF_H
#define PP_HOTPLUG_BPF_H

#include "active.bpf.h"
#include "throttle.bpf.h"

static void note_hotplug(s32 cpu, bool online)
{
	struct pp_cpu *state = cpu_state(cpu);

	state->online = online;
	state->running_since_ns = 0;
	state->rt_since_ns = 0;
	state->rt_preempts = 0;
	if (online)
		add_to_ranks(NULL, online_ranks, rank_of(cpu));
	else
		remove_from_ranks(NULL, online_ranks, rank_of(cpu));
	note_siblings(rank_of(cpu));
	__sync_fetch_and_add(&cpus_generation, 1);
	if (!online)
		set_idle(rank_of(cpu), false);
	/* After what it counts: the set above is a barrier. */
	__sync_fetch_and_add(&nr_hotplugs, 1);
	note_state(rank_of(cpu));
	request_sizing();
}

/* @cpu goes offline, and ops.dispatch is not called on it any more: run there, or be moved by the
 * kernel, what waits in its own queue; and what waits in an LLC's, where it was put while it might
 * run on all CPUs that were online, if that is not so any more. Maybe none that is left may run it,
 * and it is on the run queue of this one, of which the kernel waits until it is empty. */
static __always_inline void move_waiting_off(s32 cpu)
{
	struct task_struct *p;
	u32 llc;

	bpf_for_each (scx_dsq, p, cpu_queue(cpu), 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	bpf_for (llc, 0, topology.nr_llcs) {
		if (queue_of(llc)->nr <= 0)
			continue;
		bpf_for_each (scx_dsq, p, llc, 0) {
			struct pp_task *task = task_of(p);

			if (task && scx_bpf_task_cpu(p) == cpu && is_confined(task))
				scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		}
	}
}

#endif /* PP_HOTPLUG_BPF_H */
