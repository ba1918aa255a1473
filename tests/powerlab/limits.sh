#!/usr/bin/env bash
# A limit of the frequency, as a cooling device or a power profile sets it, makes nothing slower than under
# the kernel's scheduler: CPUs are filled by a share of what they can do without the limit, but a task that
# would wait for more than the latency budget for that gets another CPU.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

BUDGET_US=5000
# They need 60 % of a large core, or 120 at half the frequency.
tasks=(1/20 1/20 1/20 1/20 1/20 1/20 1/20 1/20 1/20 1/20 1/20 1/20)

limit() { for file in $CPUS/cpu[4-7]/cpufreq/scaling_max_freq; do echo $(($1 * 1000)) >"$file"; done; }

# The response (us) that 99 % have, and how often a task was late.
measure() {
	taskset -c 4-7 powerpack-load --json periodic --seconds 5 --settle 2 "${tasks[@]}" >/tmp/load
	response_us=$(sed 's/"tasks":\[.*\],"activations"/"activations"/' /tmp/load | summary response p99_us)
	overruns=$(sed 's/"tasks":\[.*\],"activations"/"activations"/; s/.*"overruns":\([0-9]*\).*/\1/' /tmp/load)
	echo "$1: $response_us us, $overruns overruns"
}

govern schedutil
limit 1000
measure eevdf
eevdf_us=$response_us
for mode in packing energy; do
	start --mode $mode
	measure $mode
	stop
	[ "$overruns" = 0 ] || fail "$mode: $overruns overruns"
	awk -v is="$response_us" -v may=$BUDGET_US -v eevdf="$eevdf_us" 'BEGIN { exit !(is <= eevdf + may) }' ||
		fail "$mode: $response_us us, EEVDF's are $eevdf_us"
done
limit 2000
