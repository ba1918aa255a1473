#!/usr/bin/env bash
# In the VM: the saturated machine. Each scheduler of $4.. runs between two runs of the
# kernel's own, so that what changes on the host does not pass for a difference; $2 rounds,
# with the C files of $3 to compile. Lines of JSON go to $1.
set -euo pipefail
out=$1 rounds=$2 sources=$3
shift 3
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/schedulers.bash"

emit() { printf '{"name":"%s","sched":"%s","%s":%s}\n' "$1" "$sched" "$2" "$3" >>"$out"; }
failed() { emit start failed "\"$(printf '%s' "$1" | tr -d '"\134' | tr -s '[:cntrl:]' ' ')\""; }

# Work a second of hogs, and one over the time that the others take.
measure() {
	local cpus
	cpus=$(nproc)
	emit hogs result "$(powerpack-load hogs --count $((cpus * 2)) --seconds 4)"
	emit hackbench result "$(powerpack-load command -- hackbench -g 2 -l 400)"
	emit compile result "$(powerpack-load command -- sh -c \
		"ls $sources/*.c | xargs -P $((cpus * 2)) -I{} cc -O1 -c {} -o /dev/null")"
}

sched=''
emit kernel result "\"$(uname -r), $(nproc) CPUs\""
for _ in $(seq "$rounds"); do
	for other in "$@"; do
		for sched in eevdf "$other"; do
			start_scheduler "$sched" || continue
			measure
			stop_scheduler
		done
	done
done
sched=eevdf
measure
