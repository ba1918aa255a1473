#!/usr/bin/env bash
# CPUs go and come under load, with tasks pinned to them: survived in place.
# Linux 6.12 itself warns in its deadline server when a CPU goes offline.
# It leaves that server in disorder.
# alone
# vm: --slow-virtual-time
# expect-dmesg: kernel/sched/deadline.c
. "$(dirname "$0")/lib.bash"

cpu=/sys/devices/system/cpu
start --mode packing
loads=$(cat $SCX/enable_seq)
powerpack-load hogs --seconds 25 --count 6 >/dev/null &
hogs=$!
powerpack-load hogs --seconds 25 --count 2 --pin 3 >/dev/null &
pinned=$!
sleep 1
for i in 1 2 3; do
	echo 0 >$cpu/cpu3/online
	echo 0 >$cpu/cpu1/online
	sleep 1
	status_says offline || fail "round $i: status shows no CPU offline"
	echo 1 >$cpu/cpu1/online
	echo 1 >$cpu/cpu3/online
	sleep 1
done
if status_says offline; then fail "a CPU is offline in the status"; fi
wait $hogs || fail "the hogs did not finish"
wait $pinned || fail "the pinned hogs did not finish"

echo "services are as free as before, although the kernel takes a CPU that goes from their affinity"
echo +cpuset >$CGROUPS/cgroup.subtree_control
mkdir $CGROUPS/service
run_in service powerpack-load hogs --seconds 12 --count 2 >/dev/null &
hogs=$!
echo 0 >$cpu/cpu3/online
sleep 5
# What confined tasks use is not for the active set to carry: of these it would be one CPU.
status_says 'mode packing, [2-4] of . CPUs active' || fail "two hogs in a cgroup: $(</tmp/status)"
echo 1 >$cpu/cpu3/online
wait $hogs || fail "the hogs in a cgroup did not finish"
[ "$(cat $SCX/enable_seq)" = "$loads" ] || fail "it was loaded again"
stop
