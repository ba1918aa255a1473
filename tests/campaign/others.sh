#!/usr/bin/env bash
# Other people's tests, unchanged, under the kernel's scheduler and under each of our modes: a line
# "figure: SYSTEM PROGRAM pass|fail VALUE" each. Fails if one passes under the kernel's scheduler and not under ours.
. "$TREE/tests/vm/lib.bash"

SYSTEMS=(eevdf packing balance spread energy auto)
SECONDS_EACH=1
RT_APP=/usr/share/doc/rt-app/examples

# The line that sched-ext's own CI stresses a scheduler with, stress-ng's scheduler class one by one,
# rt-tests, what perf measures schedulers with, and rt-app's files: a name, what is taken of what it prints, and a
# command. Of these files the version in Debian cannot read that of the video, and cpufreq_governor_efficiency
# compares governors, which a VM does not have.
programs() {
	local stressor file
	echo "scx-ci|nothing|stress-ng --fork 4 --affinity 4 --affinity-pin --timeout $SECONDS_EACH"
	for stressor in $(stress-ng --class scheduler? | sed 's/.*stressors://'); do
		echo "stress-ng-$stressor|rate|stress-ng --$stressor 2 --timeout $SECONDS_EACH --metrics-brief"
	done
	echo "cyclictest|longest|cyclictest -q -t -p 80 -D ${SECONDS_EACH}s"
	echo "signaltest|longest|signaltest -q -t 2 -p 80 -D ${SECONDS_EACH}s"
	echo "ptsematest|longest|ptsematest -q -S -p 80 -D ${SECONDS_EACH}s"
	echo "pi_stress|nothing|pi_stress -q --duration=$SECONDS_EACH --groups=2"
	# Its limit is 1 ms where a CPU is as fast as its clock; in slow virtual time, in which the campaign
	# runs, a program takes four times as long: there 22 of 25 runs fail under the kernel's scheduler.
	echo "rt-migrate-test|nothing|rt-migrate-test -c -p 10 -l 10 -m 4000"
	echo "hackbench-pipes|time|hackbench -p -g 2 -l 200"
	echo "hackbench-sockets|time|hackbench -g 2 -l 200"
	echo "hackbench-threads|time|hackbench -T -g 2 -l 200"
	echo "perf-messaging|time|perf bench sched messaging -g 2 -l 200"
	echo "perf-pipe|round_trip|perf bench sched pipe -l 5000"
	for file in mp3-short browser-short spreading-tasks; do
		echo "rt-app-$file|wake_latency|rt-app $RT_APP/$file.json"
	done
}

# A figure, with its unit, of what a program printed, which is in "printed", or wrote.
take_nothing() { :; }
take_rate() { awk '$2 == "metrc:" && NF > 8 && $5 ~ /^[0-9]+$/ { printf "%.4g/s", $(NF - 1) }' printed; }
take_longest() { sed -n 's/.*Max:* *\([0-9]*\).*/\1/p' printed | sort -n | sed -n '$s/$/ us/p'; }
take_time() { sed -n 's/.*[Tt]ime: *\([0-9.]*\).*/\1 s/p' printed; }
take_round_trip() { sed -n 's/ *\([0-9.]*\) usecs.op/\1 us/p' printed; }
# How late its timers wake rt-app's threads, the last column of its logs: the 99th percentile.
take_wake_latency() {
	awk '!/^#/ && $NF > 0 { print $NF }' ./*.log | sort -n |
		awk '{ late[NR] = $1 } END { if (NR) print late[int((99 * NR + 99) / 100)] " us" }'
}

# Whether command $1 passes, in a directory of its own.
passes() {
	rm -rf /tmp/other
	mkdir /tmp/other
	cd /tmp/other || exit
	# shellcheck disable=SC2086 # a list of words
	timeout -k 5 120 $1 >printed 2>&1
}

declare -A passed
lost=0
for system in "${SYSTEMS[@]}"; do
	[ "$system" = eevdf ] || start --mode "$system"
	while IFS='|' read -r name taken command; do
		verdict=fail
		! passes "$command" || verdict=pass
		echo "figure: $system $name $verdict $("take_$taken")"
		[ "$system" != eevdf ] || passed[$name]=$verdict
		if [ $verdict = fail ] && [ "${passed[$name]}" = pass ]; then
			lost=$((lost + 1))
			echo "$name under $system:" && tail -n 5 printed
		fi
		[ "$system" = eevdf ] || [ "$(<$SCX/state)" = enabled ] || fail "$name ended the scheduler: $(cat $LOG)"
	done < <(programs)
	[ "$system" = eevdf ] || stop
done
[ $lost = 0 ] || fail "$lost pass under the kernel's scheduler and not under ours"
echo "ok      others"
