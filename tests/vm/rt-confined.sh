#!/usr/bin/env bash
# A task that may run on two CPUs goes on at once on the other one, which is idle, where a real-time task that
# nobody knew of takes the one that it runs on: whatever has ticks meanwhile may not run it.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

cat >/tmp/take.bash <<'BASH'
# Goes to the CPU on which thread $1 of process $2 runs, and keeps it for two seconds.
cpu=$(awk '{ print $39 }' "/proc/$2/task/$1/stat")
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
until [ $((${EPOCHREALTIME/./} - begin)) -ge 2000000 ]; do :; done
BASH

# A hog that may be on CPUs 2 and 3 has its CPU taken after a second, for two.
taken_from_hog() {
	local hog real_time
	taskset -c 2,3 powerpack-load hogs --count 1 --seconds 4 >/tmp/hog.json &
	hog=$!
	nap 1
	taskset -c 0,1 chrt -f 10 bash /tmp/take.bash "$(ls /proc/$hog/task | tail -n 1)" $hog &
	real_time=$!
	wait $hog $real_time
	echo "$1: a hog has $(json_list cpu_s </tmp/hog.json) of 4 s"
	# 3.98, as under the kernel's scheduler; 3.05 and 1.99 if it waits for the kernel to save it.
	[ "$(json_list cpu_s </tmp/hog.json | awk '{ print ($1 > 3.8) }')" = 1 ] ||
		fail "$1 a hog waits for a real-time task: $(cat /tmp/hog.json)"
}

start --mode packing
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	for _ in 1 2; do taken_from_hog "in $mode"; done
done
stop
start --mode packing --max-cores 2
taken_from_hog "above the ceiling"
stop
