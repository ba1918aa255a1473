/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is reported on request: how long woken tasks waited, and why a task was put where it is.
 * While nothing is requested it costs a load and a branch.
 */
#ifndef PP_OBSERVE_BPF_H
#define PP_OBSERVE_BPF_H

#include "queues.bpf.h"

/* Set by the agent. */
u32 watch_latency; /* wake-up latencies are wanted */
u32 watched_pid;   /* the placements of this thread or process are; 0: of none */

struct pp_latency latencies[PP_MAX_CPUS];
u64 why_lost; /* placements for which the ring had no room */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PP_WHY_RING_BYTES);
} why_ring SEC(".maps");

/* The task becomes runnable: from here its wake-up latency counts. */
static __always_inline void note_wakeup(struct pp_task *task)
{
	if (watch_latency && !task->woken_ns)
		task->woken_ns = scx_bpf_now();
}

/* Not inline, or the verifier would follow both kinds of wakeups through all that comes after. */
verified_once int note_waker(struct pp_task *task __arg_nonnull, u64 wake_flags)
{
	task->async_woken = !(wake_flags & SCX_WAKE_SYNC);
	return 0;
}

verified_once int add_latency(struct pp_task *task __arg_nonnull, s32 cpu, u64 now)
{
	struct pp_latency *latency = &latencies[(u32)cpu % PP_MAX_CPUS];
	s64 waited = now - task->woken_ns;

	task->woken_ns = 0;
	/* Clocks of two CPUs may differ by some ns. */
	waited = waited > 0 ? waited : 0;
	latency->sum_ns += waited;
	latency->counts[pp_latency_bucket(waited) % PP_LATENCY_BUCKETS]++;
	return 0;
}

verified_once int report_why(struct task_struct *p __arg_trusted,
			     struct pp_task *task __arg_nonnull, enum pp_why why, s32 cpu)
{
	struct pp_why_record record = {
		.now_ns = scx_bpf_now(),
		.expected_ns = task->expected_wait_ns,
		.budget_ns = policy_now()->latency_budget_ns,
		.pid = p->pid,
		.why = why,
		.cpu = cpu,
		.prev_cpu = task->last_cpu,
		.util = pp_util(task->util_fp),
		.active = is_active(cpu),
	};

	if (bpf_ringbuf_output(&why_ring, &record, sizeof(record), 0))
		__sync_fetch_and_add(&why_lost, 1);
	return 0;
}

/* The task has been put on @cpu, or runs there, for this reason. */
static __always_inline void note_why(struct task_struct *p, struct pp_task *task, enum pp_why why,
				     s32 cpu)
{
	if (watched_pid && (p->pid == watched_pid || p->tgid == watched_pid))
		report_why(p, task, why, cpu);
}

/* The task begins to run. */
static __always_inline void observe_running(struct task_struct *p, struct pp_task *task, s32 cpu,
					    u64 now)
{
	if (task->woken_ns)
		add_latency(task, cpu, now);
	note_why(p, task, PP_WHY_RUNS, cpu);
	if (task->last_cpu != cpu) {
		count(PP_EV_MIGRATE);
		task->last_cpu = cpu;
	}
}

#endif /* PP_OBSERVE_BPF_H */
