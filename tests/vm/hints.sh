#!/usr/bin/env bash
# Idle and frequency hints, on a sysfs that says it has them: in force by mode, put back at the
# end, and after a kill by the next one.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

export SCX_SYSFS_PREFIX=/tmp/hinted
cpus=$SCX_SYSFS_PREFIX/sys/devices/system/cpu
mkdir -p $cpus/cpufreq $SCX_SYSFS_PREFIX/sys/devices/system/node
for list in possible present online isolated; do
	cat /sys/devices/system/cpu/$list >$cpus/$list
done
for cpu in 0 1 2 3; do
	cp -r /sys/devices/system/cpu/cpu$cpu $cpus/ 2>/dev/null || true
	mkdir -p $cpus/cpu$cpu/power $cpus/cpufreq/policy$cpu
	rm -f $cpus/cpu$cpu/power/pm_qos_resume_latency_us
	echo 0 >$cpus/cpu$cpu/power/pm_qos_resume_latency_us
	echo "default performance balance_performance balance_power power" \
		>$cpus/cpufreq/policy$cpu/energy_performance_available_preferences
	echo balance_performance >$cpus/cpufreq/policy$cpu/energy_performance_preference
done
[ ! -e /sys/devices/system/node/node0 ] ||
	cp -r /sys/devices/system/node/node0 $SCX_SYSFS_PREFIX/sys/devices/system/node/ 2>/dev/null || true

# The lines of files, which may have no end, in one.
lines() { for file in "$@"; do echo "$(<"$file")"; done; }
latencies() { lines $cpus/cpu?/power/pm_qos_resume_latency_us | tr '\n' ' '; }
preferences() { lines $cpus/cpufreq/policy?/energy_performance_preference | sort -u | tr '\n' ' '; }

# Latencies must become $1 and preferences $2.
becomes() {
	local i
	for i in $(seq 100); do
		if [ "$(latencies)" = "$1 " ] && [ "$(preferences)" = "$2 " ]; then
			return
		fi
		sleep 0.1
	done
	fail "latencies $(latencies), not $1; preferences $(preferences), not $2 ($i looks)"
}

# After a switch to mode $1 latencies must become $2 and preferences $3.
in_mode() {
	scx_powerpack mode "$1" >/dev/null
	becomes "$2" "$3"
}

config=/tmp/hints.toml
printf 'mode = "spread"\n[hints]\nidle_latency_us = 200\nepp.packing = "power"\nepp.spread = "performance"\n' >$config
start --config $config
becomes '200 200 200 200' performance
in_mode packing '200 0 0 0' power
in_mode balance '200 200 200 200' balance_performance
stop
becomes '0 0 0 0' balance_performance

echo "killed: the next one puts it back, whatever it wants itself"
start --config $config
becomes '200 200 200 200' performance
stop KILL 137
becomes '200 200 200 200' performance
start --mode packing
becomes '0 0 0 0' balance_performance
stop

echo "killed: the next one puts it back, also where it is refused itself"
start --config $config
becomes '200 200 200 200' performance
stop KILL 137
refused "unknown mode 'turbo'" scx_powerpack --mode turbo
becomes '0 0 0 0' balance_performance

echo "the command line goes first; what is wrong is refused before anything is loaded"
start --config $config --mode packing --idle-latency-us any
becomes '0 0 0 0' power
echo 'mode = "packing"' >$config
becomes '0 0 0 0' balance_performance
stop
printf '[hints]\nepp.packing = "eco"\n' >$config
refused 'eco' scx_powerpack --config $config
refused 'eco' scx_powerpack config check --config $config
becomes '0 0 0 0' balance_performance

echo "with the governor performance amd_pstate lists and takes no other preference: it waits"
for cpu in 0 1 2 3; do
	echo amd-pstate-epp >$cpus/cpufreq/policy$cpu/scaling_driver
	echo performance >$cpus/cpufreq/policy$cpu/scaling_governor
	echo performance >$cpus/cpufreq/policy$cpu/energy_performance_preference
	cp $cpus/cpufreq/policy$cpu/energy_performance_available_preferences /tmp/available
	echo performance >$cpus/cpufreq/policy$cpu/energy_performance_available_preferences
done
printf '[hints]\nepp.packing = "balance_power"\n' >$config
start --config $config
becomes '0 0 0 0' performance
for cpu in 0 1 2 3; do
	cp /tmp/available $cpus/cpufreq/policy$cpu/energy_performance_available_preferences
	echo balance_performance >$cpus/cpufreq/policy$cpu/energy_performance_preference
	echo powersave >$cpus/cpufreq/policy$cpu/scaling_governor
done
becomes '0 0 0 0' balance_power
stop
becomes '0 0 0 0' balance_performance

echo "where the hardware hears the preference alone, it goes with the mode unasked, on battery"
battery=$SCX_SYSFS_PREFIX/sys/class/power_supply/BAT0
mkdir -p $battery
echo Battery >$battery/type
echo Discharging >$battery/status
for cpu in 0 1 2 3; do
	echo intel_pstate >$cpus/cpufreq/policy$cpu/scaling_driver
	echo powersave >$cpus/cpufreq/policy$cpu/scaling_governor
done
start --mode packing
becomes '0 0 0 0' balance_power
in_mode spread '0 0 0 0' balance_performance
in_mode energy '0 0 0 0' balance_power
echo Charging >$battery/status
becomes '0 0 0 0' balance_performance
echo Discharging >$battery/status
becomes '0 0 0 0' balance_power
stop
becomes '0 0 0 0' balance_performance
