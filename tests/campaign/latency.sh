#!/usr/bin/env bash
# How late a real-time thread on each CPU wakes, by cyclictest: alone, beside twice as many hogs as CPUs, and beside
# tasks that send each other messages. latency.sh SYSTEM..: a line "figure: LOAD SYSTEM MEAN LONGEST" (us) for each scheduler.
. "$TREE/tests/vm/lib.bash"

SECONDS_EACH=10

# What runs beside the real-time threads until it is killed: a name, and a command.
loads() {
	echo 'alone|sleep 1000'
	echo "hogs|powerpack-load hogs --seconds 1000 --count $((2 * $(nproc)))"
	echo 'messages|hackbench -g 2 -l 10000000'
}

# Mean and longest latency of all threads.
latencies() {
	cyclictest -q -m -S -p 80 -i 1000 -D ${SECONDS_EACH}s |
		sed -n 's/.*Avg: *\([0-9]*\) .*Max: *\([0-9]*\).*/\1 \2/p' |
		awk '{ sum += $1; if ($2 > longest) longest = $2 } END { if (!NR) exit 1; printf "%.0f %d\n", sum / NR, longest }'
}

for system; do
	[ "$system" = eevdf ] || start --mode "$system"
	while IFS='|' read -r load command; do
		# shellcheck disable=SC2086 # a list of words
		setsid $command >/dev/null 2>&1 &
		beside=$!
		nap 1
		got=$(latencies) || fail "cyclictest beside $load under $system"
		[ "$system" = eevdf ] || [ "$(<$SCX/state)" = enabled ] || fail "$load ended the scheduler: $(cat $LOG)"
		echo "figure: $load $system $got"
		kill -KILL -- -$beside
		wait $beside 2>/dev/null || true
	done < <(loads)
	[ "$system" = eevdf ] || stop
done
echo "ok      latency"
