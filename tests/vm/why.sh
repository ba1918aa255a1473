#!/usr/bin/env bash
# Why a task is where it is: each reason is reported of a task that gives it, but for that of
# a CPU that goes offline.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

# Of 40 placements of load $2.., or $COUNT, confined to CPUs $CPUS if that is set, one has a
# reason that matches $1.
is_reported() {
	local pattern=$1 load
	shift
	taskset -c "${CPUS:-0-3}" powerpack-load "$@" >/dev/null &
	load=$!
	sleep 1
	scx_powerpack why $load --count "${COUNT:-40}" >/tmp/why
	grep -qE "$pattern" /tmp/why || fail "no '$pattern' of $*: $(head -n 30 /tmp/why)"
	kill $load 2>/dev/null || true
	wait $load || true
}

# Others may look all the same.
rm -rf /run/scx_powerpack
umask 077
start --mode packing
umask 022
refused 'no process or thread 99999999' scx_powerpack why 99999999

echo "reasons"
is_reported 'idle active CPU, where it ran before; ran after' periodic --seconds 3 1/20
is_reported 'waits for the active CPUs: .* expected, 5.00 ms allowed' periodic --seconds 3 '1/10*6'
is_reported 'spilled: ' periodic --seconds 3 '6/300*5'
is_reported 'pinned: no other CPU' hogs --seconds 3 --count 2 --pin 2
# More than the few ms for which `why` itself waits beside them: they queue behind it then.
COUNT=1000 is_reported 'with its waker, which is about to sleep' pipe --rounds 200000
CPUS=2,3 is_reported 'idle, of the CPUs that it is confined to' periodic --seconds 3 1/20
CPUS=2,3 is_reported 'all CPUs that it is confined to are busy' hogs --seconds 3 --count 4

echo "one at a time, for root alone"
powerpack-load periodic --seconds 12 '1/20*2' >/dev/null &
load=$!
sleep 1
scx_powerpack why $load --count 3 >/tmp/why
[ "$(grep -c 'ran after' /tmp/why)" = 3 ] || fail "not three placements: $(cat /tmp/why)"
scx_powerpack why $load --count 100000 >/dev/null &
other=$!
sleep 1
refused 'are being watched' scx_powerpack why $$
wait $other
refused 'needs root' setpriv --reuid=65534 --clear-groups scx_powerpack why $load
setpriv --reuid=65534 --clear-groups scx_powerpack status >/tmp/status || fail "others may not look"
grep -q 'mode packing' /tmp/status || fail "others see no status"
refused 'needs root' setpriv --reuid=65534 --clear-groups scx_powerpack mode spread
# Who is root in a user namespace, as in a container, is not on the socket.
if [ -e /proc/self/ns/user ]; then
	refused 'needs root' setpriv --reuid=65534 --clear-groups unshare --user --map-root-user scx_powerpack mode spread
	refused 'needs root' setpriv --reuid=65534 --clear-groups unshare --user --map-root-user scx_powerpack why $load
else
	echo "this kernel has no user namespaces"
fi
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/scx/root/stats")' || fail "no statistics for root"
! setpriv --reuid=65534 --clear-groups python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/scx/root/stats")' \
	2>/dev/null || fail "the statistics are open to others than root"
wait $load

echo "one that the kernel places, and names that are more than text"
chrt --fifo --reset-on-fork 10 sleep 60 &
load=$!
sleep 1
scx_powerpack why $load | grep -q 'none in 5 s: it is a real-time task' || fail "a real-time task is not said to be one"
kill $load
python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(15, b"\x1b[2J4567890123\xc3\xa4")
time.sleep(60)' &
load=$!
for _ in $(seq 100); do
	[[ $(</proc/$load/comm) == python3 ]] || break
	nap 0.1
done
scx_powerpack why $load >/tmp/why
grep -q 'placements of ?\[2J' /tmp/why || fail "a name is printed as it is, or not at all: $(cat -v /tmp/why)"
kill $load
stop
