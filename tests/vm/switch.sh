#!/usr/bin/env bash
# A hundred live switches under load: nothing is detached, no task is lost.
# vm: --slow-virtual-time
# timeout: 400
. "$(dirname "$0")/lib.bash"

start --mode packing
loads=$(cat $SCX/enable_seq)
powerpack-load workload --seconds 30 light >/tmp/light.json &
light=$!
powerpack-load hogs --seconds 30 --count 2 >/tmp/hogs.json &
hogs=$!
for i in $(seq 50); do
	scx_powerpack mode spread >/dev/null || fail "switch $i"
	scx_powerpack mode packing >/dev/null || fail "switch $i back"
done
[ "$(grep -c 'switched to mode' $LOG)" = 100 ] || fail "not all switches are logged"
wait $light || fail "the periodic threads did not finish"
wait $hogs || fail "the hogs did not finish"
[ "$(cat $SCX/enable_seq)" = "$loads" ] || fail "it was loaded again"
for work in $(json_list work </tmp/hogs.json); do
	[ "$work" -gt 0 ] || fail "a hog did not run"
done
stop
