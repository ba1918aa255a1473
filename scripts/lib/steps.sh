# shellcheck shell=bash
# The steps of a test run: a line each with its duration, and at the end a table of where the
# time went. A step that fails does not end the run. Sourced after deps.sh.

STEPS=$(mktemp -d)
mkdir "$STEPS/running" "$STEPS/failures"
: >"$STEPS/ended" # a line each: seconds, ok or FAILED, name
: >"$STEPS/tests" # the same of single tests, which are a part of a step
: >"$STEPS/reasons" # a line for each failure

# Of a failure, repeated at the end of the run, where whoever reads its log looks first.
FAILURE_LINES=15

# Of a failure, in the run's last lines: all that a log cut short in its middle may have of it.
REASON_CHARS=300

# Keep the end of what the failed step or test $1 has printed (stdin) for the end of the run, and the line
# that says why: that of tests/vm/lib.bash's fail, or else the last one.
keep_failure() {
	local name=${1//\//_} all
	all=$(cat)
	printf '%s\n' "$all" | tail -n $FAILURE_LINES | sed 's/^/    /' >"$STEPS/failures/$name"
	printf '%s\n' "$all" | awk -v name="$1" '
		{ last = $0 }
		/^failed: / && !why { why = $0 }
		END { print name ": " (why ? why : last) }' | cut -c 1-$REASON_CHARS >>"$STEPS/reasons"
}

# Say that step $2 has ended after $3 seconds, with $1 (ok or FAILED).
record_step() {
	printf '%s\t%s\t%s\n' "$3" "$1" "$2" >>"$STEPS/ended"
	[ ! -t 2 ] || printf '\r\e[K' >&2
	printf '%-7s %s (%d s)\n' "$1" "$2" "$3"
}

# step NAME COMMAND..: run COMMAND, quiet unless it fails.
step() {
	local name=$1 begin=$SECONDS output run_status
	shift
	output=$(mktemp)
	echo $begin >"$STEPS/running/$name"
	run_logged "$output" "$@"
	rm -f "$STEPS/running/$name"
	if [ "$run_status" = 0 ]; then
		record_step ok "$name" $((SECONDS - begin))
	else
		record_step FAILED "$name" $((SECONDS - begin))
		tail -n 60 "$output"
		keep_failure "$name" <"$output"
	fi
	rm -f "$output"
}

# side_by_side LANE..: run these commands at the same time; each is a list of words.
side_by_side() {
	local lane begin=$SECONDS lanes=()
	for lane in "$@"; do
		$lane &
		lanes+=($!)
	done
	for lane in "${lanes[@]}"; do
		wait "$lane" || {
			record_step FAILED "a lane of: $*" $((SECONDS - begin))
			keep_failure "a lane of: $*" </dev/null
		}
	done
}

# On a terminal, until killed: the steps that are running.
show_running() {
	local nothing file line
	exec {nothing}<> <(:)
	while :; do
		line=''
		for file in "$STEPS"/running/*; do
			[ ! -s "$file" ] || line+="${line:+, }${file##*/} $(clock $((SECONDS - $(<"$file"))))"
		done
		printf '\r\e[K%s ' "${line:0:${COLUMNS:-80}}" >&2
		read -rt 1 -u "$nothing" || true
	done
}

# To be called before the first step.
begin_steps() {
	[ -t 2 ] || return 0
	show_running &
	watcher=$!
	trap 'kill $watcher' EXIT
}

# Print where the time went and how many steps and tests passed; fail if one did not.
report_steps() {
	local passed failed skipped
	printf '\nWhere the time went (%s in all; steps run side by side):\n' "$(clock $SECONDS)"
	sort -rn "$STEPS/ended" | awk -F'\t' '{ printf "%6d s  %s\n", $1, $3 }'
	printf '\nThe longest tests in VMs:\n'
	sort -rn "$STEPS/tests" | head -n 12 | awk -F'\t' '{ printf "%6d s  %s\n", $1, $3 }'
	passed=$(cat "$STEPS"/{ended,tests} | grep -c $'\tok\t') || true
	failed=$(cat "$STEPS"/{ended,tests} | grep -c $'\tFAILED\t') || true
	skipped=$(grep -c $'\tskipped\t' "$STEPS/tests") || true
	(cd "$STEPS/failures" && for file in *; do
		[ ! -e "$file" ] || { printf '\nFAILED: %s\n' "$file" && cat "$file"; }
	done)
	cat "$STEPS/reasons"
	rm -rf "$STEPS"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ] || exit 1
}
