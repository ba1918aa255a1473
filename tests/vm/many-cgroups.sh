#!/usr/bin/env bash
# Many cgroups with a task each, and a limit for some, made and removed while a table of workloads is in
# force and not: no error, nothing left behind, and what runs is served. A thousand at a time; run by hand
# with NR=5000.
# only: 7
# vm: --virtual-time --memory 4G
# timeout: 900
. "$(dirname "$0")/lib.bash"

ROOT=/sys/fs/cgroup/many
NR=${NR:-1000}
mkdir -p /tmp/etc $ROOT
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
echo +cpu >$ROOT/cgroup.subtree_control

# Memory of all BPF maps (KiB), and of the agent.
maps_kib() { PATH=$PATH:/usr/sbin bpftool -j map show | jq '[.[] | .bytes_memlock] | add / 1024 | floor'; }
agent_kib() { awk '/VmRSS/ { print $2 }' /proc/$PID/status; }

# Cgroups $1..$2, each with a task that sleeps; every tenth has a limit. Nothing but shells, as programs
# take the emulated machine longer to start than anything here.
make() {
	local i
	(cd $ROOT && seq "$1" "$2" | xargs mkdir)
	for i in $(seq "$1" "$2"); do
		[ $((i % 10)) != 0 ] || echo "50000 100000" >$ROOT/"$i"/cpu.max
		(echo 0 >$ROOT/"$i"/cgroup.procs && read -ru "$NOTHING") &
	done
}

remove() {
	local i
	for i in $(seq "$1" "$2"); do echo 1 >$ROOT/"$i"/cgroup.kill; done
	until have_gone "$1" "$2"; do
		nap 0.05
		(cd $ROOT && seq "$1" "$2" | xargs rmdir 2>/dev/null) || true
	done
}

have_gone() {
	local i
	for i in $(seq "$1" "$2"); do [ ! -d $ROOT/"$i" ] || return 1; done
}

echo 'mode = "packing"' >/tmp/etc/config.toml
start --config /tmp/etc/config.toml
before=$(agent_kib)
make 1 "$NR"
echo "$NR cgroups: maps $(maps_kib) KiB, agent $(agent_kib) KiB, $before before"
for table in '' '[workloads]
spread = ["many/*"]'; do
	printf 'mode = "packing"\n%s\n' "$table" >/tmp/etc/config.toml
	scx_powerpack reload >/dev/null
	powerpack-load workload --seconds 8 light >/tmp/light.json &
	light=$!
	for from in $(seq 1 50 200); do
		remove "$from" $((from + 49))
		make "$from" $((from + 49))
		nap 0.2
	done
	wait $light || fail "the light load beside that: $(cat /tmp/light.json)"
	[ "$(json overruns </tmp/light.json)" = 0 ] || fail "overruns beside that: $(cat /tmp/light.json)"
	kill -0 $PID || fail "the scheduler ended"
done
status_says '^cpu.max of many/10: 50 of 100 ms' || fail "no limit in the status: $(head -20 /tmp/status)"
remove 1 "$NR"
status_says 'cpu.max of' && fail "limits are left: $(grep -c cpu.max /tmp/status)"
echo "none: maps $(maps_kib) KiB, agent $(agent_kib) KiB"
[ "$(agent_kib)" -le $((before + 8192)) ] || fail "the agent has grown from $before to $(agent_kib) KiB"
rmdir $ROOT
stop
