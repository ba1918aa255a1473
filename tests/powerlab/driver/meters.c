// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a machine says of its energy: a zone of powercap for each package, under
 * the names that Intel's have, whose counters wrap and may be noisy; and a
 * battery, from which all of it comes.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/powercap.h>
#include <linux/power_supply.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "powerlab.h"

static unsigned long wrap_uj = 262143328850;
module_param(wrap_uj, ulong, 0444);
MODULE_PARM_DESC(wrap_uj, "where the counters of energy begin again");

static unsigned int noise_permille;
module_param(noise_permille, uint, 0644);
MODULE_PARM_DESC(noise_permille, "how wrong each step of a counter of energy may be");

static unsigned int lie_permille = 1000;
module_param(lie_permille, uint, 0644);
MODULE_PARM_DESC(lie_permille, "what of the energy the zones report: for tests of the tests");

static unsigned long battery_uwh = 50000000;
module_param(battery_uwh, ulong, 0444);
MODULE_PARM_DESC(battery_uwh, "what the full battery holds; 0: there is none");

/* A zone, and what of the truth it has reported. */
struct pl_zone {
	struct powercap_zone zone;
	int package;
	struct mutex lock;
	u64 seen_pj;
	u64 reported_pj;
};

static struct pl_zone *zones;

/* The step since the last look, as a meter of this quality has it. */
static u64 metered(u64 step_pj)
{
	u32 noise = min(noise_permille, 1000U);
	u64 permille = 1000;

	if (noise)
		permille += get_random_u32_below(2 * noise + 1) - noise;
	permille = permille * lie_permille / 1000;
	return mul_u64_u64_div_u64(step_pj, permille, 1000);
}

static int get_energy_uj(struct powercap_zone *of, u64 *uj)
{
	struct pl_zone *zone = container_of(of, struct pl_zone, zone);
	u64 pj;

	mutex_lock(&zone->lock);
	pj = pl_package_energy_pj(zone->package);
	zone->reported_pj += metered(pj - zone->seen_pj);
	zone->seen_pj = pj;
	div64_u64_rem(div_u64(zone->reported_pj, 1000000), wrap_uj, uj);
	mutex_unlock(&zone->lock);
	return 0;
}

static int get_max_energy_range_uj(struct powercap_zone *of, u64 *uj)
{
	*uj = wrap_uj;
	return 0;
}

static int release(struct powercap_zone *of)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
	.get_energy_uj = get_energy_uj,
	.get_max_energy_range_uj = get_max_energy_range_uj,
	.release = release,
};

/* There are no limits to power; the framework wants to know how they would be set. */
static int get_no_limit(struct powercap_zone *of, int nth, u64 *value)
{
	return -EOPNOTSUPP;
}

static int set_no_limit(struct powercap_zone *of, int nth, u64 value)
{
	return -EOPNOTSUPP;
}

static const struct powercap_zone_constraint_ops no_limits = {
	.get_power_limit_uw = get_no_limit,
	.set_power_limit_uw = set_no_limit,
	.get_time_window_us = get_no_limit,
	.set_time_window_us = set_no_limit,
};

static u64 total_pj(void)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < pl_nr_packages; i++)
		sum += pl_package_energy_pj(i);
	return sum;
}

/* The mean power between two looks at the battery. */
static int power_now_uw(void)
{
	static DEFINE_MUTEX(lock);
	static u64 last_ns, last_pj, uw;
	u64 now, pj;

	mutex_lock(&lock);
	now = pl_now();
	pj = total_pj();
	if (now - last_ns > 100 * NSEC_PER_MSEC) {
		uw = mul_u64_u64_div_u64(pj - last_pj, 1000, now - last_ns);
		last_ns = now;
		last_pj = pj;
	}
	mutex_unlock(&lock);
	return uw;
}

/* A microwatt-hour is 3.6e9 picojoules. */
static u64 energy_left_uwh(void)
{
	return battery_uwh - min_t(u64, battery_uwh, div64_u64(total_pj(), 3600000000ULL));
}

static int get_property(struct power_supply *supply, enum power_supply_property property,
			union power_supply_propval *value)
{
	switch (property) {
	case POWER_SUPPLY_PROP_STATUS:
		value->intval = POWER_SUPPLY_STATUS_DISCHARGING;
		return 0;
	case POWER_SUPPLY_PROP_PRESENT:
		value->intval = 1;
		return 0;
	case POWER_SUPPLY_PROP_ENERGY_FULL:
		value->intval = battery_uwh;
		return 0;
	case POWER_SUPPLY_PROP_ENERGY_NOW:
		value->intval = energy_left_uwh();
		return 0;
	case POWER_SUPPLY_PROP_POWER_NOW:
		value->intval = power_now_uw();
		return 0;
	case POWER_SUPPLY_PROP_CAPACITY:
		value->intval = div64_u64(energy_left_uwh() * 100, battery_uwh);
		return 0;
	default:
		return -EINVAL;
	}
}

static const enum power_supply_property properties[] = {
	POWER_SUPPLY_PROP_STATUS,     POWER_SUPPLY_PROP_PRESENT,   POWER_SUPPLY_PROP_ENERGY_FULL,
	POWER_SUPPLY_PROP_ENERGY_NOW, POWER_SUPPLY_PROP_POWER_NOW, POWER_SUPPLY_PROP_CAPACITY,
};

static const struct power_supply_desc battery = {
	.name = "BAT0",
	.type = POWER_SUPPLY_TYPE_BATTERY,
	.properties = properties,
	.num_properties = ARRAY_SIZE(properties),
	.get_property = get_property,
	.no_thermal = true,
};

int pl_meters_init(void)
{
	struct powercap_control_type *type;
	char name[PL_NAME_LEN];
	int i;

	zones = kcalloc(pl_nr_packages, sizeof(*zones), GFP_KERNEL);
	type = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (!zones || IS_ERR(type) || !wrap_uj)
		return -EINVAL;
	for (i = 0; i < pl_nr_packages; i++) {
		zones[i].package = i;
		mutex_init(&zones[i].lock);
		snprintf(name, sizeof(name), "package-%d", i);
		if (IS_ERR(powercap_register_zone(&zones[i].zone, type, name, NULL, &zone_ops, 0,
						  &no_limits)))
			return -EINVAL;
	}
	if (battery_uwh && IS_ERR(power_supply_register(pl_device, &battery, NULL)))
		return -EINVAL;
	return 0;
}
