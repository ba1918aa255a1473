#!/usr/bin/env bash
# A task that may run on two CPUs goes on at once on the other one, which is idle, where a real-time task that
# nobody knew of takes the one that it runs on: whatever has ticks meanwhile may not run it.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

cat >/tmp/take.bash <<'BASH'
# Goes to the CPU on which thread $1 of process $2 runs, says so, and keeps it for two seconds.
cpu=$(awk '{ print $39 }' "/proc/$2/task/$1/stat")
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
: >/tmp/taken
until [ $((${EPOCHREALTIME/./} - begin)) -ge 2000000 ]; do :; done
BASH

cat >/tmp/leave.bash <<'BASH'
# Keeps the other one of CPUs 2 and 3 until the hog's is taken; a second at most, as who starts the other
# real-time task may be caught behind this one (docs/how-it-decides.md).
cpu=$(awk '{ print 5 - $39 }' "/proc/$2/task/$1/stat")
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
until [ -e /tmp/taken ] || [ $((${EPOCHREALTIME/./} - begin)) -ge 1000000 ]; do :; done
BASH

cat >/tmp/beside.bash <<'BASH'
# Takes the other one of CPUs 2 and 3, which is idle, and at once stops what wakes often beside the hog.
cpu=$(awk '{ print 5 - $39 }' "/proc/$2/task/$1/stat")
interrupts=$(</tmp/interrupts) && kill -0 "$interrupts" || exit 1
taskset -cp "$cpu" $$ >/dev/null
begin=${EPOCHREALTIME/./}
kill -STOP "$interrupts"
until [ $((${EPOCHREALTIME/./} - begin)) -ge 2000000 ]; do :; done
kill -KILL "$interrupts"
BASH

cat >/tmp/interrupt.bash <<'BASH'
# Wakes often on the CPU of the hog, and takes it from that each time.
echo $$ >/tmp/interrupts
exec taskset -c "$(awk '{ print $39 }' "/proc/$2/task/$1/stat")" powerpack-load periodic 0.05/1 --seconds 5 >/dev/null
BASH

# Whether a task that is being put on an idle CPU is taken back as a real-time one takes that: else it may wait for
# the end of that one, which happens here once in some twenty times (docs/how-it-decides.md).
takes_back() { [ "$(printf '%s\n' 7.1 "$(uname -r)" | sort -V | head -n 1)" = 7.1 ]; }

# Run the program that follows in a real-time class.
realtime() { taskset -c 0,1 chrt -f 10 "$@"; }

# How long a hog has run, of 4 s, that may be on CPUs 2 and 3, one of which the real-time task $1 takes after a
# second, for two. What $2.. runs begins shortly before.
hog_beside() {
	local hog thread other='' taker
	rm -f /tmp/taken /tmp/interrupts
	taskset -c 2,3 powerpack-load hogs --count 1 --seconds 4 >/tmp/hog.json &
	hog=$!
	nap 0.7
	thread=$(ls /proc/$hog/task | tail -n 1)
	if [ -n "${2:-}" ]; then
		"${@:2}" "$thread" $hog >/dev/null &
		other=$!
	fi
	nap 0.3
	realtime bash "/tmp/$1.bash" "$thread" $hog >/dev/null &
	taker=$!
	wait $taker && wait $hog || return
	# Some are killed.
	[ -z "$other" ] || wait "$other" 2>/dev/null || true
	json_list cpu_s </tmp/hog.json
}

# The same in situation $1. 3.98, as under the kernel's scheduler; 3.05 and 1.99 if it waits for the kernel to save it.
goes_on() {
	local ran tries=1
	takes_back || tries=2
	while :; do
		ran=$(hog_beside "${@:2}") || fail "$1: the hog or the real-time task did not run"
		echo "$1: a hog has $ran of 4 s"
		! awk "BEGIN { exit !($ran > 3.8) }" || return 0
		[ $((--tries)) -gt 0 ] || break
	done
	fail "$1 a hog waits for a real-time task: $(cat /tmp/hog.json)"
}

# The hog's CPU is taken; and the other one goes idle after the hog was put in a queue, and looks once; and it
# is the other one that is taken, as the hog is put there, which a waking task has cut short.
each_way() {
	goes_on "$1" take
	goes_on "$1, the other CPU not idle at first" take realtime bash /tmp/leave.bash
	! takes_back || goes_on "$1, beside another one that wakes there" beside bash /tmp/interrupt.bash
}

start --mode packing
for mode in packing spread; do
	scx_powerpack mode $mode >/dev/null
	each_way "in $mode"
done
stop
start --mode packing --max-cores 2
each_way "above the ceiling"
stop
