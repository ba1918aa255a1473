#!/usr/bin/env bash
# A deliberate stall: a real-time hog holds a CPU for good, and a task bound to
# it waits. The kernel's watchdog ends the scheduler, which reports why.
# Linux 6.12 warns in its deadline server when that is switched off.
# expect-dmesg: sched_ext|stall|kernel/sched/deadline.c
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# The kernel's own remedies against such hogs would help the task.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for server in /sys/kernel/debug/sched/{ext,fair}_server/cpu2/runtime; do
	[ ! -e "$server" ] || echo 0 >"$server" 2>/dev/null || true
done

SCX_TIMEOUT_MS=3000 start
timeout 9 chrt -f 50 taskset -c 2 sh -c 'while :; do :; done' &
hog=$!
sleep 0.5
powerpack-load hogs --seconds 1 --count 1 --pin 2 >/dev/null &
waiting=$!
status=0
wait $PID || status=$?
[ $status = 1 ] || fail "exit status $status after a stall"
grep -q 'the kernel ended the scheduler' $LOG || fail "the end is not reported"
grep -qi 'stall' $LOG || fail "the reason is not reported"
# Its report shows the active set, the CPU and its queue, and of the tasks there.
for line in 'powerpack: [1-4] CPUs active, ceiling 4' 'node 0: ranks active before [1-4], room' 'powerpack: rank 2, surplus' 'powerpack: queue 1026, waits'; do
	grep -Eq "$line" $LOG || fail "the report does not say '$line'"
done
kernel_is_back
wait $hog || true
wait $waiting || fail "the task was lost"
