/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler made bad on purpose, to show that the property tests notice: each
 * takes the place of a decision or of a kfunc, while it is asked for.
 */
#ifndef SIM_SABOTAGE_H
#define SIM_SABOTAGE_H

/* The same numbers in sim/src/ext/native.rs. */
enum sim_sabotage {
	SABOTAGE_NONE,
	SABOTAGE_COUNT_TASKS,
	SABOTAGE_NO_SPILL,
	SABOTAGE_LOST_KICK,
	SABOTAGE_FAIL_TIMERS
};
static u32 sabotage;

/* The mistake of 2013: a running task is a task, and four of them fit a CPU,
 * whatever they need. */
#define cpu_util_now(cpu, now)                                                                     \
	(sabotage != SABOTAGE_COUNT_TASKS ? cpu_util_now(cpu, now)                                 \
	 : (cpu)->running_since_ns	  ? (PP_CAPACITY_MAX / 4) << PP_UTIL_SHIFT                 \
					  : 0)

/* Whoever finds no idle active CPU waits for one, however long. */
#define pp_should_wait(args...) (sabotage == SABOTAGE_NO_SPILL || pp_should_wait(args))
#define pp_is_overdue(args...) (sabotage != SABOTAGE_NO_SPILL && pp_is_overdue(args))

/* A CPU is not notified that there is work for it. */
static inline void kick_or_lose(s32 cpu, u64 flags)
{
	if (sabotage != SABOTAGE_LOST_KICK)
		scx_bpf_kick_cpu(cpu, flags);
}
#define scx_bpf_kick_cpu kick_or_lose

/* The kernel has no memory to start a timer with, two times of three. */
static inline long start_or_fail(u32 timer, u64 ns)
{
	static u32 starts;

	if (sabotage == SABOTAGE_FAIL_TIMERS && ++starts % 3)
		return -ENOMEM;
	sim_timer_start(timer, ns);
	return 0;
}
#define bpf_timer_start(timer, ns, flags) start_or_fail((timer) - sim_timers, ns)

/* The furthest that a clock has gone at a time. */
static u64 longest_jump;
#define pp_clock_pass(clock, vtime)                                                                \
	({                                                                                         \
		u64 was = (clock), now_at = pp_clock_pass(was, vtime);                             \
		if (now_at - was > longest_jump)                                                   \
			longest_jump = now_at - was;                                               \
		now_at;                                                                            \
	})

#endif /* SIM_SABOTAGE_H */
