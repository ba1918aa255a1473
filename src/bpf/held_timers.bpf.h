/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of held tasks, and their timers: when what is held in one is looked at.
 */
#ifndef PP_HELD_TIMERS_BPF_H
#define PP_HELD_TIMERS_BPF_H

#include "state.bpf.h"

/* Several limits may share a DSQ and its timer: then more tasks are looked at, and nothing else. */
#define PP_HELD_QUEUES 64
_Static_assert(PP_HELD_QUEUES < 1 << (PP_ADDED_WEIGHT_SHIFT - PP_ADDED_TIMER_SHIFT),
	       "a timer, from 1 on");
#define PP_HELD_QUEUE_BASE (2 * PP_MAX_QUEUES)

/* Until the timer looks again for a task that was about to be held as it looked. */
#define PP_LOOK_AGAIN_NS (1 * PP_NS_PER_MS)

/* A timer that has not fired for so long beyond its time will not: it was not started. */
#define PP_TIMER_LATE_NS (10 * PP_NS_PER_MS)

struct held_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_HELD_QUEUES);
	__type(key, u32);
	__type(value, struct held_timer);
} held_timers SEC(".maps");

struct held_queue {
	u64 due_ns; /* when its timer fires; 0: it does not */
	s32 nr;	    /* tasks held in it, or about to be */
	u32 looks;  /* how often the timer has fired */
};

/*
 * PREEMPT_RT kernels let no program use a timer (kernel/bpf/verifier.c, process_timer_func()).
 * There a thread of the agent is the timer of all queues: it sleeps until the first is due, and
 * calls release_due(). The ring wakes it for one that is due earlier.
 */
const volatile bool agent_is_timer;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PP_HELD_RING_BYTES);
} held_ring SEC(".maps");

static struct held_queue held_queues[PP_HELD_QUEUES];

/* Those whose timer could not be started, as bits. */
static u64 timers_to_start;

static __always_inline struct held_queue *held_queue_of(u32 id)
{
	return &held_queues[id % PP_HELD_QUEUES];
}

static __always_inline u64 held_dsq(u32 id)
{
	return PP_HELD_QUEUE_BASE + id % PP_HELD_QUEUES;
}

/* Whether a timer that is to fire at @due_ns (0: it is not) will have by @by_ns. */
static __always_inline bool fires_by(u64 due_ns, u64 by_ns, u64 now)
{
	return due_ns && (s64)(by_ns - due_ns) >= 0 && (s64)(now - due_ns) < (s64)PP_TIMER_LATE_NS;
}

/* Look at what is held for limit @id in @ns, or before. */
verified_once int look_at_held_in(u32 id, u64 ns)
{
	struct held_queue *queue = held_queue_of(id);
	u64 now = scx_bpf_now(), due = now + ns;
	struct held_timer *timer;

	if (fires_by(queue->due_ns, due, now))
		return 0;
	if (agent_is_timer) {
		queue->due_ns = due;
		/* If it is full the agent is about to look. */
		bpf_ringbuf_output(&held_ring, &due, sizeof(due), BPF_RB_FORCE_WAKEUP);
		return 0;
	}
	id %= PP_HELD_QUEUES;
	timer = bpf_map_lookup_elem(&held_timers, &id);
	if (!timer)
		return 0;
	queue->due_ns = due;
	/* Where interrupts are off Linux 7 needs memory for that, and may have none. */
	if (bpf_timer_start(&timer->timer, ns, 0))
		__sync_fetch_and_or(&timers_to_start, 1ULL << id);
	return 0;
}

/* A tick, or a CPU that goes idle: try again to start the timers that could not be. */
static __always_inline void start_timers_again(void)
{
	u64 left;
	u32 id;

	if (!timers_to_start)
		return;
	left = __sync_lock_test_and_set(&timers_to_start, 0);
	bpf_for (id, 0, PP_HELD_QUEUES) {
		if (!(left & 1ULL << id))
			continue;
		held_queue_of(id)->due_ns = 0;
		look_at_held_in(id, 0);
	}
}

#endif /* PP_HELD_TIMERS_BPF_H */
