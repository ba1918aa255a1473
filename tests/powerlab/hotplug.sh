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
	local cpu begin_ns begin_nj end_ns end_nj
	for cpu in 4 5 6 7; do echo 0 >$CPUS/cpu$cpu/online; done
	nap 0.1
	read -r begin_ns begin_nj < <(cluster)
	nap 1
	read -r end_ns end_nj < <(cluster)
	for cpu in 4 5 6 7; do echo 1 >$CPUS/cpu$cpu/online; done
	within $(((end_nj - begin_nj) * 1000 / ((end_ns - begin_ns) / 1000))) 50000 3 "the A15s, offline (uW)"
}
# Time (ns), and what the A15s and their cluster have used (nJ).
cluster() {
	awk '$1 == "machine" { ns = $4 } $1 == "core" && $2 >= 4 || $1 == "cluster" && $2 == 1 { sum += $4 }
		END { printf "%.0f %.0f\n", ns, sum }' $TRUTH
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
