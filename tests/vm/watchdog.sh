#!/usr/bin/env bash
# A deliberate stall: a real-time hog holds a CPU for good, and a task bound to
# it waits. The kernel's watchdog ends the scheduler, which reports why. A report for a bug, made
# while it runs and afterwards, says so too, and has none of the private words planted here.
# Linux 6.12 warns in its deadline server when that is switched off.
# expect-dmesg: sched_ext|stall|kernel/sched/deadline.c
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# The kernel's own remedies against such hogs would help the task.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for server in /sys/kernel/debug/sched/{ext,fair}_server/cpu2/runtime; do
	[ ! -e "$server" ] || echo 0 >"$server" 2>/dev/null || true
done

# Names of this machine, a user, a file, cgroups and a task, and an address.
plant() {
	echo planted-host >/proc/sys/kernel/hostname
	cp /etc/passwd /tmp/passwd
	echo 'planteduser:x:1234:1234::/home/planteduser:/bin/sh' >>/tmp/passwd
	mount --bind /tmp/passwd /etc/passwd
	export SUDO_USER=planteduser HOME=/home/planteduser
	ip addr add 192.0.2.77/32 dev lo
	mkdir -p '/tmp/planted by planteduser' $CGROUPS/planted.slice
	echo +cpu >$CGROUPS/cgroup.subtree_control
	echo '50000 100000' >$CGROUPS/planted.slice/cpu.max
	ln -s "$(command -v sh)" '/tmp/planted (a: b'
	cat >'/tmp/planted by planteduser/config.toml' <<-'TOML'
		metrics = "192.0.2.77:9994"
		[workloads]
		pack = ["planted.slice", "nothing-planted*.service"]
	TOML
}

# Report $1 has these lines, and nothing private.
report_has() {
	local file=$1 line id
	shift
	for line in "$@"; do
		grep -Eq -- "$line" "$file" || fail "the report does not say '$line': $(cat "$file")"
	done
	id=$(cat /etc/machine-id 2>/dev/null) || true
	for line in planted "${id:-planted}" '([0-9]{1,3}\.){3}[0-9]' '([0-9a-f]{2}:){5}'; do
		! grep -Ei -- "$line" "$file" || fail "the report says '$line'"
	done
}

rm -f /tmp/report
plant
SCX_TIMEOUT_MS=3000 start --config '/tmp/planted by planteduser/config.toml'
scx_powerpack report /tmp/report >/dev/null
report_has /tmp/report "command line: --config FILE$" 'ADDRESS:9994' 'pack = \["cgroup-1", "cgroup-2\*"\]' \
	'cpu.max of cgroup-1: 50 of 100 ms' '"cgroup":"cgroup-1"' '^root/ops: powerpack' 'BPF scheduler .* enabled'
refused 'is there already' scx_powerpack report /tmp/report
setpriv --reuid 65534 --clear-groups -- "$(command -v scx_powerpack)" report - >/tmp/report
report_has /tmp/report 'not as root' 'run the report with sudo' '"mode":"packing"'

timeout 60 taskset -c 2 '/tmp/planted (a: b' -c 'while :; do :; done' >/dev/null 2>&1 &
planted=$!
sleep 0.5
timeout 9 chrt -f 50 taskset -c 2 sh -c 'while :; do :; done' &
hog=$!
sleep 0.5
powerpack-load hogs --seconds 1 --count 1 --pin 2 >/dev/null &
waiting=$!
status=0
wait $PID || status=$?
[ $status = 4 ] || fail "exit status $status after a stall"
grep -q 'the kernel ended the scheduler' $LOG || fail "the end is not reported"
grep -qi 'stall' $LOG || fail "the reason is not reported"
# Its report shows the active set, the CPU and its queue, and of the tasks there.
for line in 'powerpack: [1-4] CPUs active, ceiling 4' 'node 0: ranks active before [1-4], room' 'powerpack: rank 2, surplus' 'powerpack: queue 1026, waits'; do
	grep -Eq "$line" $LOG || fail "the report does not say '$line'"
done
kernel_is_back
grep -q 'planted (a: b\[' $LOG || fail "the planted task is not what stalled: $(tail -n 1 $LOG)"
scx_powerpack report - >/tmp/report
report_has /tmp/report 'is not running' 'disabled \(runnable task stall' 'TASK\[[0-9]+\] failed to run'
kill $planted
wait $hog || true
wait $waiting || fail "the task was lost"
