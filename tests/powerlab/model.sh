#!/usr/bin/env bash
# Mode energy by the kernel's energy model and the exit latencies of its idle states: on this machine
# runs of a millisecond and more are worth waking another small core, and shorter ones are not.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

# The small CPUs that were non-idle for more than $1 % while load $2.. ran.
small_used() {
	local pct=$1
	shift
	powerpack-load --json "$@" --settle 1 --seconds 3 >/tmp/load.json
	json_list non_idle_pct </tmp/load.json | awk -v pct="$pct" '{ for (i = 1; i <= 4; i++) n += $i > pct; print n + 0 }'
}

govern schedutil
start --mode energy
grep -q "mode energy goes by the kernel's energy model" $LOG || fail "it does not say what it goes by: $(cat $LOG)"
nap 1
# Wake at the same instant: 0.4 ms of the fastest CPU are two here, and packing lets the third wait for them.
long=$(small_used 5 periodic '0.4/20*3')
[ "$long" -ge 3 ] || fail "three runs of two ms use $long small CPUs: $(cat /tmp/load.json)"
short=$(small_used 5 workload tiny)
[ "$short" -le 1 ] || fail "short runs use $short small CPUs: $(cat /tmp/load.json)"
scx_powerpack mode packing >/dev/null
packed=$(small_used 5 periodic '0.4/20*3')
echo "long runs use $long small CPUs in energy, $packed in packing; short ones $short"
[ "$packed" -lt "$long" ] || fail "packing uses $packed CPUs for long runs too"
stop
