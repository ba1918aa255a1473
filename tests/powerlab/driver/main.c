// SPDX-License-Identifier: GPL-2.0-only
/*
 * Begins with what the kernel's command line says of the machine (powerlab=..,
 * see config.c), and keeps up with CPUs that are offlined and onlined.
 */
#define pr_fmt(fmt) "powerlab: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/kernel.h>

#include "powerlab.h"

static char *described;

static int __init take_description(char *text)
{
	described = text;
	return 1;
}
__setup("powerlab=", take_description);

#ifdef CONFIG_X86
/*
 * The clock of the emulated CPU is none of the model's: else the kernel would have
 * its time follow the frequencies, and refuse to change them fast.
 */
static int __init keep_time(char *text)
{
	setup_force_cpu_cap(X86_FEATURE_CONSTANT_TSC);
	return 0;
}
early_param("powerlab", keep_time);
#endif

/* An offlined CPU is in its deepest states, for ever. */
static int offlined(unsigned int nr)
{
	struct pl_choice deepest = { PL_MAX_STATES, PL_MAX_STATES, PL_MAX_STATES };
	struct pl_cpu *cpu = &pl_cpus[nr];
	unsigned long flags;

	pl_speed_offline(cpu);
	raw_spin_lock_irqsave(&pl_lock, flags);
	pl_sleep(cpu, deepest, U64_MAX, pl_now());
	raw_spin_unlock_irqrestore(&pl_lock, flags);
	return 0;
}

static int onlined(unsigned int nr)
{
	struct pl_cpu *cpu;
	unsigned long flags;

	if (nr >= pl_nr_cpus)
		return -ENODEV;
	cpu = &pl_cpus[nr];
	raw_spin_lock_irqsave(&pl_lock, flags);
	pl_wake(cpu, pl_now());
	raw_spin_unlock_irqrestore(&pl_lock, flags);
	pl_speed_online(cpu);
	return 0;
}

static int __init powerlab_init(void)
{
	int err;

	if (!described)
		return 0;
	err = pl_parse(described) ?: pl_power_init();
	if (err) {
		pr_err("no such machine: %d\n", err);
		return err;
	}
	if (pl_nr_cpus != num_online_cpus()) {
		pr_err("the machine has %d CPUs, and this one %u\n", pl_nr_cpus, num_online_cpus());
		return -EINVAL;
	}
	err = pl_speed_init()
		      ?: cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "powerlab:online", onlined,
					   offlined);
	if (err < 0) {
		pr_err("cannot follow the CPUs: %d\n", err);
		return err;
	}
	err = pl_cpufreq_init() ?: pl_cpuidle_init() ?: pl_meters_init() ?: pl_debugfs_init();
	if (err)
		pr_err("only in part: %d\n", err);
	else
		pr_info("%s, %d CPUs\n", pl_machine.name, pl_nr_cpus);
	return err;
}
late_initcall(powerlab_init);
