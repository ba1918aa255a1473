#!/usr/bin/env bash
# In the VM: run tests one after another. Each has a time limit; after each the
# kernel must be on its own scheduler and its log free of complaints. One that ends with
# status 77 has found nothing here to test, and has said why. Lines "figure: .." of a test that passes are kept.
set -u

# COMPLAINTS: a test that provokes such a line on purpose names it in a line "# expect-dmesg: REGEX".
. "$(dirname "$0")/complaints.sh"

run_test() {
	local file=$1 expected timeout mark complaints pid status=0
	timeout=$(sed -n 's/^# timeout: //p' "$file")
	expected=$(sed -n 's/^# expect-dmesg: //p' "$file")
	mark="begin $file $RANDOM"
	echo "$mark" >/dev/kmsg
	timeout -k 5 $((${timeout:-240} * PATIENCE)) "$file" &
	pid=$!
	wait $pid || status=$?
	# What a test that failed has left running would keep its output open for ever; timeout is the leader of
	# its group.
	kill -KILL -- -$pid 2>/dev/null
	# A box is a machine of its own (tests/vm/box.bash), whose service would load a scheduler in the next test.
	[ ! -e /sys/fs/cgroup/box/cgroup.kill ] || echo 1 >/sys/fs/cgroup/box/cgroup.kill
	[ $status = 0 ] || return $status
	if [ "$(cat /sys/kernel/sched_ext/state)" != disabled ]; then
		echo "a scheduler is still loaded"
		return 1
	fi
	# What comes after the mark is looked at: without it nothing would be.
	if ! dmesg | grep -qF "$mark"; then
		echo "the kernel's log has no room for what it said"
		return 1
	fi
	complaints=$(dmesg | sed "1,/$(printf '%s' "$mark" | sed 's/[^a-z0-9 ]/./g')/d" |
		grep -E "$COMPLAINTS" | grep -vE "${expected:-nothing is expected}")
	if [ -n "$complaints" ]; then
		printf 'the kernel complains:\n%s\n' "$complaints"
		return 1
	fi
}

failed=0
for file in "$@"; do
	output=$(run_test "$file" 2>&1)
	case $? in
	0)
		echo "ok      $(basename "$file" .sh)"
		printf '%s\n' "$output" | grep '^figure: '
		;;
	77)
		echo "skipped $(basename "$file" .sh)"
		printf '%s\n' "$output" | tail -n 1
		;;
	*)
		failed=1
		echo "FAILED  $(basename "$file" .sh)"
		printf '%s\n' "$output" | grep -m 1 '^failed: ' # it may be further from the end
		printf '%s\n' "$output" | tail -n 30
		pkill -9 -x scx_powerpack
		;;
	esac
done
exit $failed
