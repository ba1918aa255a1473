/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program that counts idle states reports to `scx_powerpack bench`.
 */
#ifndef PP_WAKES_COUNT_H
#define PP_WAKES_COUNT_H

#ifndef __VMLINUX_H__
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum pp_count_limits {
	/* As many CPUs as the scheduler takes; packages are no more. */
	PP_COUNT_CPUS = 1024,
	/* So that two CPUs, or packages, do not write to one cache line (B). */
	PP_COUNT_LINE = 64,
};

/* A CPU writes to its own. */
struct pp_count_cpu {
	u64 wake_ups; /* how often it left an idle state other than polling */
	u32 state;    /* in which idle state it is */
	u32 is_idle;  /* and whether it is in one, as far as was seen */
} __attribute__((aligned(PP_COUNT_LINE)));

struct pp_count_package {
	/*
	 * For how long all CPUs of the package were in idle states, since counting began;
	 * while they are, less the instant at which that began.
	 */
	u64 all_idle_ns;
	u32 nr_idle; /* how many are in one now */
} __attribute__((aligned(PP_COUNT_LINE)));

_Static_assert(sizeof(struct pp_count_cpu) == PP_COUNT_LINE, "pp_count_cpu is shared with Rust");
_Static_assert(sizeof(struct pp_count_package) == PP_COUNT_LINE,
	       "pp_count_package is shared with Rust");

#endif /* PP_WAKES_COUNT_H */
