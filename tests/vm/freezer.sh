#!/usr/bin/env bash
# The kernel freezes all tasks to suspend, and thaws them: a hundred times under load. The scheduler stays loaded
# and answers, and every task goes on. Devices do not sleep: the file system of these VMs refuses.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

TIMES=100

[ -w /sys/power/state ] || skip "this kernel cannot suspend"
start --mode packing
# How often that failed since the boot, or failed at a step of it.
stat_of() { echo $(($(</sys/power/suspend_stats/"$1"))); }
frozen_before=$(($(stat_of fail) - $(stat_of failed_freeze)))
# Of each task it is known what it did.
powerpack-load periodic --seconds 20 --json 1/10 1/10 5/20 5/20 >/tmp/load &
load=$!
hogs=()
for cpu in 0 1 2 3; do
	taskset -c $cpu bash -c 'while :; do ((n++)); [ $((n % 1000)) != 0 ] || echo $n >/tmp/hog'$cpu'; done' &
	hogs+=($!)
done
nap 1
for nth in $(seq $TIMES); do
	# It fails as the devices are to sleep, after all tasks were frozen.
	if echo freeze 2>/dev/null >/sys/power/state; then fail "it was suspended: this test is not made for that"; fi
	[ "$(cat $SCX/state)" = enabled ] || fail "after time $nth the scheduler is $(cat $SCX/state)"
	nap 0.05
	((nth % 20 != 0)) || [[ $(scx_powerpack mode) == packing ]] || fail "it does not answer after time $nth"
	((nth % 10 != 0)) || scx_powerpack mode packing >/dev/null
done
frozen=$(($(stat_of fail) - $(stat_of failed_freeze) - frozen_before))
((frozen == TIMES)) || fail "tasks were frozen $frozen times, not $TIMES: $(dmesg | tail -n 5)"
for cpu in 0 1 2 3; do rm -f /tmp/hog$cpu; done
for cpu in 0 1 2 3; do
	for ((look = 0; look < 50; look++)); do
		[ ! -s /tmp/hog$cpu ] || continue 2
		nap 0.1
	done
	fail "the hog of CPU $cpu does not go on"
done
kill "${hogs[@]}"
wait $load || fail "the load has failed"
grep -q '"activations":[1-9]' /tmp/load || fail "the load did nothing: $(cat /tmp/load)"
stop
