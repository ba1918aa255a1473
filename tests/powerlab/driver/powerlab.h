/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of a machine's power under a real kernel: what each part of the
 * machine is in (a frequency, an idle state), what that costs, and how fast a
 * CPU is. The model is that of the project's simulator (sim/src/power/).
 */
#ifndef POWERLAB_H
#define POWERLAB_H

#include <linux/cpuidle.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/types.h>

#define PL_NAME_LEN 16
#define PL_MAX_OPPS 32
#define PL_MAX_STATES 6
#define PL_MAX_THREADS 8
#define PL_MAX_KINDS 8
/* Entries [[llc]] of the machine's file. */
#define PL_MAX_GROUPS 64
#define PL_MAX_CPUS 256

/* A CPU's speed: of the machine's fastest CPU at its highest frequency. */
#define PL_FULL_SPEED 65536

/* An idle state of a core, a cluster or a package. */
struct pl_state {
	char name[PL_NAME_LEN];
	u64 residency_ns;
	u64 exit_ns;
	u32 uw;
};

/* What is awake or in an idle state as a whole, as it is described. */
struct pl_states {
	u32 active_uw;
	int nr;
	struct pl_state at[PL_MAX_STATES];
};

struct pl_opp {
	u32 mhz;
	u32 uw;
};

/* A kind of core. */
struct pl_kind {
	char name[PL_NAME_LEN];
	u32 capacity;
	u32 threads;
	/* What each further thread that runs adds to the core's power. */
	u32 smt_power_permille;
	/* How fast each thread is while 1, 2, .. of the core's run. */
	u32 speed_pct[PL_MAX_THREADS];
	int nr_opps;
	struct pl_opp opps[PL_MAX_OPPS];
	struct pl_states idle;
};

/* Cores of one kind that share a cache, and perhaps with the group before. */
struct pl_group {
	int kind;
	int cores;
	int package;
	bool joined;
	struct pl_states shared;
	struct cpumask cpus;
};

/* Which CPUs share a clock. */
enum pl_clock { PL_CLOCK_CORE, PL_CLOCK_CLUSTER, PL_CLOCK_PACKAGE, PL_CLOCK_GROUP };

/* The machine as it is described. */
struct pl_machine {
	char name[PL_NAME_LEN];
	enum pl_clock clock;
	u32 freq_rate_limit_us;
	int nr_kinds;
	struct pl_kind kinds[PL_MAX_KINDS];
	int nr_groups;
	struct pl_group groups[PL_MAX_GROUPS];
	struct pl_states package;
};

/* A core, a cluster or a package: what it is in, and what it has used. */
struct pl_unit {
	const struct pl_states *states;
	/* How many of its parts are awake: threads, cores, clusters. */
	int nr_awake;
	/* Of @states, or -1: none. */
	int state;
	u64 power_uw;
	u64 since_ns;
	u64 energy_pj;
	/* Awake, then its idle states. */
	u64 residency_ns[PL_MAX_STATES + 1];
};

/* CPUs that share a clock. */
struct pl_domain {
	struct cpumask cpus;
	const struct pl_kind *kind;
	int opp;
	u64 nr_transitions;
};

/* What the governor chooses for a CPU: states of it and of what it is part of. */
struct pl_choice {
	int core;
	int cluster;
	int package;
};

struct pl_cpu {
	int cpu;
	const struct pl_kind *kind;
	int group;
	int core;
	int cluster;
	int package;
	int domain;

	/* Power: it executes; what was chosen when it last stopped; when its next timer is due. */
	bool awake;
	bool offline;
	struct pl_choice choice;
	u64 next_timer_ns;

	/* Speed: it runs a task, which has not yet paid @debt_ns for it. */
	bool busy;
	bool paying;
	u64 since_ns;
	u64 debt_ns;
	struct hrtimer timer;
};

extern struct pl_machine pl_machine;
extern struct pl_cpu *pl_cpus;
extern int pl_nr_cpus;
extern struct pl_unit *pl_cores, *pl_clusters, *pl_packages;
extern int pl_nr_cores, pl_nr_clusters, pl_nr_packages;
extern struct pl_domain *pl_domains;
extern int pl_nr_domains;
/* Guards all units, domains and CPUs. Inside a run queue's lock. */
extern raw_spinlock_t pl_lock;

/* Time, also inside the timekeeping and with any lock held. */
static inline u64 pl_now(void)
{
	return ktime_get_mono_fast_ns();
}

static inline const struct pl_opp *pl_opp_of(const struct pl_domain *domain)
{
	return domain->kind->nr_opps ? &domain->kind->opps[domain->opp] : NULL;
}

/* config.c */
int pl_parse(char *text);

/* power.c */
int pl_power_init(void);
u64 pl_settle(struct pl_unit *unit, u64 now);
u64 pl_wake(struct pl_cpu *cpu, u64 now);
void pl_sleep(struct pl_cpu *cpu, struct pl_choice choice, u64 next_timer_ns, u64 now);
void pl_set_opp(struct pl_domain *domain, int opp);
u64 pl_package_energy_pj(int package);

/* speed.c */
/* /dev/powerlab, to which other devices of the machine belong. */
extern struct device *pl_device;
int pl_speed_init(void);
u32 pl_speed_of(const struct pl_cpu *cpu);
void pl_settle_speed(struct pl_cpu *cpu, u64 now);
void pl_spin_until(u64 end_ns);
void pl_speed_offline(struct pl_cpu *cpu);
void pl_speed_online(struct pl_cpu *cpu);

/* cpufreq.c, cpuidle.c, meters.c, debugfs.c */
int pl_cpufreq_init(void);
int pl_cpuidle_init(void);
int pl_meters_init(void);
int pl_debugfs_init(void);

#endif /* POWERLAB_H */
