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
powerpack-load periodic --seconds 5 --settle 1 --phases even '2/20*8' >/tmp/load.json
scx_powerpack status
wait $first $!
# The first two have 60 % left between them, in pieces of 3 ms, which take up to half of the
# work; the third does the rest, and the fourth what would have to wait too long.
read -r _ _ third fourth < <(json_list non_idle_pct </tmp/load.json)
[ $((${third%.*} + ${fourth%.*})) -ge 30 ] || fail "CPUs 2 and 3 do not do the work: $(cat /tmp/load.json)"
[ "${third%.*}" -gt "${fourth%.*}" ] || fail "CPU 3 does more than CPU 2: $(cat /tmp/load.json)"
# Real-time tasks count as non-idle time.
status=$(scx_powerpack status --json | grep -o '"non_idle_pct":[0-9]*' | head -n 2 | cut -d: -f2)
for pct in $status; do [ "$pct" -ge 40 ] || fail "status does not tell of real-time tasks: $status"; done

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
