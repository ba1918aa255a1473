/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How often each CPU is woken, and for how long all CPUs of a package are idle, for
 * `scx_powerpack bench`: loaded while a load runs whose suite asks for it, and no part of the
 * scheduler, in which a line that CPUs share would be written each time that one falls asleep.
 */
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "count.h"

char _license[] SEC("license") = "GPL";

/* The kernel's: what cpu_idle says of a CPU that is not in an idle state any more. */
#define PWR_EVENT_EXIT (~0u)

/* Set before loading: the idle state in which CPUs poll, what is where. */
const volatile u32 polling_state;
const volatile u16 package_of_cpu[PP_COUNT_CPUS];
const volatile u32 cpus_of_package[PP_COUNT_CPUS];

struct pp_count_cpu cpus[PP_COUNT_CPUS];
struct pp_count_package packages[PP_COUNT_CPUS];

/*
 * The sum over all times in which all CPUs were idle is that of their ends less that of their
 * beginnings: in which order those are added does not matter, so that no lock is needed.
 */
static __always_inline void enter_idle(struct pp_count_cpu *cpu, u32 package, u32 state)
{
	struct pp_count_package *p = &packages[package];

	cpu->state = state;
	if (cpu->is_idle)
		return;
	cpu->is_idle = 1;
	if (__sync_fetch_and_add(&p->nr_idle, 1) + 1 == cpus_of_package[package])
		__sync_fetch_and_add(&p->all_idle_ns, -bpf_ktime_get_ns());
}

/* One that was idle as counting began is idle from the next time on. */
static __always_inline void leave_idle(struct pp_count_cpu *cpu, u32 package)
{
	struct pp_count_package *p = &packages[package];

	if (!cpu->is_idle)
		return;
	cpu->is_idle = 0;
	if (cpu->state != polling_state)
		cpu->wake_ups++;
	if (__sync_fetch_and_add(&p->nr_idle, -1) == cpus_of_package[package])
		__sync_fetch_and_add(&p->all_idle_ns, bpf_ktime_get_ns());
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(count_idle, u32 state, u32 cpu)
{
	u32 package;

	if (cpu >= PP_COUNT_CPUS)
		return 0;
	package = package_of_cpu[cpu];
	if (package >= PP_COUNT_CPUS)
		return 0;
	if (state == PWR_EVENT_EXIT)
		leave_idle(&cpus[cpu], package);
	else
		enter_idle(&cpus[cpu], package, state);
	return 0;
}
