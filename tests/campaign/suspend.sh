#!/usr/bin/env bash
# In the VM of scripts/suspend-tests: suspend it under load, to memory and have the clock wake it, to idle (s2idle) and
# have a serial line wake it, and with each test of suspend that its kernel has, so many times. After each our scheduler
# runs as before, and every task goes on.
# suspend.sh TIMES
. "$TREE/tests/vm/lib.bash"
. "$TREE/tests/campaign/workers.bash"
. "$TREE/scripts/lib/complaints.sh"
times=$1
POWER=/sys/power
MODES=(packing spread balance)
# The alarm is set in whole seconds, and one that has passed before the machine sleeps wakes nobody.
ALARM_S=2
# The host sends a byte on this line every two seconds, which wakes a machine that is suspended to idle: the clock of a
# VM does not.
LINE=ttyS1
# A byte that comes as the machine is about to sleep keeps it awake, and the kernel says so.
IDLE_TRIES=10

# How far to suspend: until something wakes it, and as far as each test of the kernel's.
depths() {
	local depth
	echo memory idle
	[ -w $POWER/pm_test ] || return 0
	for depth in $(tr -d '[]' <$POWER/pm_test); do
		[ "$depth" = none ] || echo "$depth"
	done
}

suspend_to() {
	case $1 in
	memory) rtcwake --mode mem --seconds $ALARM_S >/tmp/printed 2>&1 || fail "cannot suspend: $(cat /tmp/printed)" ;;
	idle) suspend_to_idle ;;
	*)
		echo "$1" >$POWER/pm_test
		echo mem >$POWER/state || fail "cannot suspend with test $1"
		echo none >$POWER/pm_test
		;;
	esac
}

suspend_to_idle() {
	local try slept=no
	# For this sleep alone: a line that may wake the machine is not set up again after one to memory, where it loses power.
	echo enabled >/sys/class/tty/$LINE/power/wakeup
	for ((try = 1; try <= IDLE_TRIES; try++)); do
		! echo freeze 2>/tmp/printed >$POWER/state || { slept=yes && break; }
	done
	echo disabled >/sys/class/tty/$LINE/power/wakeup
	[ $slept = yes ] || fail "cannot suspend to idle: $(cat /tmp/printed)"
}

all_is_well() {
	local online
	online=$(</sys/devices/system/cpu/online)
	[ "$online" = "$ONLINE" ] || fail "CPUs $online are online $1"
	[ "$(<$SCX/state)" = enabled ] || fail "the scheduler is $(<$SCX/state) $1: $(cat $LOG)"
	scx_powerpack status >/dev/null || fail "no status $1"
	workers_go_on "$1"
	! dmesg | grep -E "$COMPLAINTS" || fail "the kernel complains $1"
}

ONLINE=$(</sys/devices/system/cpu/online)
grep -q deep $POWER/mem_sleep || fail "this kernel cannot be suspended to memory"
echo deep >$POWER/mem_sleep
# An interrupt of a line wakes only while the line is open.
exec 9<>/dev/$LINE
# How long a test leaves the machine as it is, busy. In seconds.
delay=/sys/module/suspend/parameters/pm_test_delay
[ ! -w $delay ] || echo 0 >$delay
start_workers
# Hogs, one bound: CPUs are busy as they go offline.
for ((hog = 0; hog < 3; hog++)); do
	bash -c 'while :; do :; done' &
	hogs+=($!)
done
taskset -cp 1 "${hogs[0]}" >/dev/null
start --mode packing
for ((nth = 1; nth <= times; nth++)); do
	for depth in $(depths); do
		scx_powerpack mode "${MODES[RANDOM % ${#MODES[@]}]}" >/dev/null || fail "no switch of the mode"
		suspend_to "$depth"
		all_is_well "after suspend $nth, $depth"
	done
done
stop
workers_go_on "under the kernel's scheduler"
stop_workers
kill "${hogs[@]}"
for depth in $(depths); do echo "figure: $depth $times"; done
echo "ok      suspend"
