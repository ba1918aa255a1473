#!/usr/bin/env bash
# Three kinds of cores of one cache, each with its clock (phone: CPUs 0-3 small, 4-6 medium, 7 large): the
# ranks are by the kernel's energy model, light work stays on small cores, what does not fit moves on, and
# what uclamp asks for is done; under the kernel's energy-aware scheduling and under ours.
# machine: phone
# timeout: 900
. "$(dirname "$0")/lib.bash"

# What the CPUs $2..$3 are non-idle (%) in the JSON of load $1.
sum() { json_list non_idle_pct <"$1" | awk -v from="$2" -v to="$3" '{ for (i = from; i <= to; i++) s += $(i + 1) } END { print int(s) }'; }

# Load $1 does at least $2 % on the CPUs $3..$4, and at most $5 % elsewhere.
is_on() {
	local there all
	there=$(sum /tmp/load.json "$3" "$4") all=$(sum /tmp/load.json 0 7)
	echo "$system: $1: $there % on CPUs $3-$4, of $all %"
	[ "$there" -ge "$2" ] && [ $((all - there)) -le "$5" ] ||
		fail "$system: $1 is not on CPUs $3-$4: $(json_list non_idle_pct </tmp/load.json)"
}

light() { powerpack-load --json periodic --seconds 4 --settle 2 --phases even '1/20*4' >/tmp/load.json; }
hog() { "$@" powerpack-load --json hogs --seconds 3 --count 1 >/tmp/load.json; }

govern schedutil
[ "$(cut -d' ' -f1 $CPUS/cpufreq/policy*/related_cpus | tr '\n' ' ')" = "0 4 7 " ] ||
	fail "the clocks: $(cat $CPUS/cpufreq/policy*/related_cpus)"
for ((i = 0; i < 50; i++)); do
	[ "$(</proc/sys/kernel/sched_energy_aware)" != 1 ] || break
	nap 0.1
done
[ "$(</proc/sys/kernel/sched_energy_aware)" = 1 ] || fail "energy-aware scheduling is not possible"

system=EEVDF
light
is_on "a light load" 40 0 3 10
hog
is_on "a hog" 75 4 7 30

ranks=$(scx_powerpack topology | awk 'NF == 7 && $1 ~ /^[0-9]+$/ { print $2 }' | tr '\n' ' ')
[ "$ranks" = "0 1 2 3 4 5 6 7 " ] || fail "the ranks are CPUs $ranks, not by energy"
start --mode packing
system=packing
light
is_on "a light load" 40 0 3 10
hog
is_on "a hog" 75 4 7 30
hog uclampset -M 200
is_on "a hog with a uclamp_max of 200" 75 0 3 30
powerpack-load --json periodic --seconds 4 --settle 2 9/25 >/tmp/load.json
is_on "a task of 0.36 of the fastest CPU" 30 4 7 10
uclampset -m 950 powerpack-load --json periodic --seconds 4 --settle 2 4/20 >/tmp/load.json
is_on "a task with a uclamp_min of 950" 15 7 7 10
stop
