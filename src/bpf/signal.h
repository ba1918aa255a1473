/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The utilization average, as PELT's (kernel/sched/pelt.c): geometric, half of
 * it forgotten every 32 periods of 1024 us. PELT sums whole periods; here the
 * closed form is used instead, because the length of a run is known when it
 * ends: after running for dt at capacity c,
 *
 *	u' = c - (c - u) * y^dt,	y^32ms = 1/2
 *
 * and after not running for dt, u' = u * y^dt. No kfunc, no map: compiled for
 * BPF and natively.
 */
#ifndef PP_SIGNAL_H
#define PP_SIGNAL_H

#include "intf.h"

enum {
	/* 1024.0 is 2^30: runs of a microsecond still count, and times a 32-bit
	 * factor it stays inside 64 bits. */
	PP_UTIL_SHIFT = 20,
	/* 2^20 ns = 1.048 ms, PELT's period of 1024 us. */
	PP_PERIOD_SHIFT = 20,
	PP_HALF_LIFE_PERIODS = 32,
	/* What is promised, of all CPUs together: in 64 bits with a factor of 32. */
	PP_PROMISE_SHIFT = 8,
	/* After 30 half-lives nothing of 2^30 is left. */
	PP_FORGOTTEN_PERIODS = 30 * PP_HALF_LIFE_PERIODS,
};

/* y^n * 2^32 for n = 0..32; the kernel's runnable_avg_yN_inv[] and its end. */
static const u32 pp_decay_inv[PP_HALF_LIFE_PERIODS + 1] = {
	0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb,
	0xdbfbb796, 0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9,
	0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9,
	0xa2704302, 0x9ef5325f, 0x9b8d39b9, 0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a,
	0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698, 0x80000000,
};

/* y^(step + part) * 2^32, linear between steps of a period (the error is below 6e-5). */
static inline u64 pp_decay_between(u32 step, u64 part_ns)
{
	u64 from = pp_decay_inv[step], to = pp_decay_inv[step + 1];

	return from - (((from - to) * part_ns) >> PP_PERIOD_SHIFT);
}

/* y^dt * 2^32. */
static inline u64 pp_decay_factor(u64 dt_ns)
{
	u64 periods = dt_ns >> PP_PERIOD_SHIFT;
	u64 part = dt_ns & ((1ULL << PP_PERIOD_SHIFT) - 1);

	/* Most runs and sleeps: a third of the instructions, as the compiler has both values. */
	if (!periods)
		return pp_decay_between(0, part);
	if (periods >= PP_FORGOTTEN_PERIODS)
		return 0;
	return pp_decay_between(periods % PP_HALF_LIFE_PERIODS, part) >>
	       (periods / PP_HALF_LIFE_PERIODS);
}

/* Utilization after dt_ns without running. */
static inline u32 pp_util_decay(u32 util_fp, u64 dt_ns)
{
	return dt_ns ? (util_fp * pp_decay_factor(dt_ns)) >> 32 : util_fp;
}

/* Utilization after running at @capacity (0..1024) for so long that @factor, pp_decay_factor(), is
 * left of what was before. */
static inline u32 pp_util_toward(u32 util_fp, u64 factor, u32 capacity)
{
	s64 full = capacity << PP_UTIL_SHIFT, gap = util_fp - full;

	return full + ((gap * (s64)factor) >> 32);
}

/* Utilization after running for dt_ns at @capacity. */
static inline u32 pp_util_run(u32 util_fp, u64 dt_ns, u32 capacity)
{
	return dt_ns ? pp_util_toward(util_fp, pp_decay_factor(dt_ns), capacity) : util_fp;
}

/* From fixed point to 0..1024, rounded. */
static inline u32 pp_util(u32 util_fp)
{
	return (util_fp + (1U << (PP_UTIL_SHIFT - 1))) >> PP_UTIL_SHIFT;
}

/* The capacity that a CPU of @capacity has at @freq (0..1024, 0 = unknown). */
static inline u32 pp_capacity_now(u32 capacity, u32 freq)
{
	return freq ? capacity * freq / PP_CAPACITY_MAX : capacity;
}

/* What is done in @ran_ns at @capacity: the time that all of the fastest CPU would take (ns). */
static inline u64 pp_work(u64 ran_ns, u32 capacity)
{
	return ran_ns * capacity / PP_CAPACITY_MAX;
}

/*
 * util_est (kernel/sched/fair.c): what a task used when it last went to sleep,
 * remembered. It follows a rise at once and a fall by a quarter each time, so
 * that one short run does not make a big task small.
 */
static inline u32 pp_util_est(u32 est, u32 util)
{
	return util >= est ? util : est - ((est - util) >> 2);
}

/*
 * Utilization forgets a task that sleeps, and takes as long to learn that it is back: until
 * then the demand is less than what is about to be used by
 *
 *	missing = util_est - util
 *
 * If the task goes on as it did, util' = util_est - (util_est - util) * y^dt: what is missing
 * decays as the average itself does. So it is promised as the task wakes and when it sleeps,
 * and decays in between, whatever it is summed with. Less than a sixteenth of a CPU is the
 * average's own up and down within a period.
 */
#define PP_PROMISE_MIN (PP_CAPACITY_MAX / 16)
/* A task that has slept for a half-life was away. */
#define PP_AWAY_NS ((u64)PP_HALF_LIFE_PERIODS << PP_PERIOD_SHIFT)
/* After two the average is for the most part of what came since: then it is believed if it
 * is lower than what is remembered. */
#define PP_SETTLED_NS (2 * PP_AWAY_NS)
/* After a sleep shorter than a period nothing is forgotten. */
#define PP_FORGETS_NS (1ULL << PP_PERIOD_SHIFT)

static inline u32 pp_missing(u32 util_est, u32 util)
{
	u32 missing = util_est > util ? util_est - util : 0;

	return missing >= PP_PROMISE_MIN ? missing : 0;
}

/* What is left after @dt_ns of @promised, which may be a sum of many: of more than the largest
 * machine has, at most, or the product would not fit 64 bits. */
static inline s64 pp_promise_left(s64 promised, u64 dt_ns)
{
	const s64 max = (s64)PP_MAX_CPUS * PP_CAPACITY_MAX << PP_PROMISE_SHIFT;

	promised = promised > max ? max : promised < -max ? -max : promised;
	return dt_ns ? (promised * (s64)pp_decay_factor(dt_ns)) >> 32 : promised;
}

/* The expected length of a run, from wakeup to sleep; same rule, both ways. */
static inline u64 pp_run_est(u64 est_ns, u64 run_ns)
{
	return run_ns >= est_ns ? est_ns + ((run_ns - est_ns) >> 1)
				: est_ns - ((est_ns - run_ns) >> 2);
}

/* Of the buckets of struct pp_latency the one for @ns: the first whose bound, 2^n us, is
 * not exceeded. */
static inline u32 pp_latency_bucket(u64 ns)
{
	u64 us = (ns + 999) / 1000;
	u32 n = us > 1 ? 64 - __builtin_clzll(us - 1) : 0;

	return n < PP_LATENCY_BUCKETS ? n : PP_LATENCY_BUCKETS - 1;
}

#endif /* PP_SIGNAL_H */
