/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that have waited too long go before those that are due earlier.
 */
#ifndef PP_STARVING_BPF_H
#define PP_STARVING_BPF_H

#include "queues.bpf.h"

/* Up to this many tasks of a queue are looked at: 0.1 us each, about once a second. Where
 * more wait, those that are due first and those that are due last are looked at in turn: a light
 * task is due so late that it is among the last for as long as it waits. */
#define PP_STARVING_LOOK_MAX 1024
/* Not a constant to the verifier, which follows each turn of a loop that ends at one: that
 * was nine tenths of the time to load. */
u32 starving_look_max = PP_STARVING_LOOK_MAX;

/* From which end of queue @id to look. */
static __always_inline u64 look_from(u32 id)
{
	return queue_of(id)->nr > starving_look_max && scale_of(id)->looks % 2 ? SCX_DSQ_ITER_REV
									       : 0;
}

/* Move the first task of queue @id that has waited too long to @cpu. */
verified_once bool take_starving(u32 id, s32 cpu)
{
	u64 now = scx_bpf_now();
	struct task_struct *p;
	u32 looked = 0;

	bpf_for_each (scx_dsq, p, id, look_from(id)) {
		struct pp_task *task = task_of(p);

		if (task && pp_is_starving(task->waits_since_ns, now) &&
		    !is_bound_elsewhere(p, cpu))
			return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		if (++looked >= starving_look_max)
			break;
	}
	return false;
}

/* Whether a task has waited too long in queue @id; when to look next otherwise. Those that
 * are due earlier are before it in the queue, so all are looked at; but not before the one
 * that had waited longest then could have waited too long. */
verified_once bool has_starving(u32 id, u64 now)
{
	struct pp_queue *queue = queue_of(id);
	struct task_struct *p;
	u64 oldest = now;
	u32 looked = 0;

	if (queue->nr <= 0 || (s64)(now - queue->look_ns) < 0)
		return false;
	scale_of(id)->looks++;
	bpf_for_each (scx_dsq, p, id, look_from(id)) {
		struct pp_task *task = task_of(p);
		u64 begin = task ? task->waits_since_ns : 0;

		if (begin && (s64)(oldest - begin) > 0)
			oldest = begin;
		if (++looked >= starving_look_max)
			break;
	}
	queue->look_ns = oldest + PP_WAIT_MAX_NS;
	if (!pp_is_starving(oldest, now))
		return false;
	queue->look_ns = now + pp_starving_pause(queue->nr, is_cpu_queue(id) ? 1 : nr_servers(id),
						 since(now, oldest));
	return true;
}

/* Whether @cpu should serve a task that has waited too long, in its own queue, that of its
 * LLC, or one of another LLC, whose CPUs may all have left the active set. */
static __always_inline bool find_starving(s32 cpu, u64 now)
{
	struct pp_cpu *state = cpu_state(cpu);
	u32 shared = llc_queue(cpu), other = (shared + state->dispatches) % topology.nr_llcs;

	if (has_starving(cpu_queue(cpu), now))
		state->starving = cpu_queue(cpu) + 1;
	else if (is_active(cpu) && has_starving(shared, now))
		state->starving = shared + 1;
	else if (is_active(cpu) && topology.nr_llcs > 1 && has_starving(other, now))
		state->starving = other + 1;
	return state->starving;
}

#endif /* PP_STARVING_BPF_H */
