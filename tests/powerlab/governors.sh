#!/usr/bin/env bash
# The kernel's governors and its energy-aware scheduling run as on silicon.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

hog() { powerpack-load hogs --count 1 --pin "$1" --seconds "$2" >/dev/null; }

# The clock of CPU 4 is $1 MHz while it computes, and at most $2 when it has been idle.
rises_and_falls() {
	local high low
	hog 4 1 &
	nap 0.5
	high=$(mhz_of 4)
	wait $!
	nap 0.5
	# An idle CPU asks for nothing: something short must run.
	taskset -c 4 true
	nap 0.1
	low=$(mhz_of 4)
	echo "$3: $high MHz, then $low"
	[ "$high" -ge "$1" ] && [ "$low" -le "$2" ] || fail "$3: $high MHz, then $low; not $1 and $2"
}

for governor in schedutil ondemand; do
	govern $governor
	rises_and_falls 2000 1000 $governor
done
govern performance
[ "$(mhz_of 0) $(mhz_of 4)" = "1300 2000" ] || fail "performance: $(mhz_of 0), $(mhz_of 4)"
govern powersave
[ "$(mhz_of 0) $(mhz_of 4)" = "500 200" ] || fail "powersave: $(mhz_of 0), $(mhz_of 4)"

echo "energy-aware scheduling is on with schedutil, and puts a small task on an A7"
govern schedutil
for ((i = 0; i < 50; i++)); do
	[ "$(cat /proc/sys/kernel/sched_energy_aware)" != 1 ] || break
	nap 0.1
done
[ "$(cat /proc/sys/kernel/sched_energy_aware)" = 1 ] || fail "energy-aware scheduling is not possible"
powerpack-load --json periodic --seconds 4 --settle 2 1/20 >/tmp/load
echo "non-idle (%): $(json_list non_idle_pct </tmp/load)"
case $(used /tmp/load 3) in
[0-3]) ;;
*) fail "it ran on $(used /tmp/load 3)" ;;
esac
powerpack-load --json periodic --seconds 4 --settle 2 9/20 >/tmp/load
echo "non-idle (%): $(json_list non_idle_pct </tmp/load)"
case $(used /tmp/load 10) in
*[4-7]*) ;;
*) fail "a large one ran on $(used /tmp/load 10)" ;;
esac
