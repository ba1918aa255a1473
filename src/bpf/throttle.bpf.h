/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of a cgroup whose cpu.max is used up: they are held in a DSQ that no CPU serves, until a
 * timer finds that a new period has begun. It runs only while some task is held.
 */
#ifndef PP_THROTTLE_BPF_H
#define PP_THROTTLE_BPF_H

#include "bandwidth.bpf.h"
#include "held_timers.bpf.h"
#include "place.bpf.h"

/* How soon a limit that has been raised lets held tasks run, where the kernel does not report it.
 */
#define PP_POLL_NS (100 * PP_NS_PER_MS)

/* Up to this many held tasks are looked at each time that the timer fires. Not a constant to the
 * verifier, as starving_look_max. */
u32 held_look_max = 65536;

/* When to look at held tasks again: as the period ends, or before if cpu.max may change unheard. */
verified_once u64 next_look(u32 id, u64 now)
{
	const struct pp_limit *limit = limit_of(id);
	u64 over = since(now, limit->period_began_ns);
	u64 left = over < limit->period_ns ? limit->period_ns - over : 0;

	return reports_cpu_max() || left < PP_POLL_NS ? left : PP_POLL_NS;
}

/* The task is held for limit @id: one that waits in no queue that a CPU serves. */
static __always_inline void begin_hold(struct pp_task *task, u32 id, u64 now)
{
	struct pp_limit *limit = limit_of(id);

	task->held = pp_hold(++task->nr_holds, id);
	/* Held again, as its affinity has changed, it has not run: the watchdog counts on. */
	if (!task->held_since_ns)
		task->held_since_ns = now;
	task->waits_since_ns = 0;
	if (limit->throttled_period_ns != limit->period_began_ns) {
		limit->throttled_period_ns = limit->period_began_ns;
		limit->nr_throttled++;
	}
	__sync_fetch_and_add(&held_queue_of(id)->nr, 1);
	if (__sync_fetch_and_add(&limit->nr_held, 1) == 0)
		limit->throttled_since_ns = now;
}

/* @hold of the task ends. By whoever is first: the timer, or the task's next enqueue. */
verified_once int uncount_held(struct pp_task *task __arg_nonnull, u32 hold)
{
	u32 id = pp_hold_limit(hold);

	if (!hold || __sync_val_compare_and_swap(&task->held, hold, 0) != hold)
		return 0;
	__sync_fetch_and_add(&held_queue_of(id)->nr, -1);
	if (__sync_fetch_and_add(&limit_of(id)->nr_held, -1) == 1)
		limit_of(id)->throttled_ns +=
			since(scx_bpf_now(), limit_of(id)->throttled_since_ns);
	return 0;
}

static __always_inline void end_hold(struct pp_task *task)
{
	if (task->held)
		uncount_held(task, task->held);
}

/* The agent, where it is the timer. */
u32 timer_tgid;

/* Whether @p is not held, now or ever: one on its way out may keep others waiting, and its
 * container is to end at once; one with migration disabled has a lock of the kernel, where that is
 * PREEMPT_RT, and is held at its next tick; for the timer all that are held wait. */
static __always_inline bool is_exempt(const struct task_struct *p)
{
	return p->flags & PF_EXITING || p->signal->flags & SIGNAL_GROUP_EXIT ||
	       pp_is_migration_off(p->migration_disabled, p == bpf_get_current_task_btf(),
				   prologue_levels) ||
	       (agent_is_timer && p->tgid == timer_tgid);
}

/* Hold @p if a limit of it is used up. */
verified_once bool hold(struct task_struct *p __arg_trusted, struct pp_task *task __arg_nonnull,
			u64 enq_flags)
{
	u32 id = is_exempt(p) ? 0 : used_up_limit(task->limit);
	u64 now = scx_bpf_now();

	if (!id)
		return false;
	count(PP_EV_THROTTLE);
	note_why(p, task, PP_WHY_THROTTLED, scx_bpf_task_cpu(p));
	begin_hold(task, id, now);
	look_at_held_in(id, next_look(id, now));
	scx_bpf_dsq_insert(p, held_dsq(id), PP_SLICE_ALONE_NS, enq_flags);
	return true;
}

/* The task begins to run: it makes its reservation, or leaves the CPU at once. One that runs
 * for the kernel's watchdog alone leaves it too. */
verified_once int begin_limited(struct task_struct *p __arg_trusted,
				struct pp_task *task __arg_nonnull)
{
	s32 cpu = scx_bpf_task_cpu(p);

	task->held_since_ns = 0;
	follow_limit(p, task);
	/* Where the CPU goes offline there is nowhere to leave to. */
	if (!cpu_state(cpu)->online || is_exempt(p))
		return 0;
	if (task->reserved_ns <= 0 || task->runs_for_watchdog) {
		scx_bpf_task_set_slice(p, 0);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* The task stops. If others of its cgroups are held, what it gives back is for them. */
verified_once int end_limited(struct task_struct *p __arg_trusted,
			      struct pp_task *task __arg_nonnull)
{
	u32 id = task->charged, level;

	charge_limit(p, task);
	give_back(id, task->reserved_ns);
	task->charged = 0;
	task->reserved_ns = 0;
	task->runs_for_watchdog = false;
	bpf_for (level, 0, CGROUP_DEPTH_MAX) {
		if (!id)
			break;
		if (limit_of(id)->nr_held > 0 && limit_of(id)->budget_ns > 0)
			look_at_held_in(id, 0);
		id = limit_of(id)->parent;
	}
	return 0;
}

/* The queue in which a released task waits: that of the LLC, or of one CPU. */
verified_once u32 queue_of_released(struct task_struct *p __arg_trusted,
				    struct pp_task *task __arg_nonnull)
{
	s32 here = scx_bpf_task_cpu(p);
	u32 scope;

	/* Where CPUs have come or gone since, what is known of its affinity may be wrong. Who looks
	 * it up must hold the lock of the task's run queue, or two write at once. */
	if (is_bound(p) || task->cpus_generation != cpus_generation)
		return cpu_queue(here);
	scope = scope_of(task);
	if (!task->restricted && scope != PP_SCOPE_EFFICIENT)
		return llc_queue(queueing_cpu(scope, here));
	return cpu_queue(own_queue_for(task, here, end_for(task, scope), true));
}

/* Wake the CPU that serves a released task: the one in whose own queue it is, or an idle one. */
verified_once int kick_for_released(u32 queue, const struct pp_task *task __arg_nonnull, s32 here)
{
	u32 scope = waiting_scope(scope_of(task));
	s32 cpu = is_cpu_queue(queue) ? queue - PP_CPU_QUEUE_BASE
				      : claim_idle(scope, false, task, queueing_cpu(scope, here));

	if (cpu >= 0)
		/* What runs there without ticks would never end by itself. */
		scx_bpf_kick_cpu(cpu, cpu_state(cpu)->tickless ? SCX_KICK_PREEMPT : 0);
	return 0;
}

/* Count a task whose @hold is to end as waiting in queue @id; returns what was added, 0: the kernel
 * has taken it out of its DSQ, and its enqueue is first. */
verified_once u64 count_released(struct pp_task *task __arg_nonnull, u32 hold, u32 id,
				 bool efficient)
{
	u64 added = added_by(task, id, efficient, pp_hold_limit(hold) % PP_HELD_QUEUES + 1);

	/* Before anybody can take it back. */
	add_waiting(added);
	if (!__sync_val_compare_and_swap(&task->added, 0, added))
		return added;
	remove_waiting(added);
	return 0;
}

/* Take it back, unless its enqueue has. */
verified_once int uncount_released(struct pp_task *task __arg_nonnull, u64 added)
{
	if (__sync_val_compare_and_swap(&task->added, added, 0) == added)
		remove_waiting(added);
	return 0;
}

/* Put a held task where it waits for a CPU. Its @hold ends when it is there: the move fails if its
 * enqueue has come meanwhile, which may have held it again. */
static __always_inline void release_task(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					 struct pp_task *task, u32 hold)
{
	bool efficient = task->workload == PP_WORKLOAD_EFFICIENT && !is_bound(p);
	u32 queue = queue_of_released(p, task);
	u64 added = count_released(task, hold, queue, efficient);

	if (!added)
		return;
	if (task->held == hold) {
		join_queue(task, queue);
		begin_wait(task);
		scx_bpf_dsq_move_set_vtime(it, task_deadline(task));
		if (scx_bpf_dsq_move_vtime(it, p, queue, 0)) {
			uncount_held(task, hold);
			kick_for_released(queue, task, scx_bpf_task_cpu(p));
			return;
		}
	}
	uncount_released(task, added);
}

/* @cpu goes offline: let the kernel move the held tasks that are on it, which may then be bound to
 * nothing else. On their new CPU they are held again. */
static __always_inline void move_held_off(s32 cpu)
{
	struct task_struct *p;
	u32 id;

	bpf_for (id, 0, PP_HELD_QUEUES) {
		if (held_queue_of(id)->nr <= 0)
			continue;
		bpf_for_each (scx_dsq, p, held_dsq(id), 0) {
			struct pp_task *task = task_of(p);
			u32 hold = task ? task->held : 0;

			if (!task || scx_bpf_task_cpu(p) != cpu)
				continue;
			if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
				uncount_held(task, hold);
		}
	}
}

/* Whether @p, which is held, may run, by what its limit has. One that has been held for long runs
 * for the watchdog alone. */
verified_once bool may_release(struct task_struct *p __arg_trusted,
			       struct pp_task *task __arg_nonnull, u32 id, u32 looks, u64 now)
{
	struct pp_limit *limit = limit_of(id);

	if (limit->looks != looks) {
		limit->looks = looks;
		if (!reports_cpu_max())
			poll_limits_of(p);
		limit->releases = is_used_up(id, now) ? 0
				  : limit->quota_ns   ? pp_releases(limit->budget_ns)
						      : ~0U;
	}
	task->runs_for_watchdog = !limit->releases;
	if (!limit->releases)
		return is_exempt(p) || since(now, task->held_since_ns) >= PP_HELD_MAX_NS;
	limit->releases--;
	return true;
}

/* A period has ended, the limit has changed, or some of the budget has been given back. Those
 * that have been held the longest go first. */
static __always_inline int release_queue(u32 id)
{
	u32 looked = 0, looks = ++held_queue_of(id)->looks;
	u64 now = scx_bpf_now(), next = PP_LOOK_AGAIN_NS;
	struct task_struct *p;
	bool seen = false;

	held_queue_of(id)->due_ns = 0;
	/* For the verifier of Linux 6.12, to which this is a part of the sleepable ops.init. */
	bpf_rcu_read_lock();
	bpf_for_each (scx_dsq, p, held_dsq(id), 0) {
		struct pp_task *task = task_of(p);
		u32 hold;
		u64 left;

		if (++looked >= held_look_max)
			break;
		hold = task ? task->held : 0;
		if (!hold)
			continue;
		if (may_release(p, task, pp_hold_limit(hold), looks, now)) {
			release_task(BPF_FOR_EACH_ITER, p, task, hold);
			continue;
		}
		left = next_look(pp_hold_limit(hold), now);
		next = seen && next < left ? next : left;
		seen = true;
	}
	bpf_rcu_read_unlock();
	if (held_queue_of(id)->nr > 0)
		look_at_held_in(id, next);
	return 0;
}

static int release_held(void *map, u32 *key, struct bpf_timer *timer)
{
	return release_queue(*key);
}

static s32 begin_held_queue(u32 id)
{
	struct held_timer *timer = bpf_map_lookup_elem(&held_timers, &id);
	s32 err = scx_bpf_create_dsq(held_dsq(id), NUMA_NO_NODE);

	if (err || !timer) {
		scx_bpf_error("cannot create a queue of throttled tasks: error %d", err);
		return err ?: -ENOENT;
	}
	if (agent_is_timer)
		return 0;
	bpf_timer_init(&timer->timer, &held_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timer->timer, release_held);
	return 0;
}

#endif /* PP_THROTTLE_BPF_H */
