/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs that trace a CPU's wake-ups report to `scx_powerpack why --cpu`.
 */
#ifndef PP_WAKES_INTF_H
#define PP_WAKES_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum pp_wakes_limits {
	/* As long as the kernel's names of tasks (TASK_COMM_LEN). */
	PP_WAKES_COMM = 16,
	/* A function's name, or an interrupt's; what is longer is cut. */
	PP_WAKES_NAME = 48,
	/* Room for 8,000 events between two looks at it; more are counted as lost. */
	PP_WAKES_RING_BYTES = 1 << 20,
	/* Tasks whose waker is remembered until they run. */
	PP_WAKES_TASKS = 4096,
};

/*
 * What happened on the CPU while its idle task was there, but for KICK: something has requested
 * on any CPU that this one look for a task. Which fields are filled in is said at each.
 */
enum pp_wakes_kind {
	PP_WAKES_SLEEPS,	  /* it enters an idle state; nr: which */
	PP_WAKES_LEAVES,	  /* it has left it */
	PP_WAKES_IRQ,		  /* a device's interrupt, or one of the CPU's own; nr, name */
	PP_WAKES_TIMER_INTERRUPT, /* of the CPU's own timer */
	PP_WAKES_RESCHEDULE,	  /* the interrupt by which CPUs have each other look for a task */
	PP_WAKES_CALL_FUNCTION,	  /* the one by which they have each other call a function */
	PP_WAKES_IRQ_WORK,	  /* the one by which a CPU has itself call a function */
	PP_WAKES_IPI,		  /* any of the last four where they are no vectors; name */
	PP_WAKES_HRTIMER,	  /* a timer expires; name: its function */
	PP_WAKES_TIMER,		  /* one of low resolution does; other: the function of its work */
	PP_WAKES_FUNCTION,	  /* the CPU calls a function for another one; name */
	PP_WAKES_SOFTIRQ,	  /* nr: which */
	PP_WAKES_WAKES,		  /* it wakes a task; pid, name */
	PP_WAKES_RUNS, /* a task runs next; pid, name, and by whom it was woken: waker, other */
	PP_WAKES_KICK, /* scx_bpf_kick_cpu() was called for it */
};

/* By whom a task was woken. */
enum pp_wakes_waker {
	PP_WAKES_BY_NOBODY,    /* not seen */
	PP_WAKES_BY_TASK,      /* or an interrupt that came to it */
	PP_WAKES_BY_INTERRUPT, /* that came to an idle CPU */
};

struct pp_wakes_event {
	u64 now_ns;
	u32 kind; /* enum pp_wakes_kind */
	u32 nr;
	u32 pid;
	u32 waker; /* enum pp_wakes_waker */
	char name[PP_WAKES_NAME];
	char other[PP_WAKES_NAME];
};
_Static_assert(sizeof(struct pp_wakes_event) == 120, "pp_wakes_event is shared with Rust");

#endif /* PP_WAKES_INTF_H */
