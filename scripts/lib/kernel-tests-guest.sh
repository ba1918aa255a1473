#!/usr/bin/env bash
# In the VM: run the tests of directory $1 under each of the systems $2..: a mode of ours, or eevdf.
# A line for each result: SYSTEM pass|fail|skip PROGRAM:TEST.
set -euo pipefail
bin=$1
shift
log=/tmp/kernel-tests.log

start() {
	scx_powerpack --mode "$1" >$log 2>&1 &
	until grep -q attached $log; do
		kill -0 $! || { cat $log >&2 && exit 1; }
		sleep 0.05
	done
}

echo "kernel $(uname -r)"
for system in "$@"; do
	[ "$system" = eevdf ] || start "$system"
	for program in "$bin"/*; do
		# A program ends with a failure if one of its tests fails: its lines say which.
		("$program" 2>&1 || true) | awk -v of="$system" -v program="${program##*/}" '
			/^ok .*# SKIP/ { print of, "skip", program ":" $3; next }
			/^ok / { print of, "pass", program ":" $3; next }
			/^not ok / { print of, "fail", program ":" $4 }'
	done
	if [ "$system" != eevdf ]; then
		kill -INT $!
		wait $!
	fi
done
