/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What wakes one CPU, for `scx_powerpack why --cpu`: tracing programs that are loaded while that
 * runs, and no part of the scheduler. They report what happens on the CPU while its idle task is
 * there; cause.rs makes of it what has woken the CPU. A task that runs costs nothing here but a
 * comparison for each of its interrupts.
 */
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "intf.h"

char _license[] SEC("license") = "GPL";

/* The kernel's: what cpu_idle says of a CPU that is not in an idle state any more. */
#define PWR_EVENT_EXIT (~0u)

/* Set before loading: the CPU that is watched. */
const volatile u32 watched_cpu;

u64 lost; /* events for which the ring had no room */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PP_WAKES_RING_BYTES);
} ring SEC(".maps");

struct waker {
	u32 kind; /* enum pp_wakes_waker */
	char comm[PP_WAKES_COMM];
};

/* By whom each task was last woken, by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_WAKES_TASKS);
	__type(key, u32);
	__type(value, struct waker);
} wakers SEC(".maps");

/* The CPU that is watched is this one, and idle but for interrupts. */
static __always_inline bool is_idle_here(void)
{
	return bpf_get_smp_processor_id() == watched_cpu && !bpf_get_current_pid_tgid();
}

/* An event to fill in and report() or to leave to the verifier; NULL: there was no room. */
static __always_inline struct pp_wakes_event *event_of(enum pp_wakes_kind kind)
{
	struct pp_wakes_event *event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->now_ns = bpf_ktime_get_ns();
	event->kind = kind;
	return event;
}

/* Nobody is woken for it: the reader looks by itself. */
static __always_inline void report(struct pp_wakes_event *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline int report_nr(enum pp_wakes_kind kind, u32 nr)
{
	struct pp_wakes_event *event = event_of(kind);

	if (event) {
		event->nr = nr;
		report(event);
	}
	return 0;
}

/* The name of the function at @address; of no function it is the number. */
static __always_inline void name_function(char *name, const void *address)
{
	u64 arg = (u64)address;

	bpf_snprintf(name, PP_WAKES_NAME, "%ps", &arg, sizeof(arg));
}

static __always_inline int report_function(enum pp_wakes_kind kind, const void *address)
{
	struct pp_wakes_event *event = event_of(kind);

	if (event) {
		name_function(event->name, address);
		report(event);
	}
	return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(cpu_idle, u32 state, u32 cpu)
{
	if (cpu != watched_cpu)
		return 0;
	if (state == PWR_EVENT_EXIT)
		return report_nr(PP_WAKES_LEAVES, 0);
	return report_nr(PP_WAKES_SLEEPS, state);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
{
	struct pp_wakes_event *event;

	if (!is_idle_here())
		return 0;
	event = event_of(PP_WAKES_IRQ);
	if (event) {
		event->nr = irq;
		bpf_probe_read_kernel_str(event->name, sizeof(event->name), action->name);
		report(event);
	}
	return 0;
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(local_timer_entry, int vector)
{
	return is_idle_here() ? report_nr(PP_WAKES_TIMER_INTERRUPT, vector) : 0;
}

SEC("tp_btf/reschedule_entry")
int BPF_PROG(reschedule_entry, int vector)
{
	return is_idle_here() ? report_nr(PP_WAKES_RESCHEDULE, vector) : 0;
}

SEC("tp_btf/call_function_entry")
int BPF_PROG(call_function_entry, int vector)
{
	return is_idle_here() ? report_nr(PP_WAKES_CALL_FUNCTION, vector) : 0;
}

SEC("tp_btf/call_function_single_entry")
int BPF_PROG(call_function_single_entry, int vector)
{
	return is_idle_here() ? report_nr(PP_WAKES_CALL_FUNCTION, vector) : 0;
}

SEC("tp_btf/irq_work_entry")
int BPF_PROG(irq_work_entry, int vector)
{
	return is_idle_here() ? report_nr(PP_WAKES_IRQ_WORK, vector) : 0;
}

SEC("tp_btf/ipi_entry")
int BPF_PROG(ipi_entry, const char *reason)
{
	struct pp_wakes_event *event;

	if (!is_idle_here())
		return 0;
	event = event_of(PP_WAKES_IPI);
	if (event) {
		bpf_probe_read_kernel_str(event->name, sizeof(event->name), reason);
		report(event);
	}
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	return is_idle_here() ? report_function(PP_WAKES_HRTIMER, timer->function) : 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_expire_entry, struct timer_list *timer)
{
	struct delayed_work *work = container_of(timer, struct delayed_work, timer);
	struct pp_wakes_event *event;

	if (!is_idle_here())
		return 0;
	event = event_of(PP_WAKES_TIMER);
	if (event) {
		name_function(event->name, timer->function);
		/* Garbage, unless the timer is that of delayed work: the reader knows which are. */
		name_function(event->other, BPF_CORE_READ(work, work.func));
		report(event);
	}
	return 0;
}

/* Raw: with types the verifier takes no pointer to a function. */
SEC("raw_tp/csd_function_entry")
int BPF_PROG(csd_function_entry, void *func)
{
	return is_idle_here() ? report_function(PP_WAKES_FUNCTION, func) : 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, u32 nr)
{
	return is_idle_here() ? report_nr(PP_WAKES_SOFTIRQ, nr) : 0;
}

static __always_inline void note_waker(struct task_struct *p)
{
	struct waker waker = { .kind = PP_WAKES_BY_TASK };
	u32 pid = p->pid;

	/*
	 * The idle task wakes nobody: where it seems to, an interrupt does. Of one that comes to
	 * another task nothing is known here that all kernels say: then that task is named.
	 */
	if (!bpf_get_current_pid_tgid())
		waker.kind = PP_WAKES_BY_INTERRUPT;
	else
		bpf_get_current_comm(waker.comm, sizeof(waker.comm));
	bpf_map_update_elem(&wakers, &pid, &waker, BPF_ANY);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *p)
{
	struct pp_wakes_event *event;

	note_waker(p);
	if (!is_idle_here())
		return 0;
	event = event_of(PP_WAKES_WAKES);
	if (event) {
		event->pid = p->pid;
		bpf_probe_read_kernel_str(event->name, PP_WAKES_COMM, p->comm);
		report(event);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *p)
{
	note_waker(p);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct pp_wakes_event *event;
	struct waker *waker;
	u32 pid = next->pid;

	if (!is_idle_here())
		return 0;
	event = event_of(PP_WAKES_RUNS);
	if (!event)
		return 0;
	event->pid = pid;
	bpf_probe_read_kernel_str(event->name, PP_WAKES_COMM, next->comm);
	waker = bpf_map_lookup_elem(&wakers, &pid);
	if (waker) {
		event->waker = waker->kind;
		bpf_probe_read_kernel_str(event->other, PP_WAKES_COMM, waker->comm);
	}
	report(event);
	return 0;
}

/*
 * A kprobe, not a traced function: kernels that give a kfunc more arguments than its type has do
 * not save them for that.
 */
SEC("kprobe/scx_bpf_kick_cpu")
int BPF_KPROBE(kick_cpu, s32 cpu)
{
	return cpu == watched_cpu ? report_nr(PP_WAKES_KICK, 0) : 0;
}
