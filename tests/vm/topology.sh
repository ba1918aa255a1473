#!/usr/bin/env bash
# Two sockets of two cores of two threads: ranks fill a core, then a package;
# packing stays on the first, spread uses whole cores first, a ceiling is one of cores. In virtual
# time: on a busy host what else runs there would be on the other CPUs.
# Linux 6.12 itself warns in its deadline server when a CPU goes offline.
# vm: --slow-virtual-time --topology sockets=2,cores=2,threads=2
# expect-dmesg: kernel/sched/deadline.c
. "$(dirname "$0")/lib.bash"

scx_powerpack topology | tee /tmp/topology
grep -q '8 CPUs, 4 cores online' /tmp/topology || fail "the topology is not 2 x 2 x 2"
cores=$(awk 'NR > 3 { print $3 }' /tmp/topology | uniq | wc -l)
packages=$(awk 'NR > 3 { print $5 }' /tmp/topology | uniq | wc -l)
[ "$cores" = 4 ] || fail "a core is not filled before the next"
[ "$packages" = 2 ] || fail "a package is not filled before the next"
refused 'out of range.*1\.\.4' scx_powerpack --max-cores 5

# What the CPUs of each core are non-idle together (%) in the JSON of load $1, a core a
# line: the first of its CPUs, the sum.
by_core() {
	local cpu=0 pct
	for pct in $(json_list non_idle_pct <"$1"); do
		echo "$(cut -d, -f1 /sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list |
			cut -d- -f1) $pct"
		cpu=$((cpu + 1))
	done | awk '{ sum[$1] += $2 } END { for (core in sum) print core, int(sum[core]) }' | sort -n
}

start --mode packing
powerpack-load hogs --seconds 2 --count 12 >/tmp/hogs.json
for pct in $(json_list non_idle_pct </tmp/hogs.json); do
	[ "${pct%.*}" -ge 60 ] || fail "12 hogs leave a CPU idle: $(cat /tmp/hogs.json)"
done
scx_powerpack mode spread >/dev/null
# They wake at the same instant: each finds a whole core, where by nearness they would share two.
powerpack-load periodic --seconds 3 --settle 1 '6/20*4' >/tmp/load.json
scx_powerpack status
[ "$(by_core /tmp/load.json | wc -l)" = 4 ] || fail "not four cores: $(by_core /tmp/load.json)"
by_core /tmp/load.json | while read -r core pct; do
	[ "$pct" -ge 20 ] && [ "$pct" -le 45 ] ||
		fail "in spread core $core has $pct %, not a task of its own: $(cat /tmp/load.json)"
done
powerpack-load hogs --seconds 2 --count 4 >/tmp/hogs.json
# Two on a core would be 200 % there and nothing on another.
by_core /tmp/hogs.json | while read -r core pct; do
	[ "$pct" -ge 70 ] && [ "$pct" -le 130 ] ||
		fail "in spread core $core has $pct %, not a hog of its own: $(cat /tmp/hogs.json)"
done
stop
start --mode packing --max-cores 2
powerpack-load hogs --seconds 2 --count 8 >/tmp/hogs.json
[[ $(scx_powerpack status --json) == *'"max_cores":2'* ]] || fail "status reports no ceiling"
# Two cores of two threads, the first ones by rank.
below=$(scx_powerpack topology | awk 'NR > 3 { print $2 }' | head -n 4 | sort -n | tr -d '\n')
[ "$(used /tmp/hogs.json 60)" = "$below" ] || fail "not all of CPUs $below work: $(cat /tmp/hogs.json)"
[ "$(used /tmp/hogs.json 10)" = "$below" ] || fail "others than CPUs $below work: $(cat /tmp/hogs.json)"

echo "cores of one thread each are as many"
echo off >/sys/devices/system/cpu/smt/control
powerpack-load hogs --seconds 3 --count 4 >/tmp/hogs.json
# Of the CPUs that are online, which are the first of each core, the first two.
[ "$(used /tmp/hogs.json 60)" = 01 ] || fail "not the first two cores work: $(cat /tmp/hogs.json)"
[ "$(used /tmp/hogs.json 10)" = 01 ] || fail "others than the first two cores work: $(cat /tmp/hogs.json)"
echo on >/sys/devices/system/cpu/smt/control
stop
