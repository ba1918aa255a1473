#!/usr/bin/env bash
# In the VM: run the tests of directory $1 under each of the systems $2..: a mode of ours, or eevdf.
# A line for each result: SYSTEM pass|fail|skip TEST. ONLY: the tests whose command has this in it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/kernel-tests-list.sh"
. "$(dirname "$0")/complaints.sh"
bin=$(realpath "$1")
shift
log=/tmp/kernel-tests.log
output=/tmp/kernel-tests.output
cpus=/sys/devices/system/cpu
# Linux 6.12 itself warns in its deadline server when a CPU goes offline and no task is of its fair class.
KNOWN=kernel/sched/deadline.c

# Lines that are no results. What ends without a newline must not take one with it.
quote() { awk '{ print "# " $0 }'; }

start() {
	scx_powerpack --mode "$1" >$log 2>&1 &
	agent=$!
	until grep -q attached $log; do
		kill -0 $agent || { cat $log >&2 && exit 1; }
		sleep 0.05
	done
	loaded=$(which_load)
}

# What is loaded, and how many were loaded until then.
which_load() { cat /sys/kernel/sched_ext/{state,enable_seq}; }

# The results in $output of test $1, which ended with status $2: those of its lines if it has lines
# of results (TAP), which may begin behind what it says of a failure; else its own.
results() {
	awk -v of="$system" -v test="$1" -v status="$2" '
		match($0, /^ok [0-9]+|not ok [0-9]+/) {
			is = $0 ~ /not ok [0-9]/ ? "fail" : $0 ~ /# SKIP/ ? "skip" : "pass"
			name = substr($0, RSTART + RLENGTH)
			sub(/^[ -]+/, "", name)
			sub(/^# (SKIP|XFAIL|error) */, "", name)
			sub(/ *(#.*)?$/, "", name)
			sub(/ .*/, "", test)
			print of, is, test ":" name
			lines++
			if (is == "fail") failed = 1
		}
		END {
			if (status == 124 || status == 137) print of, "fail", test (lines ? ":time limit" : "")
			else if (!lines) print of, status == 0 ? "pass" : status == 4 ? "skip" : "fail", test
			else if (status != 0 && status != 4 && !failed) print of, "fail", test ":exit status"
		}' $output
}

# A test must leave the machine as it was: it fails if it has not, and the next one has it so again.
restore() {
	local cpu
	if [ "$(<$cpus/online)" != "$(<$cpus/present)" ]; then
		echo "$system fail $1:CPUs online afterwards"
		for cpu in "$cpus"/cpu[0-9]*/online; do echo 1 >"$cpu"; done
	fi
	if dmesg | grep -E "$COMPLAINTS" | grep -v "$KNOWN" >/dev/null; then
		echo "$system fail $1:complaint in the kernel's log"
		dmesg | quote
	fi
	dmesg --clear
	[ "$system" != eevdf ] || return 0
	if [ "$(which_load)" != "$loaded" ]; then
		echo "$system fail $1:scheduler loaded afterwards"
		quote <$log
		kill -INT $agent 2>/dev/null || true
		wait $agent || true
		start "$system"
	fi
}

# run DIRECTORY LIMIT PROGRAM ARGUMENTS...: one test, and what it printed if it failed.
run() {
	local status=0 began=$SECONDS test="$1/${*:3}"
	(cd "$bin/$1" && exec timeout -k 5 "$2" "./$3" "${@:4}") >$output 2>&1 </dev/null || status=$?
	echo "# $system $test: status $status, $((SECONDS - began)) s"
	results "$test" $status
	[ $status = 0 ] || tail -n 30 $output | quote
	restore "$test"
}

dmesg --clear
echo "kernel $(uname -r)"
for system in "$@"; do
	[ "$system" = eevdf ] || start "$system"
	while read -r -a test; do
		run "${test[@]}"
	done < <(kernel_tests | grep -e "${ONLY:-}")
	if [ "$system" != eevdf ]; then
		kill -INT $agent
		wait $agent
	fi
done
