#!/usr/bin/env bash
# Cpusets are packed as the machine is: a light load in one of three of four CPUs keeps one awake. A
# ceiling holds for tasks in them as far as they have a CPU below it, and status names those without one.
# A partition that is made while the scheduler runs keeps its CPU to itself, and what is
# outside is packed as before.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

echo +cpuset +cpu >$CGROUPS/cgroup.subtree_control

# A cpuset $1 of CPUs $2.
cpuset() {
	mkdir -p "$CGROUPS/$1"
	echo "$2" >"$CGROUPS/$1/cpuset.cpus"
}

# The light load in cgroup $1 keeps one CPU awake: the others, but for CPU $2, have $3 (0.1) % in all.
light_is_packed_in() {
	run_in "$1" powerpack-load workload --seconds 10 light >/tmp/light.json
	json_list non_idle_pct </tmp/light.json | awk -v but="${2:--1}" -v max_pct="${3:-0.1}" '{
		for (i = 1; i <= NF; i++) if (i != but + 1) { all += $i; if ($i > max) max = $i }
		print "non-idle " $0 " %; beyond the busiest " all - max
		exit !(all - max <= max_pct)
	}' || fail "the light load in $1: $(cat /tmp/light.json)"
}

start --mode packing
cpuset three 0-2
light_is_packed_in three
cpuset last 2-3
light_is_packed_in last

echo "changed while its tasks wait"
run_in three powerpack-load hogs --seconds 4 --count 5 >/tmp/hogs.json &
nap 1
echo 1-2 >$CGROUPS/three/cpuset.cpus
nap 1
echo 0,3 >$CGROUPS/three/cpuset.cpus
wait $! || fail "hogs whose cpuset changes: $(cat /tmp/hogs.json)"

echo "a ceiling"
cpuset three 0-2
scx_powerpack mode packing --max-cores 2 >/dev/null
run_in last powerpack-load hogs --seconds 8 --count 1 >/tmp/above.json &
above=$!
run_in three powerpack-load hogs --seconds 4 --count 4 >/tmp/hogs.json
[ "$(busy /tmp/hogs.json 0)" -ge 90 ] && [ "$(busy /tmp/hogs.json 1)" -ge 90 ] ||
	fail "the CPUs below the ceiling are not busy: $(cat /tmp/hogs.json)"
status_says '^above the ceiling, as their cpuset has no CPU below: last$' || fail "status: $(cat /tmp/status)"
wait $above || fail "the hog of CPUs 2 and 3 above the ceiling: $(cat /tmp/above.json)"
scx_powerpack mode packing --max-cores all >/dev/null

echo "a partition"
rmdir $CGROUPS/three $CGROUPS/last
cpuset alone 1
echo root >$CGROUPS/alone/cpuset.cpus.partition
[[ $(<$CGROUPS/alone/cpuset.cpus.partition) == root ]] || fail "no partition: $(<$CGROUPS/alone/cpuset.cpus.partition)"
run_in alone powerpack-load hogs --seconds 16 --count 2 >/tmp/alone.json &
alone=$!
nap 2
status_says '^ *[0-9]* *1  isolated' || fail "status does not show the partition: $(cat /tmp/status)"
# What the hogs do takes the emulated machine's time from the others, so they use more.
light_is_packed_in . 1 5
wait $alone || fail "the hogs in the partition: $(cat /tmp/alone.json)"
[ "$(json_list cpu_s </tmp/alone.json | awk '{ print ($1 + $2 > 14) }')" = 1 ] || fail "they had $(cat /tmp/alone.json)"
echo member >$CGROUPS/alone/cpuset.cpus.partition
powerpack-load hogs --seconds 3 --count 4 >/tmp/hogs.json
status_says isolated && fail "status shows a partition that is gone: $(cat /tmp/status)"
[ "$(used /tmp/hogs.json 50)" = 0123 ] || fail "four hogs use CPUs $(used /tmp/hogs.json 50)"
rmdir $CGROUPS/alone
stop
