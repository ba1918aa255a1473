/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted, on each CPU: one line an event. All else is made from this table: the
 * enum and count() in BPF, and, by src/scheduler/event_table.rs, the fields of --stats and
 * `status --json`, the line of `status` and the OpenMetrics. The manual has the same names
 * and texts: a test compares it.
 *
 *	X(EVENT, FAMILY, LABEL, VALUE, help)
 *
 * count(PP_EV_EVENT) counts it; in lower case it is the field. The metric is FAMILY_total, with
 * the label LABEL="VALUE" if these are not _.
 */
#ifndef PP_EVENTS_H
#define PP_EVENTS_H

/* clang-format off */
#define PP_EVENTS(X) \
	X(WAKE_IDLE, placements, reason, idle, "Wakeups put on an idle active CPU") \
	X(WAKE_SYNC, placements, reason, sync, "Synchronous wakeups put on the waker's CPU") \
	X(QUEUED, placements, reason, queued, "Times a task waited in the queue of the active CPUs") \
	X(BOUND, placements, reason, bound, "Times a task was placed by its affinity") \
	X(SPILL, placements, reason, spill, "Times a task ran on a surplus CPU because the active ones were full") \
	X(PREEMPT, preemptions, _, _, "Running tasks preempted by a shorter one that was due earlier") \
	X(STEAL, steals, _, _, "Tasks taken from the queue of another LLC") \
	X(EVACUATE, evacuations, _, _, "Running tasks sent back from a surplus CPU") \
	X(GROW, active_set_changes, direction, grow, "Times the active set grew") \
	X(SHRINK, active_set_changes, direction, shrink, "Times the active set shrank") \
	X(PERF_TARGET, performance_targets, _, _, "Performance targets set for a CPU; only schedutil obeys them") \
	X(THROTTLE, throttles, _, _, "Times a task was held because its cgroup had used up its cpu.max") \
	X(MIGRATE, migrations, _, _, "Times a task ran on another CPU than before")
/* clang-format on */

#endif /* PP_EVENTS_H */
