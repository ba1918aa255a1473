#!/usr/bin/env bash
# A slower CPU is slower: a loop of so many turns takes longer by what the frequency and the kind
# of core do not give, and all of it is charged to the task.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

# How long (us) the loop takes on CPU $1: the shortest of three, as other CPUs that are busy take of
# its instructions.
loop='begin=${EPOCHREALTIME/./}; for ((i = 0; i < 10000; i++)); do :; done
	echo $((${EPOCHREALTIME/./} - begin))'
turns() { for _ in 1 2 3; do taskset -c "$1" bash -c "$loop"; done | sort -n | head -n 1; }

set_mhz 4 2000
turns 4 >/dev/null
full=$(turns 4)
set_mhz 4 1000
within "$(turns 4)" $((full * 2)) 5 "an A15 at half its frequency (us)"
set_mhz 4 200
within "$(turns 4)" $((full * 10)) 5 "an A15 at a tenth of it (us)"
set_mhz 0 1300
within "$(turns 1)" $((full * 1024 / 260)) 5 "an A7 at its highest (us)"
set_mhz 0 500
within "$(turns 1)" $((full * 1024 * 13 / 260 / 5)) 5 "an A7 at its lowest (us)"

echo "it is charged to the task"
set_mhz 4 500
used=$(taskset -c 4 powerpack-load --json hogs --count 1 --seconds 1 | json_list non_idle_pct | cut -d' ' -f5)
within "$used" 99 2 "non-idle (%) of a CPU with a hog"

echo "a load's work is that of the fastest CPU: 4 ms of it take 16 ms at a quarter of the frequency,"
echo "after half a millisecond to wake the cluster"
response=$(taskset -c 4 powerpack-load --json periodic --seconds 2 4/40 | summary response mean_us)
within "$response" 16500 5 "response (us)"
