#!/usr/bin/env bash
# scripts/vm ends its VM on SIGTERM.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib/common.sh"

mark=vm_stops.$$
out=$(mktemp)
trap 'pkill -KILL -f "$mark" || true; rm "$out"' EXIT

# Whether QEMU, or what starts it, runs with the mark on the kernel's command line.
runs() { pgrep -f "qemu.*$mark" >/dev/null; }

# Wait for $2.., at most $1 seconds.
await() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.2
	done
}

"$TREE/scripts/vm" --kernel 7 --append "$mark" -- sh -c 'echo begins; exec sleep 1000' >"$out" 2>&1 &
vm=$!
await 120 grep -q begins "$out" || die "the VM has not begun: $(cat "$out")"
runs || die "the VM that has begun is not found"
kill -TERM $vm
status=0
await 10 sh -c "! kill -0 $vm" 2>/dev/null || die "scripts/vm goes on after SIGTERM"
wait $vm || status=$?
[ $status = 143 ] || die "scripts/vm ended with status $status, not 143 as by SIGTERM"
! runs || die "the VM has outlived scripts/vm"
