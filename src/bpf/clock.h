/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time: in which order tasks run that compete for the same CPUs. Pure, as policy.h.
 *
 * Tasks in one queue compete with each other and with no others, so every queue has a clock
 * V of its own. It is that of start-time fair queueing: the virtual time of
 * what was last taken from the queue,
 *
 *	V = max(V, vtime of the task that begins to run, or goes on although others wait)
 *
 * Tasks are taken in order of deadline = vtime + request / weight, and a task that has run
 * for dt is at vtime + dt / weight. So V passes at service over the weight of all that
 * compete, without a sum of their weights, and a task that no other competes with moves
 * only itself. But it stands still while tasks come that start at V and are due before those
 * that wait: the clock of an LLC passes by that rate besides, pp_clock_share().
 *
 * lag = V - vtime is what a task is owed. It is bounded on
 * both sides by what the task may use at a time, over its weight:
 *
 *	-(slice + tick) / weight <= lag <= slice / weight
 *
 * A turn that others wait for is no longer than the first, so the bounds take no share
 * from any task that competes; they forgive what was used or not used while none did.
 * Lag is kept as a task moves to another queue, and in that of an LLC as it sleeps. Tasks that are
 * for some CPUs may be owed more, by the tasks of another one of these: see pp_common_lead().
 *
 * A CPU that serves two queues, its own and that of its LLC, compares the first task of
 * each: pp_rival_gap(). All times are u64 that wrap around, and are compared by the sign of
 * their difference.
 */
#ifndef PP_CLOCK_H
#define PP_CLOCK_H

#include "added.h"

#define PP_NS_PER_US 1000ULL
#define PP_NS_PER_MS (1000 * PP_NS_PER_US)

/* The slice of a task that no other waits behind: long enough to cost nothing. */
#define PP_SLICE_ALONE_NS (20 * PP_NS_PER_MS)
/* The same while others wait, at most: slices end at ticks (pp_slice_of_ticks()). */
#define PP_SLICE_SHARED_NS (3 * PP_NS_PER_MS)
/* Tasks that ask for less than this are served as they come: shorter ones first
 * would cut short the batches in which messages pass (hackbench). */
#define PP_REQUEST_MIN_NS (1 * PP_NS_PER_MS)
/* A task that has waited this long goes next, whatever the weights: the lightest of two
 * whose weights are 1 to 100 waits that long by right, at HZ=250 (100 turns of 4 ms), and
 * a waiting task must have run within a second, of which this leaves a tick and two turns. */
#define PP_WAIT_MAX_NS (850 * PP_NS_PER_MS)

/* Time used, as seen by a task of @weight (shares.h): nice 0 in the root sees the clock's. To the
 * nearest ns, or the heaviest would use what is lost in each division for nothing. */
static inline u64 pp_vtime_delta(u64 ran_ns, u32 weight)
{
	return weight == PP_WEIGHT_NICE_0 ? ran_ns
					  : (ran_ns * PP_WEIGHT_NICE_0 + weight / 2) / weight;
}

/* When a task that has used @vtime should be done: EEVDF's virtual deadline,
 * with the expected run as the request. Hogs ask for a slice at a time. */
static inline u64 pp_deadline(u64 vtime, u64 run_ns, u32 weight)
{
	u64 request = run_ns < PP_REQUEST_MIN_NS    ? PP_REQUEST_MIN_NS
		      : run_ns < PP_SLICE_SHARED_NS ? run_ns
						    : PP_SLICE_SHARED_NS;

	return vtime + pp_vtime_delta(request, weight);
}

/* What a task uses in a turn at most: a slice, which ends at a tick. */
static inline u64 pp_vtime_turn(u32 weight, u64 tick_ns)
{
	return pp_vtime_delta(PP_SLICE_SHARED_NS + tick_ns, weight);
}

/* The later of two virtual times. */
static inline u64 pp_vtime_max(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}

/* The earlier one. */
static inline u64 pp_vtime_min(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? a : b;
}

/* The clock of a queue as one of its tasks, at @vtime, begins to run or goes on. */
static inline u64 pp_clock_pass(u64 clock, u64 vtime)
{
	return pp_vtime_max(clock, vtime);
}

/* Over which time the weights of what runs on the CPUs of an LLC are averaged. */
#define PP_RUNNING_NS (32 * PP_NS_PER_MS)
/* That average is in parts of the unit in which the weights that wait are: 64 of them. */
#define PP_RUNNING_SHIFT 6

/* The average after a task of @weight (shares.h) has run for @ran_ns. */
static inline u32 pp_running_weight(u32 average, u32 weight, u64 ran_ns)
{
	u64 now = (u64)pp_queue_weight(weight) << PP_RUNNING_SHIFT;

	if (ran_ns >= PP_RUNNING_NS)
		return now;
	return ((u64)average * (PP_RUNNING_NS - ran_ns) + now * ran_ns) / PP_RUNNING_NS;
}

/*
 * By how much the clock of an LLC's queue passes as a task of @weight runs for @ran_ns while others
 * wait there: by its time over the weight of all that compete, as in generalized processor sharing.
 * By pp_clock_pass() alone it would stand still as long as tasks come that start at it and are due
 * before those that wait. Of the CPUs' tasks the weight of this one is known, that of the others on
 * average: were they taken to be as this one, a clock would pass too fast as light tasks run, and
 * heavy ones lose what they are owed beyond their bound.
 */
static inline u64 pp_clock_share(u64 ran_ns, u32 weight, u32 waiting_weight, u32 running_weight,
				 u32 nr_servers)
{
	u64 others = (u64)running_weight * (nr_servers - 1) >> PP_RUNNING_SHIFT;

	return ran_ns * PP_QUEUE_WEIGHT_NICE_0 /
	       (waiting_weight + pp_queue_weight(weight) + others);
}

/* The earliest that a task may be: it is owed @owed_ns at most. Used as it joins a queue,
 * and at its ticks: one that has run alone is owed nothing by tasks that had other CPUs. */
static inline u64 pp_vtime_owed(u64 vtime, u64 clock, u32 weight, u64 owed_ns)
{
	return pp_vtime_max(vtime, clock - pp_vtime_delta(owed_ns, weight));
}

/* The deadline of what runs and goes by the clock of a shared queue, as of now: since it began that
 * may have passed on by what others have had on other CPUs, whom nothing here is to wait for. */
static inline u64 pp_curr_deadline(u64 deadline, u64 clock, u64 run_ns, u32 weight)
{
	u64 earliest = clock - pp_vtime_delta(PP_SLICE_SHARED_NS, weight);

	return pp_vtime_max(deadline, pp_deadline(earliest, run_ns, weight));
}

/* The virtual time of a task as it joins a queue: within the lag. */
static inline u64 pp_vtime_join(u64 vtime, u64 clock, u32 weight, u64 tick_ns, u64 owed_ns)
{
	u64 max = clock + pp_vtime_turn(weight, tick_ns);

	return (s64)(vtime - max) > 0 ? max : pp_vtime_owed(vtime, clock, weight, owed_ns);
}

/* More than any task is owed: it keeps its virtual time. */
#define PP_LAG_KEPT (1LL << 62)

/* The virtual time of one that wakes, and was owed @lag as it went to sleep: time asleep pays off
 * what it owes, and gives it nothing. If it did, of many tasks that take turns each would come back
 * before those that wait all the time. */
static inline u64 pp_vtime_slept(u64 vtime, u64 clock, s64 lag)
{
	return pp_vtime_max(vtime, clock - (lag > 0 ? lag : 0));
}

/* The same lag by another clock. */
static inline u64 pp_vtime_move(u64 vtime, u64 from_clock, u64 to_clock)
{
	return vtime + (to_clock - from_clock);
}

/*
 * By how much more those of another CPU's queue have had for their weight, of what a task is owed.
 *
 * A task that may run on some CPUs waits in the own queue of one of them at a time. So that such
 * tasks share these CPUs by weight, the clocks of own queues have a common scale, clock + shift,
 * on which a task keeps its place as it goes from one CPU to another. Clocks of CPUs that no task
 * goes between drift apart without end. So a difference of more than some turns of the task
 * says nothing of what it is owed; a smaller one must be kept, or the heaviest lose their share.
 */
#define PP_LEAD_MAX_TURNS 8

static inline s64 pp_common_lead(s64 lead, u32 weight, u64 tick_ns)
{
	s64 max = PP_LEAD_MAX_TURNS * pp_vtime_turn(weight, tick_ns);

	return lead < -max ? -max : lead < max ? lead : max;
}

/* From when one that wakes has its lag: from @front, where the last turn in its queue began, of a
 * task of @front_weight. A lighter one is behind by right, as its slice is longer by the clock: if
 * that were handed on, a task that wakes often would be forgiven what it has had each time that
 * such a one is served. Nor may it be more than this one could ever be owed. */
static inline u64 pp_front_for(u64 clock, u64 front, u32 front_weight, u32 weight, u64 tick_ns)
{
	s64 lead = front - clock;

	if (front_weight && front_weight < weight)
		lead += pp_vtime_delta(PP_SLICE_SHARED_NS, front_weight) -
			pp_vtime_delta(PP_SLICE_SHARED_NS, weight);
	return clock + pp_common_lead(lead < 0 ? lead : 0, weight, tick_ns);
}

/* The virtual time of one that wakes in a CPU's own queue, where the last turn began at @front. It
 * is no further behind than that or a slice behind the clock: if each that comes were a slice
 * before the last, @front would go back and back, and tasks at the clock be kept from the CPU. */
static inline u64 pp_vtime_wake(u64 vtime, u64 clock, u64 front, u32 weight, u64 tick_ns)
{
	u64 owed = clock - pp_vtime_delta(PP_SLICE_SHARED_NS, weight);
	u64 latest = front + pp_vtime_turn(weight, tick_ns);

	return pp_vtime_max(pp_vtime_min(vtime, latest), pp_vtime_min(owed, front));
}

/* How far ahead of what is served a task is that wakes in another CPU's own queue, if it was @ahead
 * of that in the one where it ran. By the clock it might be owed something in each of two queues in
 * turn, whose clocks then stand still for those that wait at them. No more than its last run, of
 * @run_ns, would have made it: the task that was served there may be owed much. */
static inline s64 pp_wake_ahead(s64 ahead, u64 run_ns, u32 weight)
{
	s64 ran = pp_vtime_delta(run_ns, weight);

	return ahead < ran ? ahead : ran;
}

/* A task whose turn was @cut short by one that woke moves for so many turns. */
#define PP_CUT_MOVES_TURNS 4

/* Whether a task whose turn ends goes to a CPU where what runs began by @lead later than it would
 * by the common scale: so much more it has had there, and that is worth filling another cache. One
 * whose turn was @cut short by a waking task moves for more: of several that lose their CPUs at
 * once all find the same other one, and are before the task that waits there as no hog made way for
 * it.
 */
static inline int pp_is_worth_moving(s64 lead, u32 weight, u64 tick_ns, int cut)
{
	u64 worth = cut ? PP_CUT_MOVES_TURNS * pp_vtime_turn(weight, tick_ns)
			: pp_vtime_delta(PP_SLICE_SHARED_NS / 2, weight);

	return lead > (s64)worth;
}

/* Of those that compete for a CPU one that goes by the clock of the CPU's own queue, or
 * by that of its LLC's. */
struct pp_rival {
	u64 deadline;
	u64 clock;
	u64 latest; /* of all deadlines in its queue, or that were there before; 0: there is none */
	u32 weight;
	u32 own;
};

/* Where a rival is, at the earliest: it may be owed by those of its own queue. */
static inline u64 pp_rival_front(const struct pp_rival *rival)
{
	return pp_vtime_max(rival->clock, rival->deadline);
}

/* What a queue is owed for the last that waits there, at most: a slice of nice 19 (205 ms by the
 * clock). That one may have gone, and a cgroup's may be a thousand times as light. */
#define PP_OWED_MAX_NS (205 * PP_NS_PER_MS)

/* A slice of a rival, by the clock. */
static inline u64 pp_rival_slice(const struct pp_rival *rival)
{
	return pp_vtime_delta(PP_SLICE_SHARED_NS, rival->weight);
}

/* What the queue of a rival, whose @slice is known, is owed at most: that, or what the last that
 * waits there needs to be due. If it were a slice of the first one always, a heavy task that wakes
 * often would forgive, each time, what a light one behind it waits for. */
static inline u64 pp_rival_owed(const struct pp_rival *rival, u64 slice)
{
	s64 latest = rival->latest - pp_rival_front(rival);

	if (!rival->latest || latest <= (s64)slice || slice >= PP_OWED_MAX_NS)
		return slice;
	return latest < (s64)PP_OWED_MAX_NS ? (u64)latest : PP_OWED_MAX_NS;
}

/*
 * A CPU's own queue and the shared one have clocks that pass at the same rate as long as
 * both are served by that CPU in order of deadline, so that they are @offset by a constant.
 * It changes when one of them is not served, as it is empty, or the shared one is
 * served by others: the queue that is behind is owed a slice at most, as a task is, or one of
 * what it is compared with: tasks of the other queue may all be behind their clock by that, and
 * heavier ones, who are bounded to less, would always be after them.
 */
static inline u64 pp_clock_offset(const struct pp_rival *own, const struct pp_rival *shared,
				  u64 offset)
{
	s64 own_lag = shared->clock + offset - pp_rival_front(own);
	s64 shared_lag = own->clock - offset - pp_rival_front(shared);
	u64 own_slice = pp_rival_slice(own), shared_slice = pp_rival_slice(shared);
	s64 own_max = pp_vtime_max(pp_rival_owed(own, own_slice),
				   pp_vtime_min(shared_slice, PP_OWED_MAX_NS));
	s64 shared_max = pp_vtime_max(pp_rival_owed(shared, shared_slice),
				      pp_vtime_min(own_slice, PP_OWED_MAX_NS));

	if (own_lag > own_max)
		offset -= own_lag - own_max;
	else if (shared_lag > shared_max)
		offset += shared_lag - shared_max;
	return offset;
}

/* Where a rival began that asks for a slice, by its own clock; others began later. */
static inline u64 pp_rival_start(const struct pp_rival *rival)
{
	return rival->deadline - pp_vtime_delta(PP_SLICE_SHARED_NS, rival->weight);
}

/*
 * To where the clock of a CPU's own queue passes as @shared goes before @own, the first of
 * the tasks that wait there. Moved by its own queue alone it would stand still as long as tasks
 * come that are owed something, and one that has used more than its share would wait for
 * the end of those. Not beyond where @own began: that is owed the time until it is served.
 */
static inline u64 pp_own_passes(const struct pp_rival *own, const struct pp_rival *shared,
				u64 offset)
{
	u64 start = pp_rival_start(shared) + offset, own_start = pp_rival_start(own);

	return (s64)(start - own_start) < 0 ? start : own_start;
}

/* How much later @a is due than @b. @offset is by how much the CPU's own clock is ahead of
 * the shared one. */
static inline s64 pp_rival_gap(const struct pp_rival *a, const struct pp_rival *b, u64 *offset)
{
	if (a->own == b->own)
		return a->deadline - b->deadline;
	*offset = a->own ? pp_clock_offset(a, b, *offset) : pp_clock_offset(b, a, *offset);
	return a->deadline - b->deadline + (a->own ? -*offset : *offset);
}

/* Whether a task that waits since @since_ns goes before all that are due earlier. */
static inline int pp_is_starving(u64 since_ns, u64 now)
{
	return (s64)(now - since_ns) >= (s64)PP_WAIT_MAX_NS;
}

/*
 * How long after one of them the next task that has waited too long goes before its turn.
 *
 * Of many that compete for few CPUs each waits that long by right, as the threads of one cgroup do:
 * at once they would take all time from the others. After several seconds the kernel's watchdog
 * is near, and they go whatever that costs.
 */
#define PP_STARVING_MANY 64
#define PP_STARVING_PAUSE_NS (48 * PP_NS_PER_MS)
#define PP_WAIT_LONG_NS (8000 * PP_NS_PER_MS)

static inline u64 pp_starving_pause(u32 nr_waiting, u32 nr_servers, u64 waited_ns)
{
	if (nr_waiting <= PP_STARVING_MANY * nr_servers || waited_ns >= PP_WAIT_LONG_NS)
		return 0;
	return PP_STARVING_PAUSE_NS / nr_servers;
}

#endif /* PP_CLOCK_H */
