#!/usr/bin/env bash
# In the VM: run the loads in file $1 (a name, then powerpack-load's arguments; a line
# each) under each of the schedulers $3.., and write lines of JSON to $2.
set -euo pipefail
commands=$1 out=$2
shift 2
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/schedulers.bash"

emit() { printf '{"name":"%s","sched":"%s","%s":%s}\n' "$1" "$sched" "$2" "$3" >>"$out"; }

failed() { emit "${name:-start}" failed "\"$(printf '%s' "$1" | tr -d '"\134' | tr -s '[:cntrl:]' ' ')\""; }

# What our scheduler counted since the last call; null of others.
counters() {
	[[ $(command_of "$sched" 2>/dev/null) == scx_powerpack* ]] || { echo null && return; }
	scx_powerpack status --json >/tmp/status.json
	python3 "$(dirname "$0")/counters.py" /tmp/status.json /tmp/status.last
}

sched='' name=kernel
emit kernel result "\"$(uname -r), $(nproc) CPUs\""
for sched in "$@"; do
	start_scheduler "$sched" || continue
	counters >/dev/null
	while read -r name arguments; do
		# shellcheck disable=SC2086 # a list of words
		emit "$name" result "$(powerpack-load --json $arguments)"
		emit "$name" counters "$(counters)"
		nap 1
	done <"$commands"
	stop_scheduler
done
