#!/usr/bin/env bash
# In the VM: run the commands in file $1 (a name, then powerpack-load's arguments)
# under each mode, and write lines of JSON to $2.
set -euo pipefail
commands=$1 out=$2
state=/sys/kernel/sched_ext/state
# A pipe on which nothing ever comes: waiting on it is a sleep without a fork.
exec {nothing}<> <(:)
nap() { read -rt "$1" -u "$nothing" || true; }

for mode in packing spread; do
	scx_powerpack --mode $mode >/tmp/agent.log 2>&1 &
	pid=$!
	until [ "$(cat $state)" = enabled ]; do
		kill -0 $pid || { cat /tmp/agent.log && exit 1; }
		nap 0.1
	done
	nap 3
	while read -r name arguments; do
		# shellcheck disable=SC2086 # a list of words
		result=$(powerpack-load --json $arguments)
		printf '{"name":"%s","mode":"%s","result":%s}\n' "$name" $mode "$result" >>"$out"
		nap 1
	done <"$commands"
	kill -INT $pid
	wait $pid
done
