#!/usr/bin/env bash
# One CPU: there is nothing to pack, and nothing breaks.
# vm: --cpus 1 --slow-virtual-time
. "$(dirname "$0")/lib.bash"

start --mode packing
for mode in packing balance spread energy; do
	scx_powerpack mode $mode >/dev/null
	powerpack-load hogs --seconds 3 --count 3 >/tmp/hogs.json
	for s in $(json_list cpu_s </tmp/hogs.json); do
		# A third of 3 s each.
		awk -v s="$s" 'BEGIN { exit !(s > 0.6) }' ||
			fail "in $mode a hog has $s s: $(cat /tmp/hogs.json)"
	done
	powerpack-load pipe --rounds 500 >/dev/null
done
status_says '1 of 1 CPUs active' || fail "$(scx_powerpack status)"
refused 'out of range.*1\.\.1' scx_powerpack mode packing --max-cores 2
stop
