// SPDX-License-Identifier: GPL-2.0-only
/*
 * The truth, for tests alone: /sys/kernel/debug/powerlab/truth has a line for
 * each part of the machine with its energy, its time in each state, and how
 * often each clock was changed.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "powerlab.h"

static void show_unit(struct seq_file *seq, const char *what, int nth, struct pl_unit *unit,
		      u64 now)
{
	/* Brings the times in the states up to now, so it goes before they are read. */
	u64 energy_pj = pl_settle(unit, now);
	int i;

	seq_printf(seq, "%s %d nj %llu awake_ns %llu", what, nth, energy_pj / 1000,
		   unit->residency_ns[0]);
	for (i = 0; i < unit->states->nr; i++)
		seq_printf(seq, " %s_ns %llu", unit->states->at[i].name, unit->residency_ns[i + 1]);
	seq_putc(seq, '\n');
}

static int truth_show(struct seq_file *seq, void *data)
{
	unsigned long flags;
	u64 now;
	int i;

	raw_spin_lock_irqsave(&pl_lock, flags);
	now = pl_now();
	seq_printf(seq, "machine %s ns %llu\n", pl_machine.name, now);
	for (i = 0; i < pl_nr_cores; i++)
		show_unit(seq, "core", i, &pl_cores[i], now);
	for (i = 0; i < pl_nr_clusters; i++)
		show_unit(seq, "cluster", i, &pl_clusters[i], now);
	for (i = 0; i < pl_nr_packages; i++)
		show_unit(seq, "package", i, &pl_packages[i], now);
	for (i = 0; i < pl_nr_domains; i++) {
		const struct pl_opp *opp = pl_opp_of(&pl_domains[i]);

		seq_printf(seq, "domain %d mhz %u changes %llu\n", i, opp ? opp->mhz : 0,
			   pl_domains[i].nr_transitions);
	}
	for (i = 0; i < pl_nr_cpus; i++)
		seq_printf(seq, "cpu %d core %d cluster %d package %d domain %d speed %u\n", i,
			   pl_cpus[i].core, pl_cpus[i].cluster, pl_cpus[i].package,
			   pl_cpus[i].domain, pl_speed_of(&pl_cpus[i]));
	raw_spin_unlock_irqrestore(&pl_lock, flags);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(truth);

int pl_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("powerlab", NULL);

	debugfs_create_file("truth", 0400, dir, NULL, &truth_fops);
	return PTR_ERR_OR_ZERO(dir);
}
