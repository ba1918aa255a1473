// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine from the kernel's command line. Sections are divided by '/', their
 * fields by ':', the items of a field by ',' and the numbers of an item by '+':
 *
 *   m:NAME:core|llc|package|kind:RATE_LIMIT_US
 *   k:NAME:CAPACITY:THREADS:SMT_POWER_PERMILLE:PCT,..:MHZ+UW,..:STATE,..
 *   l:KIND:CORES:PACKAGE:JOINED:ACTIVE_UW:STATE,..
 *   p:ACTIVE_UW:STATE,..
 *
 * where a STATE is NAME+RESIDENCY_NS+EXIT_NS+UW.
 */
#define pr_fmt(fmt) "powerlab: " fmt

#include <linux/kernel.h>
#include <linux/string.h>

#include "powerlab.h"

struct pl_machine pl_machine;

/* The next number of *@text, which ends at one of @ends. */
static int take_u32(char **text, const char *ends, u32 *value)
{
	char *field = strsep(text, ends);

	return field ? kstrtou32(field, 10, value) : -EINVAL;
}

static int take_u64(char **text, const char *ends, u64 *value)
{
	char *field = strsep(text, ends);

	return field ? kstrtou64(field, 10, value) : -EINVAL;
}

static int take_name(char **text, const char *ends, char *name)
{
	char *field = strsep(text, ends);

	return field && strscpy(name, field, PL_NAME_LEN) > 0 ? 0 : -EINVAL;
}

static int parse_states(char *text, struct pl_states *states)
{
	char *item;

	while (text && *text && (item = strsep(&text, ","))) {
		struct pl_state *state = &states->at[states->nr];

		if (states->nr == PL_MAX_STATES)
			return -E2BIG;
		if (take_name(&item, "+", state->name) ||
		    take_u64(&item, "+", &state->residency_ns) ||
		    take_u64(&item, "+", &state->exit_ns) || take_u32(&item, "+", &state->uw))
			return -EINVAL;
		states->nr++;
	}
	return 0;
}

static int parse_opps(char *text, struct pl_kind *kind)
{
	char *item;

	while (text && *text && (item = strsep(&text, ","))) {
		struct pl_opp *opp = &kind->opps[kind->nr_opps];

		if (kind->nr_opps == PL_MAX_OPPS)
			return -E2BIG;
		if (take_u32(&item, "+", &opp->mhz) || take_u32(&item, "+", &opp->uw) || !opp->mhz)
			return -EINVAL;
		kind->nr_opps++;
	}
	return 0;
}

static int parse_speeds(char *text, struct pl_kind *kind)
{
	int i;

	for (i = 0; i < PL_MAX_THREADS; i++)
		kind->speed_pct[i] = 100;
	for (i = 0; text && *text; i++) {
		if (i == PL_MAX_THREADS)
			return -E2BIG;
		if (take_u32(&text, ",", &kind->speed_pct[i]) || !kind->speed_pct[i])
			return -EINVAL;
	}
	return 0;
}

static int parse_machine(char *text)
{
	static const char *const clocks[] = { "core", "llc", "package", "kind" };
	char *clock;
	int at;

	if (take_name(&text, ":", pl_machine.name))
		return -EINVAL;
	clock = strsep(&text, ":");
	at = clock ? match_string(clocks, ARRAY_SIZE(clocks), clock) : -EINVAL;
	if (at < 0)
		return -EINVAL;
	pl_machine.clock = at;
	return take_u32(&text, ":", &pl_machine.freq_rate_limit_us);
}

static int parse_kind(char *text)
{
	struct pl_kind *kind = &pl_machine.kinds[pl_machine.nr_kinds];

	if (pl_machine.nr_kinds == PL_MAX_KINDS)
		return -E2BIG;
	if (take_name(&text, ":", kind->name) || take_u32(&text, ":", &kind->capacity) ||
	    take_u32(&text, ":", &kind->threads) || take_u32(&text, ":", &kind->smt_power_permille))
		return -EINVAL;
	if (!kind->capacity || kind->capacity > 1024 || !kind->threads ||
	    kind->threads > PL_MAX_THREADS)
		return -EINVAL;
	pl_machine.nr_kinds++;
	return parse_speeds(strsep(&text, ":"), kind) ?: parse_opps(strsep(&text, ":"), kind) ?:
	       parse_states(strsep(&text, ":"), &kind->idle);
}

static int parse_group(char *text)
{
	struct pl_group *group = &pl_machine.groups[pl_machine.nr_groups];
	u32 kind, cores, package, joined;

	if (pl_machine.nr_groups == PL_MAX_GROUPS)
		return -E2BIG;
	if (take_u32(&text, ":", &kind) || take_u32(&text, ":", &cores) ||
	    take_u32(&text, ":", &package) || take_u32(&text, ":", &joined) ||
	    take_u32(&text, ":", &group->shared.active_uw))
		return -EINVAL;
	if (kind >= pl_machine.nr_kinds || !cores || package >= PL_MAX_GROUPS ||
	    (joined && !pl_machine.nr_groups))
		return -EINVAL;
	group->kind = kind;
	group->cores = cores;
	group->package = package;
	group->joined = joined;
	pl_machine.nr_groups++;
	return parse_states(strsep(&text, ":"), &group->shared);
}

static int parse_package(char *text)
{
	return take_u32(&text, ":", &pl_machine.package.active_uw)
		       ?: parse_states(strsep(&text, ":"), &pl_machine.package);
}

/* Takes the machine from @text, which is changed by that. */
int pl_parse(char *text)
{
	char *section;
	int err = 0;

	while (!err && (section = strsep(&text, "/"))) {
		char *what = strsep(&section, ":");

		if (!section)
			err = -EINVAL;
		else if (!strcmp(what, "m"))
			err = parse_machine(section);
		else if (!strcmp(what, "k"))
			err = parse_kind(section);
		else if (!strcmp(what, "l"))
			err = parse_group(section);
		else if (!strcmp(what, "p"))
			err = parse_package(section);
		else
			err = -EINVAL;
		if (err)
			pr_err("cannot read section '%s' of the machine\n", what);
	}
	return err ?: pl_machine.nr_groups ? err : -EINVAL;
}
