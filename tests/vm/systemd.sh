#!/usr/bin/env bash
# The service under a real systemd: start at boot, readiness, reload, stop, crash, watchdog,
# a limit to restarts; with the sandbox of the unit.
# timeout: 600
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/box.bash"

# The service's journal must match $1.
journal_has() {
	box journalctl --no-pager -u scx_powerpack -o cat >/tmp/journal
	grep -qiE "$1" /tmp/journal || fail "the journal has no '$1': $(tail -n 20 /tmp/journal)"
}

mode_is() { [ "$(box_mode)" = "$1" ] || fail "mode is not $1: $(box_mode)"; }

box_prepare
echo "start at boot"
mkdir -p $BOX/etc/systemd/system/multi-user.target.wants
ln -s ../scx_powerpack.service $BOX/etc/systemd/system/multi-user.target.wants/
box_boot
box_service_is 30 ActiveState active
[ "$(cat $SCX/state)" = enabled ] || fail "ready, but the scheduler is $(cat $SCX/state)"
[ "$(box_systemctl show -P StatusText scx_powerpack)" = "mode packing" ] || fail "status: $(box_systemctl show -P StatusText scx_powerpack)"
mode_is packing

echo "what the sandbox leaves it"
# CAP_PERFMON and CAP_BPF are bits 38 and 39; a filter of system calls is mode 2.
for line in 'CapEff:.000000c000000000' 'CapBnd:.000000c000000000' 'NoNewPrivs:.1' 'Seccomp:.2'; do
	box grep -q "^$line$" "/proc/$(box_systemctl show -P MainPID scx_powerpack)/status" || fail "the service has not $line"
done

echo "reload, by systemctl, by SIGHUP, and by itself"
config=$BOX/etc/scx_powerpack/config.toml
echo 'mode = "balance"' >$config
box_systemctl reload scx_powerpack || fail "no reload"
mode_is balance
seq_before=$(cat $SCX/enable_seq)
echo 'mode = "spread"' >$config.new
mv $config.new $config
for _ in $(seq 50); do
	[ "$(box_mode)" != spread ] || break
	sleep 0.1
done
mode_is spread
box_mode packing >/dev/null
box_systemctl kill -s HUP scx_powerpack
sleep 1
mode_is spread
printf 'mode = "spread"\nmod = 1\n' >$config
! box_systemctl reload scx_powerpack 2>/dev/null || fail "a mistake was accepted"
sleep 1
mode_is spread
journal_has 'line 2: unknown field `mod`'
[ "$(cat $SCX/enable_seq)" = "$seq_before" ] || fail "a reload has loaded the scheduler again"
echo 'mode = "spread"' >$config

echo "interrupts, through the sandbox"
irq=''
for dir in /proc/irq/*/*/; do
	of_device=${dir%/*/}
	{ echo "$(<"$of_device"/smp_affinity_list)" >"$of_device"/smp_affinity_list; } 2>/dev/null || continue
	[[ $(<"$of_device"/effective_affinity_list) != [1-3] ]] || irq=$of_device
done
# The interrupt must be allowed to come to $1.
irq_comes_to() {
	for _ in $(seq 100); do
		[ "$(<"$irq"/smp_affinity_list)" != "$1" ] || return 0
		sleep 0.1
	done
	fail "$irq may come to $(<"$irq"/smp_affinity_list), not $1"
}
if [ -n "$irq" ]; then
	anywhere=$(<"$irq"/smp_affinity_list)
	printf 'mode = "packing"\n[policy]\nmax_cores = 1\n[hints]\nirqs = "follow"\n' >$config
	box_systemctl reload scx_powerpack || fail "interrupts that cannot be moved are in the way of the rest"
	journal_has 'read-only here.*ProtectKernelTunables=no'
	mkdir -p $BOX/run/systemd/system/scx_powerpack.service.d
	printf '[Service]\nProtectKernelTunables=no\n' >$BOX/run/systemd/system/scx_powerpack.service.d/irqs.conf
	box_systemctl daemon-reload
	box_systemctl restart scx_powerpack
	irq_comes_to 0
	box_systemctl stop scx_powerpack
	irq_comes_to "$anywhere"
	rm $BOX/run/systemd/system/scx_powerpack.service.d/irqs.conf
	box_systemctl daemon-reload
	echo 'mode = "spread"' >$config
	box_systemctl start scx_powerpack
	box_service_is 30 ActiveState active
else
	echo "no interrupt that may move comes to another CPU than 0"
fi

echo "hints, through the sandbox"
latency=/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us
if [ -e $latency ]; then
	printf 'mode = "spread"\n[hints]\nidle_latency_us = 200\n' >$config
	box_systemctl reload scx_powerpack || fail "no reload"
	[ "$(cat $latency)" = 200 ] || fail "the latency is $(cat $latency), not 200"
else
	echo "this kernel has no bound on idle latencies"
fi

echo "crash: the kernel falls back, the service comes back, so does the policy"
# The process alone: with all of the cgroup systemd may read of it as it dies, which has no
# number any more, and gives up ("Input/output error", seen once).
box_systemctl kill --kill-whom=main -s KILL scx_powerpack
box_service_is 30 NRestarts 1
box_service_is 30 ActiveState active
[ "$(cat $SCX/state)" = enabled ] || fail "restarted, but the scheduler is $(cat $SCX/state)"
mode_is spread
box $BOX_PROGRAMS/scx_powerpack report - >/tmp/report
for line in '  NRestarts=1' '  ActiveState=active' 'Main process exited, code=killed, status=9/KILL' 'attached: mode spread'; do
	grep -q -- "$line" /tmp/report || fail "the report does not say '$line': $(cat /tmp/report)"
done
[ ! -e $latency ] || [ "$(cat $latency)" = 200 ] || fail "after a crash the latency is $(cat $latency)"
echo 'mode = "spread"' >$config
box_systemctl reload scx_powerpack || fail "no reload"
[ ! -e $latency ] || [ "$(cat $latency)" = 0 ] || fail "the latency is not put back: $(cat $latency)"

echo "a CPU that was offline at first: the service loads again, and goes on"
last=/sys/devices/system/cpu/cpu3/online
echo 0 >$last
box_systemctl restart scx_powerpack
box_service_is 30 ActiveState active
box_mode packing >/dev/null
restarts=$(box_systemctl show -P NRestarts scx_powerpack) seq_before=$(<$SCX/enable_seq)
echo 1 >$last
for _ in $(seq 300); do
	[ "$(<$SCX/enable_seq)" = "$seq_before" ] || break
	sleep 0.1
done
journal_has 'the set of CPUs has changed: loading again'
mode_is packing
# Not deactivating, after which systemd would kill it.
box_service_is 1 SubState running
[ "$(box_systemctl show -P NRestarts scx_powerpack)" = "$restarts" ] || fail "the service was started again"
box_systemctl reload scx_powerpack || fail "no reload"

echo "watchdog: an agent that hangs is ended and started again"
mkdir -p $BOX/run/systemd/system/scx_powerpack.service.d
printf '[Service]\nWatchdogSec=3\n' >$BOX/run/systemd/system/scx_powerpack.service.d/watchdog.conf
box_systemctl daemon-reload
box_systemctl restart scx_powerpack
box_service_is 30 ActiveState active
sleep 8
[ "$(box_systemctl show -P NRestarts scx_powerpack)" = 0 ] || fail "the watchdog bites a live one"
box_systemctl kill -s STOP scx_powerpack
box_service_is 40 NRestarts 1
box_service_is 30 ActiveState active
journal_has watchdog

echo "stop, and start while another holds the kernel"
box_systemctl stop scx_powerpack
kernel_is_back
# The starts so far count.
box_systemctl reset-failed scx_powerpack
[ "$(box_systemctl show -P Result scx_powerpack)" = success ] || fail "stop: $(box_systemctl show -P Result scx_powerpack)"
start --mode packing
box_systemctl start scx_powerpack 2>/dev/null && fail "started beside another"
box_service_is 60 ActiveState failed
journal_has 'sched_ext scheduler is loaded|runs already'
# Ours count too, so that it is not three or four.
[ "$(box_systemctl show -P NRestarts scx_powerpack)" -ge 6 ] || fail "$(box_systemctl show -P NRestarts scx_powerpack) restarts, and it gives up"
stop
box_systemctl reset-failed scx_powerpack

echo "metrics by the socket unit, which comes and goes with the scheduler"
box_systemctl enable -q scx_powerpack-metrics.socket
box_systemctl start scx_powerpack
box_service_is 30 ActiveState active
python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:9994/metrics", timeout=30).read().decode())' >/tmp/metrics ||
	fail "no metrics: $(box journalctl --no-pager -n 5 -u scx_powerpack -o cat)"
grep -q '^scx_powerpack_mode{mode="spread"} 1' /tmp/metrics || fail "metrics: $(head /tmp/metrics)"
box_systemctl stop scx_powerpack
! python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9994), 2)' 2>/dev/null || fail "the port is still open"
kernel_is_back

echo "killed it stays away, whoever scrapes; and so it does after SysRq-S"
box_systemctl start scx_powerpack
box_service_is 30 ActiveState active
box_systemctl kill --kill-whom=main -s TERM scx_powerpack
box_service_is 30 ActiveState inactive
! python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9994), 2)' 2>/dev/null || fail "the port is still open"
nap 3
box_service_is 1 ActiveState inactive
kernel_is_back
box_systemctl start scx_powerpack
box_service_is 30 ActiveState active
echo S >/proc/sysrq-trigger
box_service_is 30 ActiveState failed
nap 5
box_service_is 1 ActiveState failed
kernel_is_back
box_systemctl reset-failed scx_powerpack

echo "run by scx.service with the drop-in it stays away after SysRq-S too"
# As the package scx has it; that its stop takes some seconds is ours.
cat >$BOX/etc/systemd/system/scx.service <<-'UNIT'
	[Service]
	ExecStart=/bin/false
	ExecStop=/bin/sleep 6
	Restart=on-failure
UNIT
mkdir $BOX/etc/systemd/system/scx.service.d
sed "s:@bindir@:$BOX_PROGRAMS:" "$TREE/packaging/scx.service.d/powerpack.conf.in" >$BOX/etc/systemd/system/scx.service.d/powerpack.conf
box_systemctl daemon-reload
is_attached() {
	for _ in $(seq 300); do
		[ "$(<$SCX/state)" != enabled ] || return 0
		nap 0.1
	done
	fail "scx.service has not loaded it: $(box journalctl --no-pager -n 5 -u scx -o cat)"
}
box_systemctl start scx
is_attached
echo S >/proc/sysrq-trigger
kernel_is_back
nap 5
[ "$(box_systemctl show -P ActiveState scx)" = failed ] || fail "scx.service starts it again"
kernel_is_back

echo "one starts as the other has stopped, at the first try"
printf '[Service]\nExecStop=/bin/sleep 6\n' >$BOX/run/systemd/system/scx_powerpack.service.d/slow.conf
box_systemctl daemon-reload
box_systemctl reset-failed scx
box_systemctl start scx
is_attached
box_systemctl start scx_powerpack || fail "it has not started in place of scx.service"
box_service_is 30 ActiveState active
box_service_is 1 NRestarts 0
box_systemctl start scx
is_attached
[ "$(box_systemctl show -P NRestarts scx)" = 0 ] || fail "scx.service has not waited for the end of ours"
box_systemctl stop scx
kernel_is_back
rm $BOX/run/systemd/system/scx_powerpack.service.d/slow.conf
box_systemctl daemon-reload

echo "shut down while it runs"
box_systemctl start scx_powerpack
box_stop
kernel_is_back
