#!/usr/bin/env bash
# In the laboratory: what loads make of a machine, under each of the systems $1: a mode of ours, or a
# frequency governor under the kernel's own scheduler. A line for each: LOAD SYSTEM, activations,
# overruns, mean response (us), changes of frequency a second, mean power (mW), and how often a
# second a thread of schedutil ran, which changes the frequency where that is slow.
set -euo pipefail
. tests/powerlab/lib.bash

# Time, changes of frequency, energy, and runs of schedutil's threads until now.
look() {
	local thread statuses=()
	for thread in $(pgrep '^sugov:' || true); do statuses+=("/proc/$thread/status"); done
	awk '$1 == "machine" { ns = $4 } $1 == "domain" { changes += $6 } $3 == "nj" { nj += $4 }
		$1 == "voluntary_ctxt_switches:" { runs += $2 }
		END { printf "%.0f %.0f %.0f %.0f\n", ns, changes, nj, runs }' $TRUTH "${statuses[@]}"
}

# The load $1 for $3 s after $2 s in which the system gets to know it.
run() {
	case $1 in
	# On the CPUs of the published table.
	*/*) exec taskset -c 4-7 powerpack-load --json periodic --settle "$2" --seconds "$3" "$1" ;;
	*) exec powerpack-load --json workload --settle "$2" --seconds "$3" "$1" ;;
	esac
}

# For how many seconds the load $1 is measured: longer where 3 hold only few of its periods.
seconds_of() {
	case ${1#*/} in
	900 | 1000 | 1200) echo 6 ;;
	*) echo 3 ;;
	esac
}

measure() {
	local load=$1 system=$2 settle=1 seconds begin end result
	seconds=$(seconds_of "$load")
	run "$load" $settle $((settle + seconds)) >/tmp/result &
	nap $settle.2
	begin=$(look)
	nap $((seconds - 1)).6
	end=$(look)
	wait $!
	result=$(</tmp/result)
	echo "$begin $end" | awk -v load="$load" -v under="$system" \
		-v activations="$(json activations <<<"$result")" \
		-v overruns="$(json overruns <<<"$result")" \
		-v mean="$(summary response mean_us <<<"$result")" '{
			s = ($5 - $1) / 1e9
			printf "%s %s %d %d %.0f %.1f %.1f %.1f\n", load, under, activations, overruns,
				mean, ($6 - $2) / s, ($7 - $3) / s / 1e6, ($8 - $4) / s
		}'
}

systems=$1
shift
echo "kernel $(uname -r)"
for system in $systems; do
	case $system in
	packing | balance | energy | spread)
		govern schedutil
		start --mode "$system" >/dev/null
		;;
	*) govern "$system" ;;
	esac
	for load in "$@"; do measure "$load" "$system"; done
	[ -z "$PID" ] || { stop && PID=''; }
done
