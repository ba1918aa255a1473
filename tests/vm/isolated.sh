#!/usr/bin/env bash
# Four cores of two threads, the last one isolated (nohz_full): only tasks bound to it run there,
# in every mode. One that is alone there has no ticks, and lets others run all the same. Run with
# "eevdf" it shows the same figures of the kernel's own scheduler.
# vm: --slow-virtual-time --topology sockets=1,cores=4,threads=2 --append nohz_full=6,7
# only: 7
. "$(dirname "$0")/lib.bash"

[ "$(cat /sys/devices/system/cpu/nohz_full)" = 6-7 ] || fail "this kernel knows no nohz_full"
last=$(scx_powerpack topology | awk 'END { print $2 }')
[ "$last" = 7 ] || fail "isolated CPUs are not the last: $(scx_powerpack topology)"
[ "${1:-}" = eevdf ] || start --mode packing
modes='packing balance spread energy'
[ "${1:-}" != eevdf ] || modes=''
for mode in $modes; do
	scx_powerpack mode $mode >/dev/null
	powerpack-load hogs --seconds 3 --count 12 >/tmp/hogs.json
	for cpu in 0 1 2 3 4 5; do
		[ "$(busy /tmp/hogs.json $cpu)" -ge 60 ] || fail "in $mode CPU $cpu is idle: $(cat /tmp/hogs.json)"
	done
	for cpu in 6 7; do
		[ "$(busy /tmp/hogs.json $cpu)" -le 5 ] || fail "$mode uses an isolated CPU: $(cat /tmp/hogs.json)"
	done
done
powerpack-load hogs --seconds 3 --count 1 --pin 7 >/tmp/hogs.json
[ "$(busy /tmp/hogs.json 7)" -ge 60 ] || fail "a pinned task does not run: $(cat /tmp/hogs.json)"

ticks_of_7() { awk '$1 == "LOC:" { print $9 }' /proc/interrupts; }

powerpack-load hogs --seconds 5 --count 1 --pin 7 >/tmp/hog.json &
hog=$!
nap 2
before=$(ticks_of_7)
nap 2
ticks=$(($(ticks_of_7) - before))
wait $hog
echo "alone: $ticks timer interrupts in 2 s"
# 500 at HZ=250; 25 to 61 with what other timers there are, and under EEVDF the same.
[ $ticks -le 150 ] || fail "a task alone on an isolated CPU had $ticks ticks in 2 s"

powerpack-load hogs --seconds 5 --count 1 --pin 7 >/tmp/hog.json &
hog=$!
nap 1
taskset -c 7 powerpack-load periodic --seconds 3 '0.05/7' >/tmp/probe.json
wait $hog
longest=$(sed 's/.*"wake_latency":{[^}]*"max_us":\([0-9]*\).*/\1/' /tmp/probe.json)
echo "a thread beside it: $(sed 's/.*"wake_latency":{\([^}]*\)}.*/\1/' /tmp/probe.json)"
[ "$longest" -le 4500 ] || fail "a thread beside a task without ticks waits: $(cat /tmp/probe.json)"
[ "$(json activations </tmp/probe.json)" -ge 400 ] || fail "it ran too seldom: $(cat /tmp/probe.json)"

powerpack-load hogs --seconds 4 --count 2 --pin 7 >/tmp/hogs.json
json_list cpu_s </tmp/hogs.json | awk '{ exit !($1 > 1.7 && $2 > 1.7) }' ||
	fail "two on an isolated CPU do not share it: $(cat /tmp/hogs.json)"

echo "one with a limit, beside one that runs without ticks while the other is held"
echo +cpu >$CGROUPS/cgroup.subtree_control
mkdir -p $CGROUPS/limited
echo "20000 100000" >$CGROUPS/limited/cpu.max
powerpack-load hogs --seconds 8 --count 1 --pin 7 >/tmp/hog.json &
hog=$!
run_in limited powerpack-load hogs --seconds 7 --count 1 --pin 7 >/tmp/limited.json &
limited=$!
nap 1
pct=$(pct_of limited 5)
wait $hog $limited
echo "it uses $pct % of the CPU, of 20"
# 2 where it waits for the kernel's tick of once a second.
[ "$pct" -ge 17 ] || fail "a task with cpu.max on an isolated CPU has $pct % of it, not 20"
[ "${1:-}" = eevdf ] || stop

echo "one that is not there as the scheduler is loaded is isolated when it has come"
if [ "${1:-}" != eevdf ]; then
	echo 0 >/sys/devices/system/cpu/cpu7/online
	start --mode spread
	echo 1 >/sys/devices/system/cpu/cpu7/online
	attached_times 2
	powerpack-load hogs --seconds 3 --count 12 >/tmp/hogs.json
	[ "$(busy /tmp/hogs.json 7)" -le 5 ] || fail "an isolated CPU that has come is used: $(cat /tmp/hogs.json)"
	stop
fi
