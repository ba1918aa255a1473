# shellcheck shell=bash
# What the tests in the laboratory kernel share. Sourced, not run.
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.bash"

TRUTH=/sys/kernel/debug/powerlab/truth
CPUS=/sys/devices/system/cpu
[ -e $TRUTH ] || fail "this kernel has no machine: scripts/vm --machine NAME"

# Have all clocks, or the one of CPU $2, governed by $1.
govern() {
	local file
	for file in $CPUS/cpu${2:-[0-9]*}/cpufreq/scaling_governor; do echo "$1" >"$file"; done
}

# Set the clock of CPU $1 to $2 MHz, for good.
set_mhz() {
	govern userspace "$1"
	echo $(($2 * 1000)) >$CPUS/cpu"$1"/cpufreq/scaling_setspeed
}

mhz_of() { echo $(($(<$CPUS/cpu"$1"/cpufreq/scaling_cur_freq) / 1000)); }

# How often the clock of CPU $1 has changed.
changes_of() {
	local domain
	domain=$(awk -v cpu="$1" '$1 == "cpu" && $2 == cpu { print $10 }' $TRUTH)
	awk -v domain="$domain" '$1 == "domain" && $2 == domain { print $6 }' $TRUTH
}

# Allow idle states up to number $1 alone.
allow_idle() {
	local state
	for state in $CPUS/cpu*/cpuidle/state*; do
		echo $((${state##*state} > $1)) >"$state/disable"
	done
}

# What the machine has used until now (nJ).
energy_nj() { awk '$3 == "nj" { sum += $4 } END { printf "%.0f", sum }' $TRUTH; }

# $1 must be within $3 % of $2; $4 says what it is.
within() {
	awk -v is="$1" -v must="$2" -v pct="$3" 'BEGIN {
		apart = is - must; if (apart < 0) apart = -apart
		exit !(apart <= must * pct / 100) }' || fail "$4: $1, not $2 within $3 %"
	echo "$4: $1, by hand $2"
}

# A number of the summary $1 (response, wake_latency) of all tasks of a load, out of its JSON on stdin.
summary() { sed "s/.*\"$1\":{[^}]*\"$2\":\([0-9.]*\).*/\1/"; }
