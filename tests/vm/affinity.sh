#!/usr/bin/env bash
# Pinned and cpuset-restricted tasks run where they may, and only there, also
# when that changes while they wait; the surplus CPU is not avoided for them.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# The tasks of the cpuset that can run are on these two CPUs. (Of one that
# sleeps the kernel reports where it was.)
only_on() {
	local stat
	while read -r pid; do
		stat=$(cut -d')' -f2 "/proc/$pid/stat" 2>/dev/null) || continue
		# shellcheck disable=SC2086 # the fields after the name
		set -- "$1" "$2" $stat
		[ "$3" = R ] || continue
		[ "${39}" = "$1" ] || [ "${39}" = "$2" ] || fail "CPU ${39} runs a task of CPUs $1 and $2"
	done </sys/fs/cgroup/pair/cgroup.threads
}

start --mode packing
# Three hogs pinned to the last CPU, which is surplus.
powerpack-load hogs --seconds 4 --count 3 --pin 3 >/tmp/pin.json
[ "$(busy /tmp/pin.json 3)" -ge 90 ] || fail "CPU 3 is not busy: $(cat /tmp/pin.json)"
[ "$(busy /tmp/pin.json 1)" -le 20 ] || fail "others are: $(cat /tmp/pin.json)"
# A cpuset of two CPUs.
echo +cpuset +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/pair
echo 1-2 >/sys/fs/cgroup/pair/cpuset.cpus
bash -c 'echo $$ >/sys/fs/cgroup/pair/cgroup.procs; exec powerpack-load hogs --seconds 6 --count 4' >/tmp/pair.json &
pair=$!
sleep 2
only_on 1 2
# Moved while it runs and waits.
echo 0,3 >/sys/fs/cgroup/pair/cpuset.cpus
sleep 1
only_on 0 3
wait $pair || fail "the tasks of the cpuset did not finish"
rmdir /sys/fs/cgroup/pair
stop
