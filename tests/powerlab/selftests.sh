#!/usr/bin/env bash
# The kernel's own tests of cpufreq, unchanged, on our driver: under the kernel's scheduler, and under ours
# beside a load. (It has none of cpuidle.) sptest3 and sptest4, which would take hours, are left out. In a
# kernel that watches its locks (scripts/vm --kernel powerlab-debug) these are looked at too.
# machine: chromebook2
# timeout: 1800
. "$(dirname "$0")/lib.bash"

# Whether the kernel has found no fault in its locks: it stops watching at the first.
locks_are_right() {
	[ ! -e /proc/lockdep_stats ] ||
		awk '$1 == "debug_locks:" { watches = $2 } END { exit !watches }' /proc/lockdep_stats
}

[ -e "$KERNEL_FILES/selftests/cpufreq/main.sh" ] || fail "the kernel's tests are not beside it: $KERNEL_FILES"
cp -r "$KERNEL_FILES/selftests" /tmp/
cd /tmp/selftests/cpufreq || exit

run() {
	local name
	for name in "$@"; do
		echo "$name"
		bash ./main.sh -t "$name" -o "/tmp/$name" >"/tmp/$name.out" 2>&1 || fail "$name: $(tail -n 3 "/tmp/$name.out")"
		grep -q '^ok .*Completed successfully' "/tmp/$name.out" || fail "$name is not complete"
		! grep 'Warning' "/tmp/$name.txt" || fail "$name: the warnings above"
		locks_are_right || fail "$name: the kernel has found a fault in its locks: see its log"
	done
}

run basic sptest1 sptest2
for mode in packing spread; do
	govern schedutil
	start --mode $mode
	powerpack-load hogs --count 2 --seconds 1000 >/dev/null &
	load=$!
	run basic
	kill $load
	stop
done
govern schedutil
