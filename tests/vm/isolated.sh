#!/usr/bin/env bash
# Four cores of two threads, the last one kept free of ticks: only who is bound to it
# runs there, in every mode.
# vm: --slow-virtual-time --topology sockets=1,cores=4,threads=2 --append nohz_full=6,7
# only: 7
. "$(dirname "$0")/lib.bash"

[ "$(cat /sys/devices/system/cpu/nohz_full)" = 6-7 ] || fail "this kernel knows no nohz_full"
last=$(scx_powerpack topology | awk 'END { print $2 }')
[ "$last" = 7 ] || fail "isolated CPUs are not the last: $(scx_powerpack topology)"
start --mode packing
for mode in packing balance spread; do
	scx_powerpack mode $mode >/dev/null
	powerpack-load hogs --seconds 3 --count 12 >/tmp/hogs.json
	for cpu in 0 1 2 3 4 5; do
		[ "$(busy /tmp/hogs.json $cpu)" -ge 60 ] || fail "in $mode CPU $cpu is idle: $(cat /tmp/hogs.json)"
	done
	for cpu in 6 7; do
		[ "$(busy /tmp/hogs.json $cpu)" -le 5 ] || fail "$mode uses an isolated CPU: $(cat /tmp/hogs.json)"
	done
done
powerpack-load hogs --seconds 3 --count 1 --pin 7 >/tmp/hogs.json
[ "$(busy /tmp/hogs.json 7)" -ge 60 ] || fail "a pinned task does not run: $(cat /tmp/hogs.json)"
stop
