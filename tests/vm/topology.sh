#!/usr/bin/env bash
# Two sockets of two cores of two threads: ranks fill a core, then a package;
# packing stays on the first, spread uses whole cores first.
# vm: --topology sockets=2,cores=2,threads=2
. "$(dirname "$0")/lib.bash"

scx_powerpack topology | tee /tmp/topology
grep -q '8 CPUs, 4 cores online' /tmp/topology || fail "the topology is not 2 x 2 x 2"
cores=$(awk 'NR > 3 { print $3 }' /tmp/topology | uniq | wc -l)
packages=$(awk 'NR > 3 { print $5 }' /tmp/topology | uniq | wc -l)
[ "$cores" = 4 ] || fail "a core is not filled before the next"
[ "$packages" = 2 ] || fail "a package is not filled before the next"
refused 'out of range.*1\.\.4' scx_powerpack --max-cores 5
start --mode packing
powerpack-load hogs --seconds 4 --count 12 >/tmp/hogs.json
for pct in $(json_list non_idle_pct </tmp/hogs.json); do
	[ "${pct%.*}" -ge 60 ] || fail "12 hogs leave a CPU idle: $(cat /tmp/hogs.json)"
done
scx_powerpack mode spread >/dev/null
powerpack-load hogs --seconds 4 --count 4 >/tmp/hogs.json
scx_powerpack status
stop
start --mode packing --max-cores 2
powerpack-load hogs --seconds 4 --count 8 >/tmp/hogs.json
[[ $(scx_powerpack status --json) == *'"max_cores":2'* ]] || fail "the ceiling is not told"
stop
