#!/usr/bin/env bash
# A task that may run on two CPUs goes on at once on the other one, which is idle, where a real-time task that
# nobody knew of takes the one that it runs on: whatever has ticks meanwhile may not run it.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

cat >/tmp/take.bash <<'BASH'
# Goes to the CPU on which thread $1 of process $2 runs, says so, and keeps it for two seconds.
cpu=$(awk '{ print $39 }' "/proc/$2/task/$1/stat")
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
: >/tmp/taken
until [ $((${EPOCHREALTIME/./} - begin)) -ge 2000000 ]; do :; done
BASH

cat >/tmp/leave.bash <<'BASH'
# Keeps the other one of CPUs 2 and 3 until the hog's is taken; a second at most, as who starts the other
# real-time task may be caught behind this one (docs/how-it-decides.md).
cpu=$(awk '{ print 5 - $39 }' "/proc/$2/task/$1/stat")
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
until [ -e /tmp/taken ] || [ $((${EPOCHREALTIME/./} - begin)) -ge 1000000 ]; do :; done
BASH

# A hog that may be on CPUs 2 and 3 has its CPU taken after a second, for two. With $2 the other one is
# another real-time task's until then: it goes idle after the hog was put in a queue, and looks once.
taken_from_hog() {
	local hog thread others=()
	rm -f /tmp/taken
	taskset -c 2,3 powerpack-load hogs --count 1 --seconds 4 >/tmp/hog.json &
	hog=$!
	nap 0.7
	thread=$(ls /proc/$hog/task | tail -n 1)
	if [ -n "${2:-}" ]; then
		taskset -c 0,1 chrt -f 10 bash /tmp/leave.bash "$thread" $hog &
		others+=($!)
	fi
	nap 0.3
	taskset -c 0,1 chrt -f 10 bash /tmp/take.bash "$thread" $hog &
	wait $hog $! "${others[@]}"
	echo "$1: a hog has $(json_list cpu_s </tmp/hog.json) of 4 s"
	# 3.98, as under the kernel's scheduler; 3.05 and 1.99 if it waits for the kernel to save it.
	[ "$(json_list cpu_s </tmp/hog.json | awk '{ print ($1 > 3.8) }')" = 1 ] ||
		fail "$1 a hog waits for a real-time task: $(cat /tmp/hog.json)"
}

start --mode packing
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	for _ in 1 2; do taken_from_hog "in $mode"; done
	taken_from_hog "in $mode, the other CPU not idle at first" other
done
stop
start --mode packing --max-cores 2
taken_from_hog "above the ceiling"
taken_from_hog "above the ceiling, the other CPU not idle at first" other
stop
