#!/usr/bin/env bash
# Two memory nodes of four CPUs: tasks are packed within the node they are on as long
# as it has room, and go to the other one when it has none.
# vm: --topology sockets=2,cores=4,threads=1 --nodes 2
. "$(dirname "$0")/lib.bash"

# Which CPUs are used (above 5 %) in the JSON of a load, as digits.
used() {
	local cpu=0 pct
	for pct in $(json_list non_idle_pct <"$1"); do
		[ "${pct%.*}" -lt 5 ] || printf %d $cpu
		cpu=$((cpu + 1))
	done
}

# A load that begins on CPUs $1 and may run everywhere a second later; the rest is its
# arguments. In spread it stays where it was.
begin_on() {
	local cpus=$1
	shift
	scx_powerpack mode spread >/dev/null
	taskset -c "$cpus" powerpack-load "$@" >"/tmp/load-$cpus.json" &
	sleep 1
	taskset -apc 0-7 $! >/dev/null
}

[ -e /sys/devices/system/node/node1 ] || fail "this is no NUMA machine"
nodes=$(scx_powerpack topology | awk 'NR > 3 { print $6 }' | uniq | wc -l)
[ "$nodes" = 2 ] || fail "a memory node is not filled before the next: $(scx_powerpack topology)"
start --mode spread

echo "a light load on one node uses one CPU of it"
begin_on 4-7 periodic --settle 4 --seconds 8 '2/20*3'
scx_powerpack mode packing >/dev/null
wait $!
[[ $(used /tmp/load-4-7.json) =~ ^[4-7]$ ]] || fail "$(cat /tmp/load-4-7.json)"

echo "one on each uses one CPU of each"
begin_on 0-3 periodic --settle 5 --seconds 8 '2/20*2'
first=$!
begin_on 4-7 periodic --settle 4 --seconds 8 '2/20*2'
scx_powerpack mode packing >/dev/null
wait $first $!
[[ $(used /tmp/load-0-3.json) =~ ^[0-3][4-7]$ ]] || fail "$(cat /tmp/load-0-3.json)"
scx_powerpack status

echo "more than a node can do goes to both"
begin_on 4-7 hogs --count 16 --seconds 5
scx_powerpack mode packing >/dev/null
wait $!
[ "$(used /tmp/load-4-7.json)" = 01234567 ] || fail "$(cat /tmp/load-4-7.json)"

echo "nothing of it stays"
sleep 2
powerpack-load periodic --settle 1 --seconds 3 '2/20*2' >/tmp/after.json
[ "$(used /tmp/after.json | wc -m)" = 1 ] || fail "$(cat /tmp/after.json)"
stop
