#!/usr/bin/env bash
# A minute of stress-ng's scheduler class, in both modes, without a stall.
# timeout: 400
. "$(dirname "$0")/lib.bash"

start --mode packing
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	for stressor in context switch sleep mutex fork affinity schedpolicy yield; do
		stress-ng --$stressor 4 --timeout 4 >/tmp/stress.log 2>&1 ||
			fail "stress-ng --$stressor: $(tail -n 3 /tmp/stress.log)"
		kill -0 $PID || fail "the scheduler ended under --$stressor"
	done
done
stop
