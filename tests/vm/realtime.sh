#!/usr/bin/env bash
# Real-time tasks take most of the lowest ranks: who was packed there goes on elsewhere,
# and what they take is no capacity of ours.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# A real-time task on CPU $1 for $2 s: 7 ms of every 10.
real_time() { chrt -f 10 taskset -c "$1" powerpack-load periodic --seconds "$2" 7/10 >/dev/null & }

start --mode packing
real_time 0 6
first=$!
real_time 1 6
second=$!
powerpack-load periodic --seconds 5 --settle 1 --phases even '2/20*8' >/tmp/load.json &
load=$!
nap 3
scx_powerpack status --json >/tmp/status
wait $load $first $second
# The first two have 60 % left between them: the set needs a third CPU to carry the load's 80, and
# has it before anybody must spill: 19 to 39 times, in 3 s. Sized as if real-time tasks used
# nothing the set grew by spills alone: 126 to 512 times (six runs each, both kernels).
[ "$(json active_cpus </tmp/status)" -ge 3 ] || fail "it reckons with what real-time tasks use: $(</tmp/status)"
[ "$(json spill </tmp/status)" -lt 80 ] || fail "the set grows by spills: $(</tmp/status)"
# Nobody waits for a real-time task to end, 7 ms, but for the budget, 5 ms, and a tick at most.
[ "$(json max_delay_us </tmp/load.json | cut -d. -f1)" -lt 9000 ] || fail "a task waits for real-time tasks: $(cat /tmp/load.json)"
# Real-time tasks count as non-idle time.
for pct in $(grep -o '"non_idle_pct":[0-9]*' /tmp/status | head -n 2 | cut -d: -f2); do
	[ "$pct" -ge 40 ] || fail "status does not tell of real-time tasks: $(</tmp/status)"
done

echo "one that comes to where a hog runs does not keep it from running"
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	powerpack-load hogs --count 1 --seconds 4 >/tmp/hog.json &
	hog=$!
	sleep 0.5
	for cpu in 0 1 2; do real_time $cpu 3; done
	wait $hog
	# Where it stays it loses half of the time.
	[ "$(json_list cpu_s </tmp/hog.json | awk '{ print ($1 > 2.8) }')" = 1 ] ||
		fail "in $mode a hog waits for real-time tasks: $(cat /tmp/hog.json)"
done
stop
