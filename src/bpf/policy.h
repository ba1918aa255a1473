/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks wait, for how long, and in what order. Every decision of the scheduler is a
 * pure function: no kfunc, no map, no clock. They are compiled for BPF and natively,
 * so that the tests run the code the kernel runs. docs/how-it-decides.md has the
 * whole in prose.
 *
 * A wakeup asks, in this order:
 *  1. pp_scope_of() (scope.h): which CPUs is this task for?
 *  2. can_stack() (place.bpf.h), if the wakeup is synchronous: may it have its waker's CPU?
 *  3. pp_pick_idle() (pick.h): if not, is one of those CPUs idle?
 *  4. pp_expected_wait(), pp_longest_wait(), pp_should_wait(): if not, is the queue of
 *     the active CPUs served soon enough, and is there capacity for this task?
 *  5. pp_pick_surplus() (pick.h): if not, which surplus CPU does it spill to?
 * What waits is ordered by pp_deadline(); pp_may_preempt(), pp_should_preempt() (contest.h) and
 * pp_slice_over() end the run of what does not.
 *
 * The other headers of decisions: signal.h (utilization), clock.h (virtual time and deadlines),
 * shares.h (the weight that a cgroup leaves a task), sizing.h (how large the active set is),
 * freq.h (what performance a CPU should have), bandwidth.h (cpu.max).
 */
#ifndef PP_POLICY_H
#define PP_POLICY_H

#include "clock.h"
#include "signal.h"

/* What runs keeps a short task waiting until its next tick at most, which may be late by
 * this. */
#define PP_TICK_LATE_NS (100 * PP_NS_PER_US)
/* A run with less than this left is not worth two context switches. */
#define PP_PREEMPT_LEFT_MIN_NS (1 * PP_NS_PER_MS)
/* Nor is one preempted that has run for less than this, as a rule: many short tasks that wake each
 * other (hackbench) would do nothing but switch. */
#define PP_PREEMPT_RAN_MIN_NS (1 * PP_NS_PER_MS)
/* But one with a slice to go is, this long after a task has lost that CPU to a waking one: else a
 * task that sleeps for 0.1 ms after each ms, as for a disk, waited for two ticks each time behind
 * the hog that had just begun, and had an eighth of its CPU. With 1 ms hackbench took 8 % longer,
 * with this 2 %. */
#define PP_PREEMPT_PAUSE_NS PP_SLICE_SHARED_NS
/* The same for one that waits in the CPU's own queue, and has no other CPU. What comes too early
 * waits for the next tick: twenty short tasks of a CPU beside a hog waited for 1.4 ms on average
 * with 1 ms, 0.1 with this. */
#define PP_PREEMPT_OWN_PAUSE_NS (250 * PP_NS_PER_US)
/* A run that is expected to take this long is a hog's, beside which a switch more costs little. */
#define PP_HOG_RUN_NS PP_SLICE_ALONE_NS
/* Runs from here on are long: short ones need not wait for their end. Among
 * short runs none is preempted, as that would cut short the batches in which
 * messages pass (hackbench: a tenth of its instructions). */
#define PP_LONG_RUN_NS (2 * PP_NS_PER_MS)
/* Real-time tasks that take a CPU for less than this are not worth moving the task
 * that ran there: it would take as long to fill another cache. */
#define PP_RT_LONG_NS (500 * PP_NS_PER_US)
/* Less between two tasks is a switch, or a CPU waking up. */
#define PP_RT_MIN_NS (50 * PP_NS_PER_US)
/* What a new task is assumed to need. */
#define PP_RUN_FIRST_NS (500 * PP_NS_PER_US)
/* After this many runs their length is known: until then, whatever the first
 * ones took (to set up, to wait for the others), the next may be long. */
#define PP_RUNS_KNOWN 4
/* A queue with work for this many latency budgets a CPU is overdue: worth waking a
 * surplus CPU for. One that is awake anyway helps when there is work for one. */
#define PP_OVERDUE_BUDGETS 3
#define PP_OVERDUE_BUDGETS_AWAKE 1
/* This many tasks may pass the queues in a row on a busy CPU. */
#define PP_DIRECT_STREAK_MAX 32

/*
 * Queued work is summed in classes of run length, because the queue is ordered
 * by virtual deadline: what needs longer is served later and does not delay
 * this task. Below 256 us, 1 ms, 4 ms, and the rest.
 */
static inline u32 pp_run_class(u64 run_ns)
{
	return run_ns < 256 * PP_NS_PER_US ? 0
	       : run_ns < PP_NS_PER_MS	   ? 1
	       : run_ns < 4 * PP_NS_PER_MS ? 2
					   : 3;
}

/* What is left of a run expected to last @run_ns that began @ran_ns ago. One
 * that has outrun its estimate is assumed to go on for as long again; the wait
 * for it is bounded by its slice, which is left to the caller. */
static inline u64 pp_run_left(u64 run_ns, u64 ran_ns)
{
	return ran_ns < run_ns ? run_ns - ran_ns : ran_ns;
}

/*
 * How long a task of class @run_class waits in a queue served by @nr_servers
 * CPUs: what runs now plus the queued work that goes first, shared among them.
 */
static inline u64 pp_expected_wait(const s64 *queued_ns, u32 run_class, u64 running_left_ns,
				   u32 nr_servers)
{
	s64 ahead = 0;

	for (u32 class = 0; class < PP_RUN_CLASSES && class <= run_class; class ++)
		ahead += queued_ns[class];
	/* These are estimates, and may be below zero for a moment. */
	return running_left_ns + (ahead > 0 ? (u64)ahead / nr_servers : 0);
}

/* What a task with @left_ns to do adds to the work in its queue: it is not served for longer
 * at a time. Not 0, which says that it waits nowhere. */
static inline u64 pp_queued_work(u64 left_ns)
{
	return left_ns < PP_SLICE_SHARED_NS ? left_ns + 1 : PP_SLICE_SHARED_NS;
}

_Static_assert(PP_SLICE_SHARED_NS < 1ULL << PP_ADDED_QUEUE_SHIFT, "see pp_added_word()");

/* The same of a class, at least. */
static inline u64 pp_class_min(u32 run_class)
{
	static const u64 min_ns[PP_RUN_CLASSES] = {
		0,
		256 * PP_NS_PER_US,
		PP_NS_PER_MS,
		PP_SLICE_SHARED_NS,
	};

	return min_ns[run_class % PP_RUN_CLASSES];
}

/* What a queue of @nr tasks holds. */
struct pp_queued {
	const s64 *queued_ns; /* by class */
	u32 nr;
	u64 waiting_ns; /* how long it has not been empty */
};

/* The work of the one that is served last when a task of @own_ns joins, at least: one of the
 * longest class. */
static inline u64 pp_last_work(const struct pp_queued *queue, u64 own_ns)
{
	u32 own_class = pp_run_class(own_ns), longest = 0;
	u64 last, min;

	for (u32 class = 0; class < PP_RUN_CLASSES; class ++)
		longest = queue->queued_ns[class] > 0 ? class : longest;
	if (own_class > longest)
		return own_ns;
	last = queue->queued_ns[longest] > 0 ? (u64)queue->queued_ns[longest] / queue->nr : 0;
	min = pp_class_min(longest);
	last = last > min ? last : min;
	return own_class == longest && own_ns < last ? own_ns : last;
}

/*
 * The longest that any task in a queue has waited by the time that the queue is empty: in
 * whatever order they are served, all came after it was last empty and are served before it
 * is again. A task of @run_left_ns that joins them is served too; no task waits for the last.
 */
static inline u64 pp_longest_wait(const struct pp_queued *queue, u64 running_left_ns,
				  u64 run_left_ns, u32 nr_servers)
{
	u64 own = pp_queued_work(run_left_ns), last = pp_last_work(queue, own);
	u64 all = own + pp_expected_wait(queue->queued_ns, PP_RUN_CLASSES - 1, 0, 1);

	return queue->waiting_ns + running_left_ns + (all > last ? all - last : 0) / nr_servers;
}

/* Whether real-time tasks, which have had a CPU for @since_ns and take it for
 * @expected_ns as a rule, keep it for long. */
static inline int pp_is_rt_long(u64 expected_ns, u64 since_ns)
{
	return expected_ns >= PP_RT_LONG_NS || since_ns >= PP_RT_LONG_NS;
}

/* What a task that may wait is known to need, and what it would wait for. */
struct pp_wait {
	u64 wait_ns;	     /* until it is served */
	u64 others_ns;	     /* until others are: the most that they have waited by then */
	u64 run_left_ns;     /* what it needs then */
	u64 running_left_ns; /* what the running task still needs */
	s64 room;	     /* what the active set takes until it is full; 1024 a CPU */
	u32 promised;	     /* room was made less as the task woke, by what it will use */
};

/*
 * Whether the task waits for an active CPU rather than spills: it is served soon
 * enough, so are the tasks in the queue, and the capacity that it was remembered to need
 * is there.
 * Two long runs would share the CPU by slices until the utilization shows it: each
 * would end by as much later as the other one takes.
 */
static inline int pp_should_wait(const struct pp_policy *policy, const struct pp_wait *task)
{
	u64 budget_ns = policy->latency_budget_ns;

	if (task->run_left_ns > budget_ns && task->running_left_ns > budget_ns)
		return 0;
	return task->wait_ns <= budget_ns && task->others_ns <= budget_ns &&
	       (!task->promised || task->room >= 0);
}

/* A CPU as a task sees it that may run on some only. */
struct pp_candidate {
	u32 util;     /* of all that runs there, 0..1024 */
	u32 capacity; /* 0..1024 */
	u32 is_prev;  /* the task's own utilization is in it: it ran there last */
};

/*
 * Whether a task of @util is to share a busy CPU with what runs there, of those that it may
 * run on: the first by rank, as the active set is of all, and no fuller than that. Small-task
 * packing of 2013 took the first one that was not full by its number of tasks.
 */
static inline int pp_has_room(const struct pp_policy *policy, const struct pp_candidate *cpu,
			      u32 util)
{
	u32 sum = cpu->is_prev && cpu->util > util ? cpu->util : cpu->util + util;

	return sum * 100 <= cpu->capacity * policy->fill_pct;
}

/*
 * Whether a queue needs help from surplus CPUs although each task in it was
 * expected to be served in time as it came: it has work for more than @budgets
 * latency budgets. The last one of a burst waits for
 * all but itself, so the sum may well be above the budget for a moment; and so
 * may some task always wait, but not for long: a queue that has not been empty for
 * @waiting_ns is one that its CPUs do not get through.
 */
static inline int pp_is_overdue(const struct pp_policy *policy, const s64 *queued_ns,
				u32 nr_servers, u64 waiting_ns, u32 budgets)
{
	u64 limit = budgets * policy->latency_budget_ns;

	return waiting_ns > limit ||
	       pp_expected_wait(queued_ns, PP_RUN_CLASSES - 1, 0, nr_servers) > limit;
}

/*
 * Whether a CPU takes the first task of another LLC's queue before those of its own, in which tasks
 * of @weight wait for @capacity of CPUs: if more than that is left there for each unit of capacity
 * without a task of the average weight. One that has no CPU is fuller than any.
 */
static inline int pp_is_fuller(u32 other_weight, u32 other_nr, u32 other_capacity, u32 weight,
			       u32 capacity)
{
	u64 left = other_nr ? other_weight - other_weight / other_nr : 0;

	return !other_capacity || left * capacity > (u64)weight * other_capacity;
}

/* Whether one task is to go before another that has @left_ns to run: it is due
 * earlier (@gap, as of pp_rival_gap(), is below zero), it is shorter, and that is worth
 * the switches, the sooner the more often (@times) the other one is lighter. */
static inline int pp_goes_first(s64 gap, u64 run_ns, u64 left_ns, u32 times)
{
	return gap < 0 && left_ns * times >= PP_PREEMPT_LEFT_MIN_NS && run_ns < left_ns;
}

/* Whether a run is long: was expected to be when it began, or has become so. */
static inline int pp_is_long(u64 expected_ns, u64 ran_ns)
{
	return expected_ns >= PP_LONG_RUN_NS || ran_ns >= PP_LONG_RUN_NS;
}

/*
 * Whether a task that woke @period_ns after its last wakeup (0: it has not woken before), and ran
 * for @run_ns until it slept, needs more than a small core gives it, which its utilization does not
 * show: that cannot exceed the core's capacity.
 *
 * A wait is no evidence of that: one that shares a CPU sleeps less, but wakes no more often. Nor is
 * a slow clock: at @freq (0..1024, 0 = unknown) a run is longer than at full speed. What fills its
 * period with seven eighths of what is needed, and is late, skips the next one: hence seven
 * sixteenths. At whatever clock nothing is in time that hardly sleeps.
 */
static inline int pp_is_behind(u64 run_ns, u64 period_ns, u32 freq)
{
	u64 full_speed_ns = freq ? run_ns * freq / PP_CAPACITY_MAX : run_ns;

	return period_ns && run_ns >= PP_LONG_RUN_NS &&
	       (full_speed_ns * 16 >= period_ns * 7 || run_ns * 8 >= period_ns * 7);
}

/*
 * The utilization that a task is assumed to have which is behind on a core of @capacity: all of
 * that, with which it does not fit the kind. On the largest kind, of @largest, it is what it is
 * (0): there it may run for long because the clock is low.
 */
static inline u32 pp_util_behind(u32 capacity, u32 largest)
{
	return capacity < largest ? capacity : 0;
}

/*
 * What is remembered of the utilization of a task that is behind on a core of @capacity, and hardly
 * fits it: that it does not. Without that it would be back for its next run but one, be late
 * again, skip a period for that, and by what it skipped seem to fit.
 */
static inline u32 pp_est_behind(u32 est, u32 capacity)
{
	return est < capacity && est >= capacity * 3 / 4 ? capacity : est;
}

/* Whether a task that needs less than a millisecond is in a queue. */
static inline int pp_short_waits(const s64 *queued_ns)
{
	return queued_ns[0] > 0 || queued_ns[1] > 0;
}

/* After how long the running task has had its share for now: whole ticks, the last of which
 * may be early by a quarter, and no more than a slice. */
static inline u64 pp_slice_of_ticks(u64 tick_ns)
{
	u64 ticks = tick_ns < PP_SLICE_SHARED_NS ? PP_SLICE_SHARED_NS / tick_ns : 1;
	u64 slice = ticks * tick_ns - tick_ns / 4;

	return slice < PP_SLICE_SHARED_NS ? slice : PP_SLICE_SHARED_NS;
}

/* Whether the running task has had its share for now, which is @slice_ns, if others
 * wait; checked at its ticks. A slice is long, to save switches; but a short task is not kept
 * waiting by a long one for a second tick. */
static inline int pp_slice_over(u64 expected_ns, u64 ran_ns, u64 slice_ns, int short_waits)
{
	return ran_ns >= slice_ns || (short_waits && pp_is_long(expected_ns, ran_ns));
}

#endif /* PP_POLICY_H */
