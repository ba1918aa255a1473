#!/usr/bin/env bash
# In the VM: run the loads under each scheduler, interleaved, and write a line
# of JSON for each measurement. Arguments: the output file, the number of runs,
# the rows, the schedulers (both separated by commas).
set -euo pipefail
out=$1
runs=$2
rows=${3//,/ }
schedulers=${4//,/ }
scx=/sys/kernel/sched_ext

wants() { [[ " $rows " == *" $1 "* ]]; }

emit() { printf '{"run":%s,"sched":"%s","row":"%s","data":%s}\n' "$run" "$sched" "$1" "$2" >>"$out"; }

command_of() {
	case $1 in
	packing | spread) echo "scx_powerpack --mode $1" ;;
	bpfland) echo "scx_bpfland -m powersave" ;;
	lavd) echo "scx_lavd --powersave" ;;
	esac
}

# Start scheduler $1 (eevdf: none) and wait until it is in charge.
start() {
	local begin
	pid=''
	[ "$1" = eevdf ] && return
	begin=$(date +%s%N)
	$(command_of "$1") >/tmp/sched.log 2>&1 &
	pid=$!
	until [ "$(cat $scx/state)" = enabled ]; do
		if ! kill -0 $pid 2>/dev/null; then
			emit failed "\"$(tail -n 1 /tmp/sched.log | tr -d '"\\')\""
			return 1
		fi
		sleep 0.01
	done
	if wants load; then
		emit load "{\"ms\":$((($(date +%s%N) - begin) / 1000000))}"
	fi
	sleep 2
}

stop() {
	[ -n "$pid" ] || return 0
	kill -INT "$pid"
	wait "$pid" || true
	[ "$(cat $scx/state)" = disabled ]
}

agent_at_rest() {
	local before after rss
	before=$(awk '{ print $14 + $15 }' /proc/"$pid"/stat)
	sleep 10
	after=$(awk '{ print $14 + $15 }' /proc/"$pid"/stat)
	rss=$(awk '/VmRSS/ { print $2 }' /proc/"$pid"/status)
	# A clock tick is 10 ms; 10 s of them are 1000.
	emit agent "{\"cpu_pct\":$(((after - before) * 100 / 1000)),\"ticks\":$((after - before)),\"rss_kib\":$rss}"
}

# Under the light load: from spread to packing; how long, and when the surplus
# CPUs have run their last.
switch_mode() {
	local took
	scx_powerpack mode spread >/dev/null
	powerpack-load light --seconds 3 >/tmp/drain.json &
	sleep 1.5
	took=$(scx_powerpack mode packing | sed 's/[^0-9]*\([0-9]*\) us.*/\1/')
	emit switch "{\"took_us\":$took,\"drained_ms\":$(drained_ms)}"
	wait $!
	scx_powerpack mode "$sched" >/dev/null
}

# After how many steps of 10 ms all CPUs but the busiest stay unused (for 200 ms).
drained_ms() {
	local step last=0 before after
	before=$(busy_cpus)
	for step in $(seq 1 30); do
		sleep 0.01
		after=$(busy_cpus)
		[ "$(used "$before" "$after")" -le 1 ] || last=$step
		before=$after
	done
	echo $((last * 10))
}

busy_cpus() { awk '/^cpu/ { printf "%s ", $8 }' /proc/schedstat; }

# How many CPUs ran for more than 0.2 ms between two readings.
used() { echo "$1 | $2" | awk '{ n = (NF - 1) / 2; for (i = 1; i <= n; i++) if ($(n + 1 + i) - $i > 200000) used++; print used + 0 }'; }

measure() {
	local load
	for load in light:15 tiny:10 mixed:10 wake:10 interrupts:10; do
		if wants "${load%:*}"; then
			emit "${load%:*}" "$(powerpack-load "${load%:*}" --seconds "${load#*:}")"
		fi
	done
	if wants pipe; then
		emit pipe_pinned "$(powerpack-load pipe --rounds 3000 --pin 1)"
		emit pipe_free "$(powerpack-load pipe --rounds 3000)"
	fi
	if wants hackbench; then
		emit hackbench "{\"seconds\":$(hackbench -g 2 -l 200 | awk '/Time/ { print $2 }')}"
	fi
	if wants hogs; then
		emit hogs "$(powerpack-load hogs --count 8 --seconds 10)"
	fi
	if wants agent && [[ $sched == packing ]]; then agent_at_rest; fi
	if wants switch && [[ $sched == packing ]]; then switch_mode; fi
}

# The peers' BPF objects ask for the kernel's configuration; ours do not.
mount -t tmpfs tmpfs /boot
cp "$CACHE/kernels/7/config" "/boot/config-$(uname -r)"

sleep 3
for run in $(seq "$runs"); do
	for sched in $schedulers; do
		start "$sched" || continue
		measure
		stop
	done
done
