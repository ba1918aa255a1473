#!/usr/bin/env bash
# In the VM: load the scheduler and tell how long that took and what was verified.
set -euo pipefail
log=/tmp/verifier.log
begin=${EPOCHREALTIME/./}
scx_powerpack -v >$log 2>&1 &
until grep -q attached $log; do
	kill -0 $! || { cat $log && exit 1; }
	sleep 0.01
done
end=${EPOCHREALTIME/./}
kill -INT $!
wait $!
echo "kernel $(uname -r) attached after $(((end - begin) / 1000)) ms"
grep verified $log
