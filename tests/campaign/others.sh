#!/usr/bin/env bash
# Other people's tests, unchanged, under the kernel's scheduler and under each of our modes: a line
# "figure: SYSTEM PROGRAM pass|fail" each. Fails if one passes under the kernel's scheduler and not under ours.
. "$TREE/tests/vm/lib.bash"

SYSTEMS=(eevdf packing balance spread energy)
SECONDS_EACH=1

# The line that sched-ext's own CI stresses a scheduler with, stress-ng's scheduler class one by one, and
# rt-tests: a name, and a command.
programs() {
	local stressor
	echo "scx-ci|stress-ng --fork 4 --affinity 4 --affinity-pin --timeout $SECONDS_EACH"
	for stressor in $(stress-ng --class scheduler? | sed 's/.*stressors://'); do
		echo "stress-ng-$stressor|stress-ng --$stressor 2 --timeout $SECONDS_EACH"
	done
	echo "cyclictest|cyclictest -q -t -p 80 -D ${SECONDS_EACH}s"
	echo "signaltest|signaltest -q -t 2 -p 80 -D ${SECONDS_EACH}s"
	echo "ptsematest|ptsematest -q -S -p 80 -D ${SECONDS_EACH}s"
	echo "pi_stress|pi_stress -q --duration=$SECONDS_EACH --groups=2"
	# Its limit is 1 ms where a CPU is as fast as its clock; in slow virtual time, in which the campaign
	# runs, a program takes four times as long: there 22 of 25 runs fail under the kernel's scheduler.
	echo "rt-migrate-test|rt-migrate-test -c -p 10 -l 10 -m 4000"
	echo "hackbench-pipes|hackbench -p -g 2 -l 200"
	echo "hackbench-sockets|hackbench -g 2 -l 200"
	echo "hackbench-threads|hackbench -T -g 2 -l 200"
}

# Whether command $1 passes; what it printed is in /tmp/other.
passes() {
	# shellcheck disable=SC2086 # a list of words
	timeout -k 5 60 $1 >/tmp/other 2>&1
}

declare -A passed
lost=0
for system in "${SYSTEMS[@]}"; do
	[ "$system" = eevdf ] || start --mode "$system"
	while IFS='|' read -r name command; do
		verdict=fail
		! passes "$command" || verdict=pass
		echo "figure: $system $name $verdict"
		[ "$system" != eevdf ] || passed[$name]=$verdict
		if [ $verdict = fail ] && [ "${passed[$name]}" = pass ]; then
			lost=$((lost + 1))
			echo "$name under $system:" && tail -n 5 /tmp/other
		fi
		[ "$system" = eevdf ] || [ "$(<$SCX/state)" = enabled ] || fail "$name ended the scheduler: $(cat $LOG)"
	done < <(programs)
	[ "$system" = eevdf ] || stop
done
[ $lost = 0 ] || fail "$lost pass under the kernel's scheduler and not under ours"
echo "ok      others"
