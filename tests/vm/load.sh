#!/usr/bin/env bash
# Load and unload in both modes; every way to end it brings the kernel back.
# also: debian-7-rt
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

for mode in packing balance spread energy; do
	start --mode $mode
	[ "$(scx_powerpack mode)" = $mode ] || fail "mode is not $mode"
	[[ $(scx_powerpack status --json) == *"\"mode\":\"$mode\""* ]] || fail "the JSON does not say $mode"
	status_says "mode $mode" || fail "status does not say $mode"
	stop INT
	grep -q "the kernel's own scheduler is back" $LOG || fail "it did not say so"
done
start && stop TERM
start && stop KILL 137
start && stop INT
# Kicked out by the kernel: reported with its reason, and not a success.
start
echo S >/proc/sysrq-trigger
status=0
wait $PID || status=$?
[ $status = 4 ] || fail "exit status $status after SysRq-S"
grep -qi sysrq $LOG || fail "the reason is not reported"
kernel_is_back
