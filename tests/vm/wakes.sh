#!/usr/bin/env bash
# What has woken a CPU: `why --cpu` names the timer of a task, and who else wakes one, with about the right
# counts, under the kernel's scheduler and ours; nothing of these tasks on a CPU they do not run on. What the
# kernel itself wakes a CPU for differs from boot to boot by hundreds, so that is not counted here.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

# The tasks of this test, in what a cause is called.
OURS='powerpack-load|tee|grep'

# What wakes CPU $1 in $2 s: for times() and others.
watch_cpu() { scx_powerpack why --cpu "$1" --seconds "$2" >/tmp/wakes; }

# How often causes that match $1 did.
times() { cause=$1 awk 'NR > 2 && $0 ~ ENVIRON["cause"] { sum += $1 } END { print sum + 0 }' /tmp/wakes; }

# Causes that match $1 must have woken it from $2 to $3 times.
woken_by() {
	local times
	times=$(times "$1")
	[ "$times" -ge "$2" ] && [ "$times" -le "$3" ] || fail "$times times '$1', not $2 to $3: $(cat /tmp/wakes)"
}

# A task of CPU 3 that sleeps between, and one that a task of CPU 1 wakes; 50 times a second each.
watch_tasks() {
	local load writer
	taskset -c 3 powerpack-load periodic --seconds 6 1/20 >/dev/null &
	load=$!
	sleep 1
	watch_cpu 2 1
	woken_by "$OURS" 0 5
	watch_cpu 3 2
	woken_by 'task powerpack-load \([0-9]+\), timer hrtimer_wakeup$' 75 105
	woken_by "$OURS" 75 105
	wait $load
	mkfifo /tmp/words
	(for _ in $(seq 200); do echo word && nap 0.02; done | taskset -c 1 tee /tmp/words >/dev/null) &
	writer=$!
	taskset -c 3 grep -c word </tmp/words >/tmp/read &
	sleep 1
	watch_cpu 3 2
	woken_by "task grep \\($!\\), woken by tee\$" 75 105
	woken_by "$OURS" 75 105
	wait $writer $!
	[ "$(cat /tmp/read)" = 200 ] || fail "$(cat /tmp/read) words"
	rm /tmp/words
}

echo "under the kernel's own scheduler"
watch_tasks

echo "under ours"
start --mode packing
watch_tasks
watch_cpu 2 2
head -n 1 /tmp/wakes | grep -q '^CPU 2, surplus in mode packing: woken' || fail "$(cat /tmp/wakes)"
woken_by 'kick of the scheduler' 0 5
# Tasks that wait for the active CPUs are fetched by one that is idle.
powerpack-load periodic --seconds 4 '2/10*6' >/dev/null &
load=$!
sleep 1
watch_cpu 2 2
woken_by 'task powerpack-load .*; kick of the scheduler$' 5 1000
wait $load
stop

echo "Ctrl-C ends it, with what there is"
scx_powerpack why --cpu 3 --seconds 1000 >/tmp/wakes &
watcher=$!
sleep 2
kill -INT $watcher
wait $watcher || fail "status $?"
grep -q '^CPU 3, no sched_ext scheduler: woken' /tmp/wakes || fail "$(cat /tmp/wakes)"

echo "what cannot be"
refused 'no CPU 99: they are numbered from 0 to 3' scx_powerpack why --cpu 99
refused 'needs root' setpriv --reuid=65534 --clear-groups scx_powerpack why --cpu 3
echo 0 >/sys/devices/system/cpu/cpu3/online
refused 'CPU 3 is offline' scx_powerpack why --cpu 3
echo 1 >/sys/devices/system/cpu/cpu3/online
