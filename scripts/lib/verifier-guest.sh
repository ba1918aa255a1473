#!/usr/bin/env bash
# In the VM: load the scheduler and tell how long that took and what was verified.
set -euo pipefail
log=/tmp/verifier.log

# Load with these options, and unload; took_us is from start to attached.
load() {
	local begin=${EPOCHREALTIME/./}
	: >$log
	scx_powerpack "$@" >$log 2>&1 &
	until grep -q attached $log; do
		kill -0 $! || { cat $log && exit 1; }
		sleep 0.002
	done
	took_us=$((${EPOCHREALTIME/./} - begin))
	kill -INT $!
	wait $!
}

# The first of all waits until the kernel has read its own BTF.
load
load
echo "kernel $(uname -r) attached after $((took_us / 1000)) ms"
load -v
grep verified $log
