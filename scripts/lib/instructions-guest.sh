#!/usr/bin/env bash
# In the VM of scripts/instructions: DIR MODE COMMAND.. runs COMMAND between the marks under the kernel's
# scheduler, then under ours, and leaves the kernel's symbols of both times in DIR.
set -euo pipefail
dir=$1 mode=$2
shift 2

# Each BPF program has symbols of its own while it is loaded.
count() {
	# The symbols' addresses are 0 for whoever may not see them.
	echo 0 >/proc/sys/kernel/kptr_restrict
	sort /proc/kallsyms >"$dir/symbols.$1"
	shift
	"$dir/mark"
	"$@" >&2
	"$dir/mark" end
}

count 0 "$@"
scx_powerpack --mode "$mode" >&2 &
scheduler=$!
for _ in $(seq 100); do
	[ "$(cat /sys/kernel/sched_ext/state)" != enabled ] || break
	sleep 0.1
done
[ "$(cat /sys/kernel/sched_ext/state)" = enabled ]
# It sizes the active set and reads the tasks that there are.
sleep 2
count 1 "$@"
kill -INT $scheduler
wait $scheduler
