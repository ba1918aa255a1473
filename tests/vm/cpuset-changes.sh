#!/usr/bin/env bash
# Cpusets that overlap share the CPU that they have in common, and light loads in them are packed. One
# whose CPUs are taken away, or that is removed, while tasks are queued in it, nested: they run where
# they may from then on, on all of these CPUs and on no other.
# vm: --slow-virtual-time --topology sockets=2,cores=2,threads=2
. "$(dirname "$0")/lib.bash"

echo +cpuset +cpu >$CGROUPS/cgroup.subtree_control

# A cpuset $1 of CPUs $2.
cpuset() {
	mkdir -p "$CGROUPS/$1"
	echo "$2" >"$CGROUPS/$1/cpuset.cpus"
}

# The tasks of cgroup $1, hogs, keep all CPUs that they may use busy: $2.., and no other.
uses_all_of() {
	local cgroup=$1 pct
	shift
	nap 0.3
	only_on "$cgroup" "$@"
	pct=$(pct_of "$cgroup" 0.7)
	echo "hogs in $cgroup, which may use $*: $pct % of a CPU"
	[ "$pct" -ge $((96 * $#)) ] || fail "hogs in $cgroup, which may use CPUs $*, have $pct % of a CPU"
}

start --mode packing
echo "overlapping"
cpuset left 0-1
cpuset right 1-2
for set in left right; do
	run_in $set powerpack-load workload --seconds 5 --settle 1 light >/tmp/$set.json &
done
wait $! || fail "the light load: $(cat /tmp/right.json)"
# Two light loads are less than one CPU.
for cpu in 2 3 4 5 6 7; do
	[ "$(busy /tmp/right.json $cpu)" -le 1 ] || fail "light loads in CPUs 0-1 and 1-2 use CPU $cpu: $(cat /tmp/right.json)"
done
for set in left right; do
	run_in $set powerpack-load hogs --seconds 60 --count 3 >/dev/null &
done
nap 1
pct=("$(pct_of left 2)" "$(pct_of right 2)")
echo "hogs in CPUs 0-1 and 1-2: ${pct[*]} % of a CPU"
for nr in 0 1; do
	[ "${pct[nr]}" -ge 140 ] && [ "${pct[nr]}" -le 160 ] || fail "hogs in cpusets that share a CPU have ${pct[*]} % of a CPU"
done
end_cgroups left right

echo "taken away, and removed, while tasks are queued"
cpuset outer 1-3
echo +cpuset +cpu >$CGROUPS/outer/cgroup.subtree_control
cpuset outer/inner 3
run_in outer/inner powerpack-load hogs --seconds 60 --count 9 >/dev/null &
nap 1
uses_all_of outer/inner 3
# It has none of its own left, so the kernel gives it those of the one above.
echo 1-2 >$CGROUPS/outer/cpuset.cpus
uses_all_of outer/inner 1 2
echo 0 >$CGROUPS/outer/cpuset.cpus
uses_all_of outer/inner 0
echo -cpuset >$CGROUPS/outer/cgroup.subtree_control
uses_all_of outer/inner 0
echo 0-7 >$CGROUPS/outer/cpuset.cpus
uses_all_of outer/inner 0 1 2 3 4 5 6 7
echo 2 >$CGROUPS/outer/cpuset.cpus
uses_all_of outer/inner 2
# Removed with its tasks still queued: they go on where they are put.
cpuset two 4-5
while read -r pid; do echo "$pid" >$CGROUPS/two/cgroup.procs; done <$CGROUPS/outer/inner/cgroup.procs
rmdir $CGROUPS/outer/inner $CGROUPS/outer
uses_all_of two 4 5
end_cgroups two
stop
