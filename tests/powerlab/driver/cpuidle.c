// SPDX-License-Identifier: GPL-2.0-only
/*
 * The idle states, to cpuidle: those of the core, then its deepest with one of
 * the cluster, then the deepest of both with one of the package. What is chosen
 * is what the CPU allows; power.c has what that comes to. The exit latency is
 * paid with interrupts off after the CPU was woken. On x86 the handler of the
 * interrupt itself comes before it, other than on hardware and on arm64.
 */
#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/slab.h>
#ifdef CONFIG_X86
#include <asm/irqflags.h>
#else
#include <asm/proc-fns.h>
#endif

#include "powerlab.h"

/* A group's driver, and what its states stand for. */
struct idle_driver {
	struct cpuidle_driver driver;
	struct pl_choice choices[CPUIDLE_STATE_MAX];
};

static struct idle_driver *drivers;

static void enter_idle(struct pl_cpu *cpu, struct pl_choice choice, ktime_t next_timer)
{
	raw_spin_lock(&pl_lock);
	if (!cpu->offline)
		pl_sleep(cpu, choice, next_timer, pl_now());
	raw_spin_unlock(&pl_lock);
}

static void leave_idle(struct pl_cpu *cpu)
{
	u64 now, exit_ns;

	raw_spin_lock(&pl_lock);
	now = pl_now();
	exit_ns = cpu->offline ? 0 : pl_wake(cpu, now);
	raw_spin_unlock(&pl_lock);
	pl_spin_until(now + exit_ns);
}

/* Until an interrupt is there. Interrupts are off before and after. */
static __always_inline void halt_cpu(void)
{
#ifdef CONFIG_X86
	raw_safe_halt();
	raw_local_irq_disable();
#else
	cpu_do_idle();
#endif
}

static __cpuidle int enter(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	struct idle_driver *of = container_of(drv, struct idle_driver, driver);
	struct pl_cpu *cpu = &pl_cpus[dev->cpu];

	instrumentation_begin();
	enter_idle(cpu, of->choices[index], dev->next_hrtimer);
	ct_cpuidle_enter();
	if (!need_resched())
		halt_cpu();
	ct_cpuidle_exit();
	leave_idle(cpu);
	instrumentation_end();
	return index;
}

static void add_state(struct idle_driver *to, const struct pl_state *state, const char *of,
		      u64 residency_ns, u64 exit_ns, struct pl_choice choice)
{
	struct cpuidle_state *add = &to->driver.states[to->driver.state_count];

	if (to->driver.state_count == CPUIDLE_STATE_MAX)
		return;
	to->choices[to->driver.state_count++] = choice;
	snprintf(add->name, sizeof(add->name), "%s", state->name);
	snprintf(add->desc, sizeof(add->desc), "%s of the %s", state->name, of);
	add->target_residency_ns = residency_ns;
	add->target_residency = div_u64(residency_ns, NSEC_PER_USEC);
	add->exit_latency_ns = exit_ns;
	add->exit_latency = div_u64(exit_ns, NSEC_PER_USEC);
	add->flags = CPUIDLE_FLAG_RCU_IDLE;
	add->enter = enter;
}

/* What all groups of the cluster of @group share stands in its first. */
static const struct pl_states *shared_of(int group)
{
	while (group && pl_machine.groups[group].joined)
		group--;
	return &pl_machine.groups[group].shared;
}

/* The states of a core, of a cluster or of a package, which is what @which of @choice says. */
static void add_states(struct idle_driver *to, const struct pl_states *states, const char *of,
		       struct pl_choice *choice, int *which)
{
	u64 residency_ns = 0, exit_ns = 0;
	int i, nr = to->driver.state_count;

	if (nr) {
		residency_ns = to->driver.states[nr - 1].target_residency_ns;
		exit_ns = to->driver.states[nr - 1].exit_latency_ns;
	}
	for (i = 0; i < states->nr; i++) {
		residency_ns = max(residency_ns, states->at[i].residency_ns);
		exit_ns = max(exit_ns, states->at[i].exit_ns);
		*which = i;
		add_state(to, &states->at[i], of, residency_ns, exit_ns, *choice);
	}
}

static int register_group(int nth)
{
	struct pl_group *group = &pl_machine.groups[nth];
	struct pl_choice choice = { .core = -1, .cluster = -1, .package = -1 };
	struct idle_driver *driver = &drivers[nth];

	add_states(driver, &pl_machine.kinds[group->kind].idle, "core", &choice, &choice.core);
	if (!driver->driver.state_count)
		return 0;
	add_states(driver, shared_of(nth), "cluster", &choice, &choice.cluster);
	add_states(driver, &pl_machine.package, "package", &choice, &choice.package);
	driver->driver.name = "powerlab";
	driver->driver.owner = THIS_MODULE;
	driver->driver.cpumask = &group->cpus;
	return cpuidle_register(&driver->driver, NULL);
}

int pl_cpuidle_init(void)
{
	int group, err = 0;

	drivers = kcalloc(pl_machine.nr_groups, sizeof(*drivers), GFP_KERNEL);
	if (!drivers)
		return -ENOMEM;
	for (group = 0; !err && group < pl_machine.nr_groups; group++)
		err = register_group(group);
	return err;
}
