// SPDX-License-Identifier: GPL-2.0-only
/*
 * What every core, cluster and package is in, and the energy that takes. A core
 * is in the shallowest state of its threads. A cluster whose cores all sleep goes
 * to the deepest state that the governors of all its CPUs have chosen and that
 * the next timer of any of them leaves time for, as firmware or a governor of
 * power domains would have it; a package so after its clusters.
 */
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "powerlab.h"

struct pl_cpu *pl_cpus;
int pl_nr_cpus;
struct pl_unit *pl_cores, *pl_clusters, *pl_packages;
int pl_nr_cores, pl_nr_clusters, pl_nr_packages;
struct pl_domain *pl_domains;
int pl_nr_domains;
DEFINE_RAW_SPINLOCK(pl_lock);

/* Accounts for @unit until @now; the energy that it has used so far. */
u64 pl_settle(struct pl_unit *unit, u64 now)
{
	u64 ns = now > unit->since_ns ? now - unit->since_ns : 0;

	/* Microwatts times nanoseconds are femtojoules. */
	unit->energy_pj += mul_u64_u64_div_u64(unit->power_uw, ns, 1000);
	unit->residency_ns[unit->state + 1] += ns;
	unit->since_ns += ns;
	return unit->energy_pj;
}

static void set_power(struct pl_unit *unit, u64 power_uw, u64 now)
{
	pl_settle(unit, now);
	unit->power_uw = power_uw;
}

/* @unit is woken: how long that takes. */
static u64 wake_unit(struct pl_unit *unit, u64 now)
{
	u64 exit_ns = unit->state >= 0 ? unit->states->at[unit->state].exit_ns : 0;

	set_power(unit, unit->states->active_uw, now);
	unit->state = -1;
	return exit_ns;
}

/* All of @unit sleeps: as a whole it is in @state, or in none (-1). */
static void unit_sleeps(struct pl_unit *unit, int state, u64 now)
{
	state = min(state, unit->states->nr - 1);
	set_power(unit, state >= 0 ? unit->states->at[state].uw : unit->states->active_uw, now);
	unit->state = state;
}

/* The power of a core by its frequency and how many of its threads are awake. */
static void update_core_power(const struct pl_cpu *cpu, u64 now)
{
	struct pl_unit *core = &pl_cores[cpu->core];
	const struct pl_opp *opp = pl_opp_of(&pl_domains[cpu->domain]);
	u64 permille = 1000 + (core->nr_awake - 1) * cpu->kind->smt_power_permille;

	if (core->nr_awake > 0)
		set_power(core, opp ? opp->uw * permille / 1000 : 0, now);
}

/* @cpu executes from @now on: how long until its first instruction. */
u64 pl_wake(struct pl_cpu *cpu, u64 now)
{
	struct pl_unit *core = &pl_cores[cpu->core], *cluster = &pl_clusters[cpu->cluster];
	struct pl_unit *package = &pl_packages[cpu->package];
	u64 exit_ns = 0;

	if (cpu->awake)
		return 0;
	cpu->awake = true;
	if (core->nr_awake++ == 0) {
		exit_ns = wake_unit(core, now);
		if (cluster->nr_awake++ == 0) {
			exit_ns = max(exit_ns, wake_unit(cluster, now));
			if (package->nr_awake++ == 0)
				exit_ns = max(exit_ns, wake_unit(package, now));
		}
	}
	update_core_power(cpu, now);
	return exit_ns;
}

/* The state that the threads of @core have in common. */
static int core_state(int core)
{
	int state = PL_MAX_STATES, i;

	for (i = 0; i < pl_nr_cpus; i++)
		if (pl_cpus[i].core == core)
			state = min(state, pl_cpus[i].choice.core);
	return state;
}

/* The state for a cluster, or a package, that all of its CPUs allow. */
static int shared_state(const struct pl_unit *unit, int cluster, int package, u64 now)
{
	u64 until = U64_MAX;
	int state = PL_MAX_STATES, i;

	for (i = 0; i < pl_nr_cpus; i++) {
		const struct pl_cpu *cpu = &pl_cpus[i];

		if (cluster >= 0 ? cpu->cluster != cluster : cpu->package != package)
			continue;
		state = min(state, cluster >= 0 ? cpu->choice.cluster : cpu->choice.package);
		until = min(until, cpu->next_timer_ns);
	}
	state = min(state, unit->states->nr - 1);
	until = until > now ? until - now : 0;
	while (state >= 0 && unit->states->at[state].residency_ns > until)
		state--;
	return state;
}

/* @cpu executes nothing from @now on, as was chosen. */
void pl_sleep(struct pl_cpu *cpu, struct pl_choice choice, u64 next_timer_ns, u64 now)
{
	struct pl_unit *core = &pl_cores[cpu->core], *cluster = &pl_clusters[cpu->cluster];
	struct pl_unit *package = &pl_packages[cpu->package];

	if (!cpu->awake)
		return;
	cpu->awake = false;
	cpu->choice = choice;
	cpu->next_timer_ns = next_timer_ns;
	if (--core->nr_awake > 0) {
		update_core_power(cpu, now);
		return;
	}
	unit_sleeps(core, core_state(cpu->core), now);
	if (--cluster->nr_awake > 0)
		return;
	unit_sleeps(cluster, shared_state(cluster, cpu->cluster, -1, now), now);
	if (--package->nr_awake > 0)
		return;
	unit_sleeps(package, shared_state(package, -1, cpu->package, now), now);
}

/* The clock of @domain changes. */
void pl_set_opp(struct pl_domain *domain, int opp)
{
	unsigned long flags;
	u32 mhz, max_mhz;
	u64 now;
	int cpu;

	raw_spin_lock_irqsave(&pl_lock, flags);
	now = pl_now();
	for_each_cpu (cpu, &domain->cpus)
		pl_settle_speed(&pl_cpus[cpu], now);
	if (domain->opp != opp)
		domain->nr_transitions++;
	domain->opp = opp;
	mhz = domain->kind->opps[opp].mhz;
	max_mhz = domain->kind->opps[domain->kind->nr_opps - 1].mhz;
	for_each_cpu (cpu, &domain->cpus) {
		update_core_power(&pl_cpus[cpu], now);
		per_cpu(arch_freq_scale, cpu) = mhz * SCHED_CAPACITY_SCALE / max_mhz;
	}
	raw_spin_unlock_irqrestore(&pl_lock, flags);
}

/* What @package has used until now, with all that is in it. */
u64 pl_package_energy_pj(int package)
{
	unsigned long flags;
	u64 now, sum;
	int i, core = -1, cluster = -1;

	raw_spin_lock_irqsave(&pl_lock, flags);
	now = pl_now();
	sum = pl_settle(&pl_packages[package], now);
	for (i = 0; i < pl_nr_cpus; i++) {
		const struct pl_cpu *cpu = &pl_cpus[i];

		if (cpu->package != package)
			continue;
		/* CPUs are numbered by core, and cores by cluster. */
		if (cpu->core != core)
			sum += pl_settle(&pl_cores[cpu->core], now);
		if (cpu->cluster != cluster)
			sum += pl_settle(&pl_clusters[cpu->cluster], now);
		core = cpu->core;
		cluster = cpu->cluster;
	}
	raw_spin_unlock_irqrestore(&pl_lock, flags);
	return sum;
}

/* The domain of a CPU by what shares its clock. */
static int domain_of(const struct pl_cpu *cpu)
{
	switch (pl_machine.clock) {
	case PL_CLOCK_CORE:
		return cpu->core;
	case PL_CLOCK_CLUSTER:
		return cpu->cluster;
	case PL_CLOCK_GROUP:
		return cpu->group;
	default:
		return cpu->package;
	}
}

static void place_cpu(int group, int core, int cluster)
{
	const struct pl_group *of = &pl_machine.groups[group];
	struct pl_cpu *cpu = &pl_cpus[pl_nr_cpus];

	cpu->cpu = pl_nr_cpus++;
	cpu->kind = &pl_machine.kinds[of->kind];
	cpu->group = group;
	cpu->core = core;
	cpu->cluster = cluster;
	cpu->package = of->package;
	cpu->domain = domain_of(cpu);
	cpu->awake = true;
	cpumask_set_cpu(cpu->cpu, &pl_machine.groups[group].cpus);
	cpumask_set_cpu(cpu->cpu, &pl_domains[cpu->domain].cpus);
	pl_domains[cpu->domain].kind = cpu->kind;
	pl_domains[cpu->domain].opp = max(cpu->kind->nr_opps - 1, 0);
	pl_nr_domains = max(pl_nr_domains, cpu->domain + 1);
	pl_nr_packages = max(pl_nr_packages, cpu->package + 1);
}

/* The CPUs of the machine, numbered core by core. */
static int place_cpus(void)
{
	int group, nth, threads;

	for (group = 0; group < pl_machine.nr_groups; group++) {
		const struct pl_group *of = &pl_machine.groups[group];

		threads = pl_machine.kinds[of->kind].threads;
		pl_nr_clusters += !of->joined;
		for (nth = 0; nth < of->cores * threads; nth++) {
			if (pl_nr_cpus == PL_MAX_CPUS)
				return -E2BIG;
			place_cpu(group, pl_nr_cores + nth / threads, pl_nr_clusters - 1);
		}
		pl_nr_cores += of->cores;
	}
	return 0;
}

static void begin_unit(struct pl_unit *unit, const struct pl_states *states, u64 now)
{
	unit->states = states;
	unit->state = -1;
	unit->power_uw = states->active_uw;
	unit->since_ns = now;
}

/* All CPUs are awake, at their highest frequency. */
int pl_power_init(void)
{
	u64 now = pl_now();
	int i, err;

	pl_cpus = kcalloc(PL_MAX_CPUS, sizeof(*pl_cpus), GFP_KERNEL);
	pl_cores = kcalloc(PL_MAX_CPUS, sizeof(*pl_cores), GFP_KERNEL);
	pl_clusters = kcalloc(PL_MAX_GROUPS, sizeof(*pl_clusters), GFP_KERNEL);
	pl_packages = kcalloc(PL_MAX_GROUPS, sizeof(*pl_packages), GFP_KERNEL);
	pl_domains = kcalloc(PL_MAX_CPUS, sizeof(*pl_domains), GFP_KERNEL);
	if (!pl_cpus || !pl_cores || !pl_clusters || !pl_packages || !pl_domains)
		return -ENOMEM;
	err = place_cpus();
	if (err)
		return err;
	for (i = pl_nr_cpus - 1; i >= 0; i--) {
		struct pl_cpu *cpu = &pl_cpus[i];
		const struct pl_group *group = &pl_machine.groups[cpu->group];

		begin_unit(&pl_cores[cpu->core], &cpu->kind->idle, now);
		/* A joined group has what its first has. */
		if (!group->joined)
			begin_unit(&pl_clusters[cpu->cluster], &group->shared, now);
		begin_unit(&pl_packages[cpu->package], &pl_machine.package, now);
	}
	for (i = 0; i < pl_nr_cpus; i++) {
		struct pl_cpu *cpu = &pl_cpus[i];

		if (pl_cores[cpu->core].nr_awake++ == 0 &&
		    pl_clusters[cpu->cluster].nr_awake++ == 0)
			pl_packages[cpu->package].nr_awake++;
		update_core_power(cpu, now);
	}
	return 0;
}
