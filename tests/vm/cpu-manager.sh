#!/usr/bin/env bash
# Cpusets as the kubelet's static CPU manager sets them: some containers own whole CPUs, all others
# share the rest, which shrinks and grows while their tasks run and wait. Each has all of its CPUs and
# no other, and the light load of one that shares is packed in what is shared.
# vm: --slow-virtual-time --topology sockets=2,cores=2,threads=2
. "$(dirname "$0")/lib.bash"

PODS=$CGROUPS/kubepods

# Container $1, which may use CPUs $2.
container() {
	mkdir -p "$PODS/pod-$1"
	echo +cpuset +cpu >"$PODS/pod-$1/cgroup.subtree_control"
	mkdir -p "$PODS/pod-$1/$1"
	echo "$2" >"$PODS/pod-$1/$1/cpuset.cpus"
}

# Run $2.. in container $1.
in_container() { run_in "kubepods/pod-$1/$1" "${@:2}"; }

# The containers that share may use CPUs $1 from now on.
share() {
	local name
	for name in busy light; do echo "$1" >"$PODS/pod-$name/$name/cpuset.cpus"; done
}

# Container $1 uses CPUs $2.. all of the time but for what the test itself takes, and its tasks no other.
has_all_of() {
	local cgroup=kubepods/pod-$1/$1 pct
	shift
	only_on "$cgroup" "$@"
	pct=$(pct_of "$cgroup" 1)
	echo "$cgroup: $pct % of a CPU, of CPUs $*"
	[ "$pct" -ge $((90 * $#)) ] || fail "$cgroup has $pct % of a CPU, of CPUs $*"
	only_on "$cgroup" "$@"
}

end_container() { end_cgroups "kubepods/pod-$1/$1" "kubepods/pod-$1"; }

for dir in "$CGROUPS" "$PODS"; do
	mkdir -p "$dir"
	echo +cpuset +cpu >"$dir/cgroup.subtree_control"
done
start --mode packing
container owner 2-3
container busy 0-1,4-7
container light 0-1,4-7
in_container owner powerpack-load hogs --seconds 60 --count 1 >/dev/null &

echo "packed in what is shared"
in_container light powerpack-load workload --seconds 6 --settle 1 light >/tmp/light.json
# What the hog does takes the emulated machine's time from the others, so they use more: beside two hogs
# half of a CPU, of which some is spilled.
json_list non_idle_pct </tmp/light.json | awk '{
	for (i = 1; i <= NF; i++) if (i != 3 && i != 4) { all += $i; if ($i > most) most = $i }
	print "non-idle " $0 " %; beyond the busiest " all - most
	exit !(all - most <= 5)
}' || fail "the light load beside a container that owns CPUs: $(cat /tmp/light.json)"
[ "$(json overruns </tmp/light.json)" = 0 ] || fail "overruns: $(cat /tmp/light.json)"
in_container owner powerpack-load hogs --seconds 60 --count 1 >/dev/null &
nap 1
has_all_of owner 2 3

echo "the shared CPUs shrink and grow while tasks run and wait"
in_container busy powerpack-load hogs --seconds 60 --count 9 >/dev/null &
nap 1
has_all_of busy 0 1 4 5 6 7
# First they are taken from all who share, then the new container has them.
share 0-1
container second 4-7
in_container second powerpack-load hogs --seconds 60 --count 5 >/dev/null &
nap 1
has_all_of busy 0 1
has_all_of second 4 5 6 7
has_all_of owner 2 3
end_container second
share 0-1,4-7
nap 0.5
has_all_of busy 0 1 4 5 6 7
# Back and forth, with nothing between.
for nr in $(seq 20); do
	share 0-1,4-$((4 + nr % 4))
	nap 0.02
done
has_all_of busy 0 1 4
end_container owner
share 0-7
nap 0.5
has_all_of busy 0 1 2 3 4 5 6 7
end_container busy
end_container light
rmdir "$PODS"
stop
