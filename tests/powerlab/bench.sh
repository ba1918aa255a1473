#!/usr/bin/env bash
# The benchmark where there are frequencies, idle states and a meter: all of that is filled in, and
# the power is the machine's.
# machine: chromebook2
# timeout: 900
. "$(dirname "$0")/lib.bash"

cat >/tmp/suite.toml <<'TOML'
about = "a test"
[[run]]
workload = "4/10"
seconds = 3
settle = 1
overhead = true
TOML
cd /tmp || exit
govern schedutil
begin=$(energy_nj) began=${EPOCHREALTIME/./}
scx_powerpack bench --suite /tmp/suite.toml --against eevdf,packing --runs 1 --out /tmp/bench >/tmp/bench.log 2>&1 ||
	fail "bench: $(cat /tmp/bench.log)"
mean_mw=$((($(energy_nj) - begin) / (${EPOCHREALTIME/./} - began)))

# The figure $2 under system $1.
figure() {
	python3 - "$@" <<'PYTHON'
import json, sys
runs = json.load(open("/tmp/bench/results.json"))["runs"]
figures = [run["figures"].get(sys.argv[2]) for run in runs if run["system"] == sys.argv[1]]
print("missing" if None in figures or not figures else figures[0])
PYTHON
}
for name in power_w frequency_mhz deepest_idle_pct overruns_pct overhead_pct; do
	for system in eevdf packing; do
		value=$(figure $system $name)
		echo "$system: $name $value"
		[ "$value" != missing ] || fail "$name is not measured under $system"
	done
done
# Of what it does: the settling of systems, the two ends of OH and the runs.
for system in eevdf packing; do
	awk -v w="$(figure $system power_w)" -v mean_mw=$mean_mw \
		'BEGIN { exit !(w * 1000 > mean_mw / 3 && w * 1000 < mean_mw * 3) }' ||
		fail "$(figure $system power_w) W under $system, of $mean_mw mW on average"
done
[ "$(<$CPUS/cpu4/cpufreq/scaling_governor)" = schedutil ] || fail "the governor is not put back"
