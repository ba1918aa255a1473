#!/usr/bin/env bash
# A second of each of stress-ng's scheduler class, in both modes, without a stall.
# vm: --slow-virtual-time
# timeout: 400
. "$(dirname "$0")/lib.bash"

stressors='context switch sleep fork affinity schedpolicy yield'
# Its threads are real-time hogs on every CPU, from which kernels without a
# deadline server for sched_ext protect no task.
[ ! -d /sys/kernel/debug/sched/ext_server ] || stressors="$stressors mutex"
start --mode packing
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	for stressor in $stressors; do
		stress-ng --$stressor 4 --timeout 1 >/tmp/stress.log 2>&1 ||
			fail "stress-ng --$stressor: $(tail -n 3 /tmp/stress.log)"
		kill -0 $PID || fail "the scheduler ended under --$stressor"
	done
done

# What yields is put back in a queue, and its CPU looks for another task anyway: it is not interrupted for that,
# as it once was some ten thousand times here.
interrupts() { awk '/IRQ work/ { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum + 0 }' /proc/interrupts; }
before=$(interrupts)
stress-ng --yield 4 --timeout 1 >/tmp/stress.log 2>&1 || fail "stress-ng --yield: $(tail -n 3 /tmp/stress.log)"
after=$(interrupts)
[ $((after - before)) -lt 2000 ] || fail "$((after - before)) interrupts in a second of yields"
stop
