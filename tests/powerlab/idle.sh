#!/usr/bin/env bash
# The idle governors choose states as pm_qos and our --idle-latency-us allow; what was set is put
# back, by the next start too if we are killed.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

# How often CPU $1 entered states above number 0.
deep() {
	local sum=0 file
	for file in $CPUS/cpu"$1"/cpuidle/state[1-9]/usage; do sum=$((sum + $(<"$file"))); done
	echo $sum
}
qos() { cat $CPUS/cpu"$1"/power/pm_qos_resume_latency_us; }

# CPU $1, which wakes every 50 ms, goes deep ($2: yes or no); $3 says what it is under.
goes_deep() {
	local before times
	before=$(deep "$1")
	taskset -c "$1" powerpack-load periodic --seconds 2 1/50 >/dev/null
	times=$(($(deep "$1") - before))
	echo "$3: CPU $1 went deep $times times in 2 s"
	if [ "$2" = yes ]; then [ $times -gt 20 ]; else [ $times -le 1 ]; fi || fail "$3: $times times"
}

[ "$(<$CPUS/cpuidle/current_governor)" = menu ] || fail "the governor is not the machine's"
grep -q cluster $CPUS/cpu4/cpuidle/state2/desc || fail "the cluster has no state"
goes_deep 4 yes menu
echo 100 >$CPUS/cpu4/power/pm_qos_resume_latency_us
goes_deep 4 no "pm_qos of 100 us"
echo 0 >$CPUS/cpu4/power/pm_qos_resume_latency_us
echo teo >$CPUS/cpuidle/current_governor
goes_deep 4 yes teo
echo menu >$CPUS/cpuidle/current_governor

echo "an exit latency is paid"
delay() { taskset -c 4 powerpack-load --json periodic --seconds 2 1/50 | summary wake_latency p50_us; }
set_mhz 4 2000
allow_idle 0
shallow=$(delay)
allow_idle 2
deep=$(delay)
echo "half of the wake-ups take at most $shallow us from WFI, and $deep us from off"
[ $((${deep%.*} - ${shallow%.*})) -ge 450 ] || fail "off is left in no time"
govern schedutil

echo "--idle-latency-us"
for cpu in {0..7}; do [ "$(qos "$cpu")" = 0 ] || fail "CPU $cpu has $(qos "$cpu") before"; done
start --mode spread --idle-latency-us 100
for cpu in {0..7}; do [ "$(qos "$cpu")" = 100 ] || fail "CPU $cpu has $(qos "$cpu")"; done
goes_deep 4 no "spread with --idle-latency-us 100"
stop
[ "$(qos 4)" = 0 ] || fail "CPU 4 has $(qos 4) after the end"
goes_deep 4 yes "after the end"
start --mode spread --idle-latency-us 100
stop KILL 137
[ "$(qos 4)" = 100 ] || fail "CPU 4 has $(qos 4) after a kill"
start --mode packing
[ "$(qos 4)" = 0 ] || fail "CPU 4 has $(qos 4) after the next start"
stop
