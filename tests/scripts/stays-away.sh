#!/usr/bin/env bash
# What runs the scheduler in a container passes signals on, and after exit status 4 loads it no more, also as the
# container is started again.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib/common.sh"

work=$(mktemp -d)
container=''
trap '[ -z "$container" ] || kill -KILL "$container" 2>/dev/null || true; rm -rf "$work"' EXIT

# In place of the scheduler: says what it gets, and ends as the test asks for.
cat >"$work/scx_powerpack" <<'PROGRAM'
#!/bin/bash
echo "$*" >>"$WORK/said"
[ "$1" != status ] || exec test -e "$WORK/runs"
trap 'echo reload >>"$WORK/said"' HUP
trap 'echo term >>"$WORK/said"; exit 0' TERM
exec {nothing}<> <(:)
touch "$WORK/runs"
until [ -e "$WORK/end" ]; do read -rt 0.05 -u $nothing; done
rm "$WORK/runs"
exit "$(<"$WORK/end")"
PROGRAM
chmod +x "$work/scx_powerpack"
export WORK=$work MARKER=$work/marker PATH=$work:$PATH

# Wait for $1.., at most 10 s.
await() {
	local until=$((SECONDS + 10))
	until "$@"; do
		[ $SECONDS -lt $until ] || die "not after 10 s: $*; it said $(cat "$work/said" "$work/log")"
		sleep 0.05
	done
}

container() {
	rm -f "$work/end" "$work/runs"
	: >"$work/said"
	: >"$work/log"
	"$TREE/packaging/kubernetes/run.sh" --mode auto >"$work/log" 2>&1 &
	container=$!
}

# It must end with status $1.
ends_with() {
	local status=0
	wait "$container" || status=$?
	container=''
	[ $status = "$1" ] || die "it ended with status $status, not $1"
}

is_alive() { "$TREE/packaging/kubernetes/run.sh" --is-alive; }

container
await grep -qx -- '--mode auto' "$work/said"
await is_alive
kill -HUP "$container"
await grep -qx reload "$work/said"
is_alive || die "it ends as it is to reload"
kill -TERM "$container"
ends_with 0
grep -qx term "$work/said" || die "the scheduler has not got SIGTERM"
container
await test -e "$work/runs"
echo 1 >"$work/end"
ends_with 1
! is_alive || die "alive without a scheduler"

container
await test -e "$work/runs"
echo 4 >"$work/end"
await grep -q 'delete this pod' "$work/log"
kill -0 "$container" || die "after status 4 the container ends, and would be started again"
is_alive || die "it would be killed as it stays away"
kill -TERM "$container"
ends_with 0
container
await grep -q 'delete this pod' "$work/log"
[ "$(<"$work/said")" = '' ] || die "started again it loads: $(<"$work/said")"
kill -TERM "$container"
ends_with 0
