#!/usr/bin/env bash
# CPUs are offlined and onlined under load, with the kernel's scheduler and with ours: the energy
# goes on, clocks are obeyed, and the kernel does not complain.
# machine: chromebook2
# timeout: 600
. "$(dirname "$0")/lib.bash"

around() {
	local cpu before=0 now
	powerpack-load hogs --count 6 --seconds 3 >/dev/null &
	for cpu in 7 4 1 0 5; do
		[ -e $CPUS/cpu$cpu/online ] || continue
		echo 0 >$CPUS/cpu$cpu/online
		nap 0.1
		echo 1 >$CPUS/cpu$cpu/online
		nap 0.1
		now=$(energy_nj)
		[ "$now" -gt "$before" ] || fail "the energy went from $before to $now"
		before=$now
	done
	wait $!
}

# With all A15s offline 50 mW are left there: 10 of each core and of the cluster.
off() {
	local cpu before after
	for cpu in 4 5 6 7; do echo 0 >$CPUS/cpu$cpu/online; done
	nap 0.1
	before=$(cluster_nj) && nap 1 && after=$(cluster_nj)
	for cpu in 4 5 6 7; do echo 1 >$CPUS/cpu$cpu/online; done
	within $((after - before)) 50000000 3 "the A15s, offline for a second (nJ)"
}
cluster_nj() {
	awk '$1 == "core" && $2 >= 4 || $1 == "cluster" && $2 == 1 { sum += $4 } END { printf "%.0f", sum }' $TRUTH
}

govern schedutil
around
off
for mode in packing spread; do
	start --mode $mode
	around
	stop
done
set_mhz 4 1000
[ "$(mhz_of 7)" = 1000 ] || fail "CPU 7 does not share the clock of CPU 4 any more"
govern schedutil
