#!/usr/bin/env bash
# A machine that says in sysfs that its first two CPUs are small: light work stays on
# them, what does not fit moves on, and what uclamp asks for is done.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

two_kinds_of_cores

# What CPUs 0 and 1, and 2 and 3, are non-idle (%) in the JSON of a load.
small() { json_list non_idle_pct <"$1" | awk '{ print int($1 + $2) }'; }
large() { json_list non_idle_pct <"$1" | awk '{ print int($3 + $4) }'; }

# Load $1 does at least $2 % on the CPUs `$3` and at most $4 % on the others.
is_on() {
	local others=large
	[ "$3" = small ] || others=small
	if [ "$($3 /tmp/load.json)" -lt "$2" ] || [ "$($others /tmp/load.json)" -gt "$4" ]; then
		fail "$1 is not on $3 CPUs: $(cat /tmp/load.json)"
	fi
}

scx_powerpack topology
start --mode packing
powerpack-load periodic --seconds 5 --settle 2 --phases even '1/20*4' >/tmp/load.json
is_on "a light load" 15 small 10
powerpack-load hogs --seconds 4 --count 1 >/tmp/load.json
is_on "a hog" 75 large 30
scx_powerpack mode spread >/dev/null
powerpack-load hogs --seconds 4 --count 2 >/tmp/load.json
is_on "two hogs in spread" 150 large 50
scx_powerpack mode packing >/dev/null
# Debian's cloud kernel for arm64 is built without.
if ! uclampset -m 0 true 2>/dev/null; then
	stop
	skip "this kernel has no uclamp; all else of the test has passed"
fi
uclampset -M 300 powerpack-load hogs --seconds 4 --count 1 >/tmp/load.json
is_on "a hog with a uclamp_max of 300" 75 small 30
uclampset -m 800 powerpack-load periodic --seconds 5 --settle 2 4/20 >/tmp/load.json
is_on "a task with a uclamp_min of 800" 15 large 10
stop
