#!/usr/bin/env bash
# Two memory nodes of four CPUs: tasks are packed within the node they are on as long
# as it has room, and go to the other one when it has none. In virtual time: with eight
# CPUs in parallel emulation a command beside the hogs takes seconds.
# vm: --slow-virtual-time --topology sockets=2,cores=4,threads=1 --nodes 2
. "$(dirname "$0")/lib.bash"

# A load on CPUs $1; the rest is its arguments.
begin_on() {
	local cpus=$1
	shift
	taskset -c "$cpus" powerpack-load "$@" >"/tmp/load-$cpus.json" &
	sleep 1
}

# Pack, and let these loads run everywhere: where they are, nodes have CPUs for a second
# more. (Let go in spread, they might go anywhere before they are packed.)
let_go() {
	local pid
	scx_powerpack mode packing >/dev/null
	for pid in "$@"; do taskset -apc 0-7 "$pid" >/dev/null; done
	wait "$@"
}

[ -e /sys/devices/system/node/node1 ] || fail "this is no NUMA machine"
nodes=$(scx_powerpack topology | awk 'NR > 3 { print $6 }' | uniq | wc -l)
[ "$nodes" = 2 ] || fail "a memory node is not filled before the next: $(scx_powerpack topology)"
start --mode spread

echo "a light load on one node uses one CPU of it"
begin_on 4-7 periodic --settle 4 --seconds 8 '2/20*3'
let_go $!
[[ $(used /tmp/load-4-7.json 5) =~ ^[4-7]$ ]] || fail "$(cat /tmp/load-4-7.json)"

echo "one on each uses one CPU of each"
scx_powerpack mode spread >/dev/null
begin_on 0-3 periodic --settle 5 --seconds 8 '2/20*2'
first=$!
begin_on 4-7 periodic --settle 4 --seconds 8 '2/20*2'
let_go $first $!
[[ $(used /tmp/load-0-3.json 5) =~ ^[0-3][4-7]$ ]] || fail "$(cat /tmp/load-0-3.json)"
scx_powerpack status

echo "more than a node can do goes to both"
scx_powerpack mode spread >/dev/null
begin_on 4-7 hogs --count 16 --seconds 5
let_go $!
[ "$(used /tmp/load-4-7.json 5)" = 01234567 ] || fail "$(cat /tmp/load-4-7.json)"

echo "nothing of it stays"
sleep 2
powerpack-load periodic --settle 1 --seconds 3 '2/20*2' >/tmp/after.json
[ "$(used /tmp/after.json 5 | wc -m)" = 1 ] || fail "$(cat /tmp/after.json)"
stop
