# shellcheck shell=bash
# Long work with a line that says how long it has taken: a running clock on a terminal, plain lines
# elsewhere. What the work prints goes to a log in the cache. Sourced after common.sh.

LOG_LINES_SHOWN=20
# Without a terminal a line this often shows that the work goes on.
STILL_RUNNING_S=60

mkdir -p "$CACHE/logs"
LOG=$CACHE/logs/${0##*/}-$$.log
# How long logs are kept.
find "$CACHE/logs" -name '*.log' -mtime +7 -delete

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Until killed: show that stage $1, which began at second $2, goes on. Waiting on a pipe on
# which nothing comes leaves no child behind, as a sleep would.
show_clock() {
	local spin='|/-\' nth=0 nothing period=$STILL_RUNNING_S
	exec {nothing}<> <(:)
	[ ! -t 2 ] || period=0.2
	while :; do
		if [ -t 2 ]; then
			printf '\r%s %s  %s ' "${spin:nth++ % 4:1}" "$1" "$(clock $((SECONDS - $2)))" >&2
		elif ((nth++)); then
			say "$1: still running, $(clock $((SECONDS - $2)))"
		fi
		read -rt $period -u "$nothing" || true
	done
}

end_line() {
	[ ! -t 2 ] || printf '\r\e[K' >&2
	say "$1"
}

# Run COMMAND, which may be a function, with its output appended to file $1; run_status is its
# status. (With "|| run_status=$?" it would go on after a failure of a part of it.)
run_logged() {
	local log=$1
	shift
	trap - ERR
	set +e
	(
		set -e
		trap 'report_failure $? "${BASH_SOURCE[0]}" $LINENO' ERR
		"$@"
	) >>"$log" 2>&1 </dev/null
	run_status=$?
	set -e
	trap 'report_failure $? "${BASH_SOURCE[0]}" $LINENO' ERR
}

# stage TEXT COMMAND..: run COMMAND; a failure ends the script, with the end of the log.
stage() {
	local text=$1 begin=$SECONDS watcher log_size run_status
	shift
	log_size=$(stat -c %s "$LOG" 2>/dev/null) || log_size=0
	[ -t 2 ] || say "$text ..."
	show_clock "$text" $begin &
	watcher=$!
	run_logged "$LOG" "$@"
	kill $watcher 2>/dev/null || true
	wait $watcher 2>/dev/null || true
	if [ "$run_status" = 0 ]; then
		end_line "$text: $(clock $((SECONDS - begin)))"
		return
	fi
	end_line "$text: failed after $(clock $((SECONDS - begin))); the end of $LOG:"
	tail -c +$((log_size + 1)) "$LOG" | tail -n $LOG_LINES_SHOWN >&2
	exit $REPORTED
}
