#!/usr/bin/env bash
# In the VM: run the loads under each scheduler, the schedulers in turn, and
# write a line of JSON for each measurement.
# Arguments: the output file, the number of runs, the rows and the schedulers
# (both separated by commas), what to multiply the loads' seconds by (1).
# BENCH_BIN, if set, holds the programs to be measured.
set -euo pipefail
out=$1
runs=$2
rows=${3//,/ }
schedulers=${4//,/ }
scale=${5:-1}
export PATH="${BENCH_BIN:+$BENCH_BIN:}$PATH"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/schedulers.bash"

wants() { [[ " $rows " == *" $1 "* ]]; }

scaled() { awk -v s="$1" -v scale="$scale" 'BEGIN { print s * scale }'; }

emit() { printf '{"run":%s,"sched":"%s","row":"%s","data":%s}\n' "$run" "$sched" "$1" "$2" >>"$out"; }

# Text as a JSON string; what would need escapes (134: a backslash) is left out.
quoted() { printf '"%s"' "$(printf '%s' "$1" | tr -d '"\134' | tr -s '[:cntrl:]' ' ')"; }

failed() { emit failed "$(quoted "$1")"; }

# Start scheduler $1, and note how long it took to load.
start() {
	start_scheduler "$1" || return 1
	[ -z "$load_us" ] || ! wants load ||
		emit load "{\"ms\":$((load_us / 1000)).$((load_us / 100 % 10))}"
}

# CPU time (ns) of all threads of process $1, exact where ticks are not.
cpu_ns() { awk '{ ns += $1 } END { printf "%.0f", ns }' /proc/"$1"/task/*/schedstat; }

agent_at_rest() {
	local before after rss seconds=10
	nap 1
	before=$(cpu_ns "$pid")
	nap $seconds
	after=$(cpu_ns "$pid")
	rss=$(awk '/VmRSS/ { print $2 }' /proc/"$pid"/status)
	# The total shows that a difference of nothing is no failure to count.
	emit agent "{\"cpu_ns\":$((after - before)),\"total_ns\":$after,\"seconds\":$seconds,\"rss_kib\":$rss}"
}

# Under the light load, from spread to packing: how long, and when the surplus
# CPUs have run their last.
switch_mode() {
	local loads seq
	loads=$(cat $scx/enable_seq)
	scx_powerpack mode spread >/dev/null
	emit switch "$(powerpack-load drain --seconds 4 -- scx_powerpack mode packing)"
	seq=$(cat $scx/enable_seq)
	[ "$loads" = "$seq" ] || give_up "enable_seq went from $loads to $seq"
}

# Several at once would be measured as one: none of these overlap.
measure() {
	local load times
	for load in light:15 tiny:10 mixed:10 short:10; do
		! wants "${load%:*}" ||
			emit "${load%:*}" "$(powerpack-load workload --seconds "$(scaled "${load#*:}")" "${load%:*}")"
	done
	! wants interrupts || emit interrupts "$(powerpack-load interrupts --seconds "$(scaled 10)")"
	if wants pipe; then
		emit pipe_pinned "$(powerpack-load pipe --rounds 2000 --pin 1)"
		emit pipe_free "$(powerpack-load pipe --rounds 2000)"
	fi
	! wants work || emit work "$(powerpack-load hogs --count 8 --seconds "$(scaled 3)")"
	if wants hackbench; then
		# Several, because EEVDF's differ by a tenth.
		for times in 1 2 3; do
			emit hackbench "{\"seconds\":$(hackbench -g 2 -l 200 | awk '/Time/ { print $2 }'),\"nth\":$times}"
		done
	fi
	if [ "$sched" = packing ]; then
		! wants agent || agent_at_rest
		! wants switch || switch_mode
	fi
	if [ "$sched" = eevdf ] && wants light && [ "$run" = 1 ]; then
		emit floor "$(taskset -c 3 powerpack-load workload --seconds "$(scaled 15)" light)"
	fi
}

# The saturated machine: each scheduler between two runs of the kernel's own,
# so that what changes on the host does not pass for a difference. Many short
# ones, because each pair is off by some percent.
hogs() {
	local other
	for run in $(seq $((runs * 4))); do
		for other in ${schedulers//eevdf/}; do
			for sched in eevdf "$other"; do
				start "$sched" || continue
				emit hogs "$(powerpack-load hogs --count 8 --seconds "$(scaled 5)")"
				stop_scheduler
			done
		done
	done
	sched=eevdf
	emit hogs "$(powerpack-load hogs --count 8 --seconds "$(scaled 5)")"
}

run=0 sched=''
emit kernel "$(quoted "$(uname -r), $(nproc) CPUs")"
for sched in ${schedulers//eevdf/}; do
	version=$($(command_of "$sched") --version 2>/dev/null | head -n 1) || version='cannot be run'
	emit version "$(quoted "$version")"
done
nap 3

# The first of all waits until the kernel has read its own BTF: that is nobody's.
warm_up() {
	local rows=none first
	for first in ${schedulers//eevdf/}; do
		! start "$first" || stop_scheduler
		break
	done
}
warm_up

if [ "$rows" = hogs ]; then
	hogs
else
	for run in $(seq "$runs"); do
		for sched in $schedulers; do
			start "$sched" || continue
			measure
			stop_scheduler
		done
	done
fi
sched=''
emit complaints "$(dmesg | grep -cE 'BUG|WARNING|stall|lockup|hung task' || true)"
