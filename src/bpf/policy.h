/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every decision of the scheduler, as pure functions: no kfunc, no map, no
 * clock. They are compiled for BPF and natively, so that the tests run the
 * code the kernel runs. docs/how-it-decides.md tells the whole in prose.
 *
 * A wakeup asks, in this order:
 *  1. pp_pick_idle(): is a CPU of the active set idle?
 *  2. pp_expected_wait(), pp_should_wait(): if not, is the queue of the active
 *     CPUs served soon enough, and is there capacity for this task?
 *  3. pp_pick_surplus(): if not, which surplus CPU does it spill to?
 * What waits is ordered by pp_deadline(); pp_should_preempt() and
 * pp_slice_over() end the run of what does not. pp_size_rank() and
 * pp_next_active() size the active set.
 */
#ifndef PP_POLICY_H
#define PP_POLICY_H

#include "signal.h"

#define PP_NS_PER_US 1000ULL
#define PP_NS_PER_MS (1000 * PP_NS_PER_US)

/* The slice of a task nobody waits behind: long enough to cost nothing. */
#define PP_SLICE_ALONE_NS (20 * PP_NS_PER_MS)
/* The same while others wait. Slices end at ticks, 4 ms apart at HZ=250: a
 * little less than that, so that a run that began at one tick ends at the next. */
#define PP_SLICE_SHARED_NS (3 * PP_NS_PER_MS)
/* How long what runs keeps a short task waiting at most: until its next tick. */
#define PP_KEPT_MAX_NS (4100 * PP_NS_PER_US)
/* A task that has slept may be this much behind the others, as a reward. */
#define PP_LAG_MAX_NS PP_SLICE_SHARED_NS
/* A run with less than this left is not worth two context switches. */
#define PP_PREEMPT_LEFT_MIN_NS (1 * PP_NS_PER_MS)
/* Nor is one preempted that has only begun: many short tasks that wake each
 * other (hackbench) would do nothing but switch. The price is at most 1,000
 * such switches a second. */
#define PP_PREEMPT_RAN_MIN_NS (1 * PP_NS_PER_MS)
/* Runs from here on are long: short ones need not wait for their end. Among
 * short runs nobody is preempted, as that would cut short the batches in which
 * messages pass (hackbench: a tenth of its instructions). */
#define PP_LONG_RUN_NS (2 * PP_NS_PER_MS)
/* What a new task is taken to need. */
#define PP_RUN_FIRST_NS (500 * PP_NS_PER_US)
/* After this many runs their length is known: until then, whatever the first
 * ones took (to set up, to wait for the others), the next may be long. */
#define PP_RUNS_KNOWN 4
/* A queue with work for this many latency budgets a CPU is overdue: worth to wake a
 * surplus CPU for. One that is awake anyway helps when there is work for one. */
#define PP_OVERDUE_BUDGETS 3
#define PP_OVERDUE_BUDGETS_AWAKE 1
/* Tasks that ask for less than this are served as they come: shorter ones first
 * would cut short the batches in which messages pass (hackbench). */
#define PP_REQUEST_MIN_NS (1 * PP_NS_PER_MS)
/* Virtual time never stands still: it passes at least this much slower than
 * the clock, whoever runs, so that the lightest task is reached within seconds
 * however heavy the others are. */
#define PP_VTIME_FLOOR_DIV 16
/* The active set is sized anew at most this often: a tick at HZ=250. */
#define PP_ACTIVE_PERIOD_NS (4 * PP_NS_PER_MS)
/* One spill in a period is an accident, two are evidence that the set is small. */
#define PP_SPILLS_TO_GROW 2
/* The most SMT siblings of a core that are kept apart (POWER has 8). */
#define PP_THREADS_MAX 8
/* This many tasks may pass the queues in a row on a busy CPU. */
#define PP_DIRECT_STREAK_MAX 32

/* Ranks [0, end) as bits of word @word. */
static inline u64 pp_ranks_below(u32 end, u32 word)
{
	u32 base = word * PP_WORD_BITS;

	if (end <= base)
		return 0;
	return end - base >= PP_WORD_BITS ? ~0ULL : (1ULL << (end - base)) - 1;
}

/* What a placement looks at: sets of ranks, a bit each, in @nr_words words. */
struct pp_view {
	const u64 *idle;     /* idle CPUs */
	const u64 *siblings; /* the next rank is on the same core */
	const u64 *allowed;  /* where the task may run */
	const u64 *among;    /* where it is looked for: active or surplus CPUs */
	const u64 *near;     /* share a last-level cache with the previous CPU */
	u32 nr_words;
	u32 threads; /* the most SMT siblings that a core has; 1: no SMT */
};

/* Those of @idle whose whole core is idle. The ranks of a core are neighbours;
 * one that straddles two words counts as two cores. */
static inline u64 pp_whole_cores(u64 idle, u64 siblings, u32 threads)
{
	u64 cores = idle;
	u32 i;

	/* Is it idle, and all that follow it on its core? */
	for (i = 1; i < threads && i < PP_THREADS_MAX; i++)
		cores &= ~siblings | cores >> 1;
	/* Of the first on a core that tells the whole: let it tell the others. */
	cores &= ~(siblings << 1);
	for (i = 1; i < threads && i < PP_THREADS_MAX; i++)
		cores |= cores << 1 & siblings << 1;
	return cores;
}

static inline u64 pp_candidates(const struct pp_view *view, u32 word, int whole_cores)
{
	u64 idle = view->idle[word];

	if (whole_cores)
		idle = pp_whole_cores(idle, view->siblings[word], view->threads);
	return idle & view->allowed[word] & view->among[word];
}

static inline s32 pp_lowest(u32 word, u64 bits)
{
	return word * PP_WORD_BITS + __builtin_ctzll(bits);
}

/* The previous CPU, then one near it in cache, then any, by rank; -1: none. */
static inline s32 pp_nearest(const struct pp_view *view, int whole_cores, u32 prev)
{
	u32 word = prev / PP_WORD_BITS % PP_RANK_WORDS;
	s32 any = -1;

	if (pp_candidates(view, word, whole_cores) >> prev % PP_WORD_BITS & 1)
		return prev;
	for (word = 0; word < view->nr_words && word < PP_RANK_WORDS; word++) {
		u64 bits = pp_candidates(view, word, whole_cores);

		if (bits & view->near[word])
			return pp_lowest(word, bits & view->near[word]);
		if (bits && any < 0)
			any = pp_lowest(word, bits);
	}
	return any;
}

/* Which idle active CPU takes the task; -1: none. */
static inline s32 pp_pick_idle(const struct pp_policy *policy, const struct pp_view *view, u32 prev)
{
	int whole_cores = view->threads > 1 && policy->idle_core_first;
	s32 rank;

	do {
		rank = pp_nearest(view, whole_cores, prev);
	} while (rank < 0 && whole_cores--);
	return rank;
}

/* The lowest rank of the candidates; -1: none. */
static inline s32 pp_lowest_of(const struct pp_view *view, int whole_cores)
{
	for (u32 word = 0; word < view->nr_words && word < PP_RANK_WORDS; word++) {
		u64 bits = pp_candidates(view, word, whole_cores);

		if (bits)
			return pp_lowest(word, bits);
	}
	return -1;
}

/* Which idle surplus CPU takes what the active ones cannot: the one nearest to
 * the active set, which is the next that would join it; -1: none. Not the sibling
 * of a busy CPU while there is a whole core: it would slow both down. */
static inline s32 pp_pick_surplus(const struct pp_view *view)
{
	s32 rank = view->threads > 1 ? pp_lowest_of(view, 1) : -1;

	return rank < 0 ? pp_lowest_of(view, 0) : rank;
}

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
 * that has outrun its estimate is taken to go on for as long again; the wait
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

/* What a task that may wait is known to need, and what it would wait for. */
struct pp_wait {
	u64 wait_ns;	     /* until it is served */
	u64 run_left_ns;     /* what it needs then */
	u64 running_left_ns; /* what who runs now still needs */
	u64 room;	     /* what the active set takes until it is full; 1024 a CPU */
	u32 util_est, util;  /* what it was remembered to use, and what has not decayed */
};

/*
 * Whether the task waits for an active CPU rather than spills: it is served soon
 * enough, and the capacity that it was remembered to need is there. A task's
 * decayed utilization is in the demand already, so only the rest is asked for.
 * Two long runs would share the CPU by slices until the utilization tells: each
 * would end by as much later as the other one takes.
 */
static inline int pp_should_wait(const struct pp_policy *policy, const struct pp_wait *task)
{
	u64 budget_ns = policy->latency_budget_ns;
	u32 extra = task->util_est > task->util ? task->util_est - task->util : 0;

	if (task->run_left_ns > budget_ns && task->running_left_ns > budget_ns)
		return 0;
	return task->wait_ns <= budget_ns && extra <= task->room;
}

/*
 * Whether a queue needs help from surplus CPUs although each task in it was
 * expected to be served in time as it came: it has work for more than @budgets
 * latency budgets. The last one of a burst waits for
 * all but itself, so the sum may well be above the budget for a moment; and so
 * may somebody always wait, but not for long: a queue that has not been empty for
 * @waiting_ns is one that its CPUs do not get through.
 */
static inline int pp_is_overdue(const struct pp_policy *policy, const s64 *queued_ns,
				u32 nr_servers, u64 waiting_ns, u32 budgets)
{
	u64 limit = budgets * policy->latency_budget_ns;

	return waiting_ns > limit ||
	       pp_expected_wait(queued_ns, PP_RUN_CLASSES - 1, 0, nr_servers) > limit;
}

/* The weight of a task in a cgroup of @cgroup_weight (100 = default); 1..10000. */
static inline u32 pp_effective_weight(u32 weight, u32 cgroup_weight)
{
	u64 product = (u64)weight * cgroup_weight / PP_WEIGHT_DEFAULT;

	return product < 1 ? 1 : product > 10000 ? 10000 : product;
}

/* Time run, as seen by a task of @weight: nice 0 sees the clock's. */
static inline u64 pp_vtime_delta(u64 ran_ns, u32 weight)
{
	return weight == PP_WEIGHT_DEFAULT ? ran_ns : ran_ns * PP_WEIGHT_DEFAULT / weight;
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

/* A task's virtual time as it joins a queue at @now: a sleeper comes back no
 * more than the lag behind, so that it cannot starve the others. */
static inline u64 pp_vtime_join(u64 vtime, u64 now)
{
	u64 least = now - PP_LAG_MAX_NS;

	return (s64)(vtime - least) < 0 ? least : vtime;
}

/* The least a queue's virtual time may be, @elapsed_ns after it was @then. */
static inline u64 pp_vtime_floor(u64 then, u64 elapsed_ns)
{
	return then + elapsed_ns / PP_VTIME_FLOOR_DIV;
}

/* Whether one task is to go before another that has @left_ns to run: it is due
 * earlier, it is shorter, and that is worth the switches. */
static inline int pp_goes_first(u64 deadline, u64 run_ns, u64 other_deadline, u64 left_ns)
{
	return (s64)(deadline - other_deadline) < 0 && left_ns >= PP_PREEMPT_LEFT_MIN_NS &&
	       run_ns < left_ns;
}

/* Whether a run is long: was expected to be when it began, or has become so. */
static inline int pp_is_long(u64 expected_ns, u64 ran_ns)
{
	return expected_ns >= PP_LONG_RUN_NS || ran_ns >= PP_LONG_RUN_NS;
}

/* Whether a waking task takes the CPU from one that was expected to run for
 * @expected_ns when it began @ran_ns ago, and has @left_ns to go. */
static inline int pp_should_preempt(u64 deadline, u64 run_ns, u64 curr_deadline, u64 left_ns,
				    u64 expected_ns, u64 ran_ns)
{
	return ran_ns >= PP_PREEMPT_RAN_MIN_NS && pp_is_long(expected_ns, ran_ns) &&
	       pp_goes_first(deadline, run_ns, curr_deadline, left_ns);
}

/* Whether a task that needs less than a millisecond is in a queue. */
static inline int pp_short_waits(const s64 *queued_ns)
{
	return queued_ns[0] > 0 || queued_ns[1] > 0;
}

/* Whether the running task has had its share for now, if others wait; asked at
 * its ticks. A slice is long, to save switches; but a short task is not kept
 * waiting by a long one for a second tick. */
static inline int pp_slice_over(u64 expected_ns, u64 ran_ns, int short_waits)
{
	return ran_ns >= PP_SLICE_SHARED_NS || (short_waits && pp_is_long(expected_ns, ran_ns));
}

/* How large the active set has to be: begin zeroed but for the demand, then
 * tell every rank in order to pp_size_rank(). */
struct pp_sizing {
	u64 demand;  /* summed utilization of what is free to move */
	u64 carried; /* what the needed prefix carries at the fill level */
	u32 needed;  /* the smallest prefix that carries the demand */
	u32 ceiling; /* the largest one that the policy allows */
	u32 usable;  /* online CPUs seen so far */
	u32 pad;
};

/* A rank as it is told to pp_size_rank(). */
struct pp_rank {
	u32 rank;
	u32 capacity; /* effective: what bound tasks take is off already; 0: offline */
	u32 sibling;  /* the rank before is on the same core, and online */
};

/*
 * Needed is the smallest prefix of the ranks that carries the demand at the
 * fill level. A CPU that is offline neither carries nor counts. A further thread
 * of a core counts, but carries nothing: two threads of a core do little more
 * than one (1.25 to 1.3 times), and each of them less than alone. The mistake of
 * 2013 was to fill cores by their number of threads; it cost a third.
 */
static inline void pp_size_rank(const struct pp_policy *policy, struct pp_sizing *size,
				const struct pp_rank *of)
{
	if (!of->capacity || size->usable >= policy->max_ranks)
		return;
	size->usable++;
	size->ceiling = of->rank + 1;
	if (size->usable > policy->min_ranks && size->carried >= size->demand)
		return;
	if (!of->sibling)
		size->carried += (u64)of->capacity * policy->fill_pct / 100;
	size->needed = of->rank + 1;
}

/* What the needed prefix takes beyond the demand. */
static inline u64 pp_size_room(const struct pp_sizing *size)
{
	return size->carried > size->demand ? size->carried - size->demand : 0;
}

/* The needed size, with the spills since it was last sized as evidence: one more
 * CPU for each two. Utilization tells of a load that has just begun only after tens
 * of milliseconds, and then it is too late for who waits. */
static inline u32 pp_needed_with_spills(const struct pp_sizing *size, u32 nr_active, u32 spills)
{
	u32 evident = nr_active + spills / PP_SPILLS_TO_GROW;

	if (spills < PP_SPILLS_TO_GROW || evident < size->needed)
		return size->needed;
	return evident < size->ceiling ? evident : size->ceiling;
}

/* The size of the active set from now on: more at once, less only when less
 * has done for the hold time, so that a bursty load does not flap. */
static inline u32 pp_next_active(u32 nr_active, u32 needed, u32 ceiling, u64 now_ns, u64 hold_ns,
				 u64 *shrink_since_ns)
{
	if (needed >= nr_active || nr_active > ceiling) {
		*shrink_since_ns = 0;
		return needed;
	}
	if (!*shrink_since_ns)
		*shrink_since_ns = now_ns;
	if (now_ns - *shrink_since_ns < hold_ns)
		return nr_active;
	*shrink_since_ns = 0;
	return needed;
}

#endif /* PP_POLICY_H */
