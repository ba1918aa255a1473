#!/usr/bin/env bash
# A CPU goes after the agent has read which there are, and before it loads: once loaded, it knows. As it comes, it
# loads again, and knows that too.
# alone
# vm: --slow-virtual-time
# expect-dmesg: kernel/sched/deadline.c
. "$(dirname "$0")/lib.bash"

online() { echo "$1" >/sys/devices/system/cpu/cpu3/online; }

# Whether the agent has its thread for the desktop, which begins after the CPUs were read.
has_read() {
	local file name
	for file in /proc/$PID/task/*/comm; do
		read -r name 2>/dev/null <"$file" || continue
		[ "$name" != profile-watch ] || return 0
	done
	return 1
}

# A bus that does not answer: the thread waits for it.
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus
python3 -c 'import socket, time; s = socket.socket(socket.AF_UNIX); s.bind("/tmp/bus"); s.listen(); time.sleep(1000)' &
bus=$!
until [ -e /tmp/bus ]; do nap 0.1; done

: >$LOG
scx_powerpack --mode packing >$LOG 2>&1 &
PID=$!
until has_read; do [[ $(<$LOG) != *attached* ]] || fail "it has loaded, and its thread was not seen"; done
kill -STOP $PID
online 0
kill -CONT $PID
attached_times 1
status_says '^ *3 .* offline' || fail "CPU 3 is offline, and not in the status: $(cat /tmp/status)"
grep -q 'the set of CPUs has changed: loading again' $LOG || fail "it has not loaded again: $(cat $LOG)"
online 1
attached_times 2
if status_says offline; then fail "CPU 3 is online, and not in the status: $(cat /tmp/status)"; fi
stop
kill $bus
