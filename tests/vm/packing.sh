#!/usr/bin/env bash
# A light load is on one CPU in packing and on several in spread.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

start --mode packing
sleep 2
# Of tasks that are known: eight new ones at once take up to 10 ms of a second CPU.
powerpack-load workload light --settle 1 --seconds 6 >/tmp/light.json
surplus=$(json surplus_non_idle_pct </tmp/light.json)
awk -v s="$surplus" 'BEGIN { exit !(s < 0.1) }' || fail "surplus CPUs: $surplus % in packing"
[ "$(json overruns </tmp/light.json)" = 0 ] || fail "overruns in packing"
scx_powerpack mode spread >/dev/null
powerpack-load workload --seconds 5 light >/tmp/light.json
surplus=$(json surplus_non_idle_pct </tmp/light.json)
awk -v s="$surplus" 'BEGIN { exit !(s > 10) }' || fail "surplus CPUs: $surplus % in spread"
stop
# One core for all that is free to move, hogs too.
start --mode spread --max-cores 1
powerpack-load hogs --seconds 3 --count 4 >/tmp/hogs.json
cpus=$(used /tmp/hogs.json 5)
[ ${#cpus} = 1 ] || fail "beyond the ceiling: CPUs $cpus"
stop
