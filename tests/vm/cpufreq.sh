#!/usr/bin/env bash
# Where there is cpufreq the scheduler asks for the performance that its CPUs need: all for a
# hog, less for what needs less, the floor for what is idle. A VM has no cpufreq: a copy of its
# sysfs with a policy in it makes the programs load with that code, and run it on this kernel,
# though nothing reads it.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

prefix=$(mktemp -d)
mkdir -p "$prefix/sys/devices/system"
cp -r /sys/devices/system/{cpu,node} "$prefix/sys/devices/system/" 2>/dev/null || true
# Of 1024: FLOOR_DEFAULT_PCT (src/machine/power_model.rs), as there is no energy model.
FLOOR=563

# The performance target of CPU $1: as `status` reports it now.
target() {
	scx_powerpack status --json |
		grep -o "\"cpu\":$1,[^}]*\"perf_target\":[0-9a-z]*" | sed 's/.*://'
}

# Of twenty looks while load $3.. runs, pinned to CPU 3, its target is at least $2 times in the
# range $1 (FROM-TO), and above it a third as often at most: for threads of the kernel that are
# not known yet. (While it is idle the target is the floor.)
is_asked() {
	local range=$1 times=$2 load target in=0 above=0 targets=''
	shift 2
	taskset -c 3 powerpack-load "$@" >/dev/null &
	load=$!
	sleep 1
	for _ in {1..20}; do
		target=$(target 3)
		targets+=" $target"
		[ "$target" -le "${range#*-}" ] || above=$((above + 1))
		[ "$target" -lt "${range%-*}" ] || [ "$target" -gt "${range#*-}" ] || in=$((in + 1))
		sleep 0.11
	done
	[ $in -ge "$times" ] && [ $((3 * above)) -le $in ] ||
		fail "for $* CPU 3 is asked for$targets, not $times times $range"
	wait $load
}

# Of ten looks the target of CPU 3, which is $1, is the floor seven times: a thread of the kernel that is
# not known yet may run at any of them.
is_at_floor() {
	local at=0 targets=''
	for _ in {1..10}; do
		targets+=" $(target 3)"
		[ "${targets##* }" != $FLOOR ] || at=$((at + 1))
		sleep 0.05
	done
	[ $at -ge 7 ] || fail "of a CPU that is $1 it asks for$targets, not $FLOOR"
}

start
powerpack-load workload --seconds 1 light --json >/dev/null
[ "$(target 3)" = null ] || fail "it asks for frequencies that there are not: $(target 3)"
stop
mkdir -p "$prefix/sys/devices/system/cpu/cpufreq/policy0"
SCX_SYSFS_PREFIX=$prefix start
sleep 1
is_at_floor idle
is_asked 1024-1024 18 hogs --seconds 10 --count 1
sleep 0.5
is_at_floor 'idle again'
# A tenth: the floor is more than that and its margin.
is_asked $FLOOR-$FLOOR 18 periodic --seconds 10 2/20
# Six tenths, 614, and a quarter more, as is seen at ticks; less a sixteenth of its capacity, by which a
# target does not change (PP_PERF_STEP_DIV). Never less than it uses.
is_asked 640-900 7 periodic --seconds 10 6/10
stop
