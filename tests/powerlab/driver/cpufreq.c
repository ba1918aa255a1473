// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operating points, to cpufreq and to the energy model; capacities and
 * frequency-invariant utilization as the architecture has them.
 */
#define pr_fmt(fmt) "powerlab: " fmt

#include <linux/cpu.h>
#include <linux/cpufreq.h>
#include <linux/cpuset.h>
#include <linux/delay.h>
#include <linux/energy_model.h>
#include <linux/module.h>
#include <linux/sched/topology.h>
#include <linux/slab.h>

#include "powerlab.h"

static bool fast = true;
module_param(fast, bool, 0444);
MODULE_PARM_DESC(fast, "change frequencies from the scheduler's context, at once");

static unsigned int transition_us = 100;
module_param(transition_us, uint, 0444);
MODULE_PARM_DESC(transition_us, "what a change takes where it is not fast");

static struct cpufreq_frequency_table *tables[PL_MAX_KINDS];

static struct pl_domain *domain_of(unsigned int cpu)
{
	return &pl_domains[pl_cpus[cpu].domain];
}

/* Of each point of a kind its power, for the energy model. */
static int active_power(struct device *dev, unsigned long *uw, unsigned long *khz)
{
	const struct pl_kind *kind = pl_cpus[dev->id].kind;
	int i;

	for (i = 0; i < kind->nr_opps; i++) {
		if (kind->opps[i].mhz * 1000UL >= *khz) {
			*khz = kind->opps[i].mhz * 1000UL;
			*uw = kind->opps[i].uw;
			return 0;
		}
	}
	return -EINVAL;
}

static void register_em(struct cpufreq_policy *policy)
{
	struct em_data_callback callback = EM_DATA_CB(active_power);
	struct pl_domain *domain = domain_of(policy->cpu);
	struct device *dev = get_cpu_device(policy->cpu);
	int err;

	/* Stays when CPUs are offlined, and is of all of them. */
	if (em_pd_get(dev))
		return;
	err = em_dev_register_perf_domain(dev, domain->kind->nr_opps, &callback, &domain->cpus,
					  true);
	if (err)
		pr_err("no energy model of the CPUs with %u: %d\n", policy->cpu, err);
}

static int policy_init(struct cpufreq_policy *policy)
{
	struct pl_domain *domain = domain_of(policy->cpu);

	cpumask_copy(policy->cpus, &domain->cpus);
	policy->freq_table = tables[domain->kind - pl_machine.kinds];
	policy->cur = pl_opp_of(domain)->mhz * 1000;
	policy->cpuinfo.transition_latency = fast ? 1000 : transition_us * 1000;
	policy->transition_delay_us = pl_machine.freq_rate_limit_us;
	policy->fast_switch_possible = fast;
	policy->dvfs_possible_from_any_cpu = true;
	return 0;
}

static int target_index(struct cpufreq_policy *policy, unsigned int index)
{
	if (!fast)
		usleep_range(transition_us, transition_us);
	pl_set_opp(domain_of(policy->cpu), index);
	return 0;
}

static unsigned int fast_switch(struct cpufreq_policy *policy, unsigned int target_khz)
{
	int index = cpufreq_table_find_index_l(policy, target_khz, false);

	pl_set_opp(domain_of(policy->cpu), index);
	return policy->freq_table[index].frequency;
}

static unsigned int get_khz(unsigned int cpu)
{
	return pl_opp_of(domain_of(cpu))->mhz * 1000;
}

static struct cpufreq_driver driver = {
	.name = "powerlab",
	.flags = CPUFREQ_NEED_INITIAL_FREQ_CHECK | CPUFREQ_HAVE_GOVERNOR_PER_POLICY,
	.init = policy_init,
	.verify = cpufreq_generic_frequency_table_verify,
	.target_index = target_index,
	.fast_switch = fast_switch,
	.get = get_khz,
	.register_em = register_em,
	.attr = cpufreq_generic_attr,
};

static struct cpufreq_frequency_table *table_of(const struct pl_kind *kind)
{
	struct cpufreq_frequency_table *table;
	int i;

	table = kcalloc(kind->nr_opps + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	for (i = 0; i < kind->nr_opps; i++)
		table[i].frequency = kind->opps[i].mhz * 1000;
	table[i].frequency = CPUFREQ_TABLE_END;
	return table;
}

#ifdef CONFIG_X86
/*
 * Where x86 is hybrid, intel_pstate calls the same. The ratio of frequencies is
 * for the counters APERF and MPERF, which an emulated CPU has not: nothing but
 * pl_set_opp() writes arch_freq_scale.
 */
static void set_capacities(void)
{
	bool differ = false;
	int i;

	static_branch_enable(&arch_scale_freq_key);
	for (i = 0; i < pl_nr_cpus; i++)
		differ |= pl_cpus[i].kind->capacity != 1024;
	if (!differ || !arch_enable_hybrid_capacity_scale())
		return;
	for (i = 0; i < pl_nr_cpus; i++)
		arch_set_cpu_capacity(i, pl_cpus[i].kind->capacity, 1024, 1, 1);
	x86_topology_update = true;
	rebuild_sched_domains();
}
#else
/* Are in the device tree, and cpufreq itself writes arch_freq_scale too. */
static void set_capacities(void)
{
}
#endif

/* Where arm64 shows it; x86 shows it nowhere. */
static ssize_t cpu_capacity_show(struct device *dev, struct device_attribute *attr, char *buffer)
{
	return sysfs_emit(buffer, "%u\n", pl_cpus[dev->id].kind->capacity);
}
static DEVICE_ATTR_RO(cpu_capacity);

static int show_capacities(void)
{
	int err = 0, i;

	for (i = 0; IS_ENABLED(CONFIG_X86) && !err && i < pl_nr_cpus; i++)
		err = device_create_file(get_cpu_device(i), &dev_attr_cpu_capacity);
	return err;
}

int pl_cpufreq_init(void)
{
	int i;

	for (i = 0; i < pl_machine.nr_kinds; i++) {
		if (!pl_machine.kinds[i].nr_opps)
			return 0;
		tables[i] = table_of(&pl_machine.kinds[i]);
		if (!tables[i])
			return -ENOMEM;
	}
	set_capacities();
	return show_capacities() ?: cpufreq_register_driver(&driver);
}
