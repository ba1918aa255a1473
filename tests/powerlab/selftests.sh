#!/usr/bin/env bash
# The kernel's own tests of cpufreq, unchanged, on our driver, in a kernel that watches its locks: under
# the kernel's scheduler and under ours. (It has none of cpuidle.) Two of them would take hours, and are
# ended after a minute.
# machine: chromebook2
# vm: --kernel powerlab-debug
# timeout: 2400
. "$(dirname "$0")/lib.bash"

# The kernel stops watching as it reports a first fault.
watches_locks() { awk '$1 == "debug_locks:" { watches = $2 } END { exit !watches }' /proc/lockdep_stats; }
[ -e /proc/lockdep_stats ] || fail "this kernel does not watch its locks"

for dir in "$CACHE"/kernels/powerlab-debug-*/cpufreq; do [ ! -e "$dir" ] || cp -r "$dir" /tmp/; done
[ -e /tmp/cpufreq/main.sh ] || fail "the kernel's tests are not beside it: $CACHE/kernels"
cd /tmp/cpufreq || exit
# They call it, and run as root.
mkdir -p /tmp/bin
printf '#!/bin/sh\nexec "$@"\n' >/tmp/bin/sudo
chmod +x /tmp/bin/sudo
PATH=/tmp/bin:$PATH

# The tests $2.. for at most $1 s each; what they leave running ends with them.
run() {
	local seconds=$1 name
	shift
	for name in "$@"; do
		echo "$name"
		setsid bash ./main.sh -t "$name" -o "/tmp/$name" >"/tmp/$name.out" 2>&1 &
		for ((i = 0; i < seconds; i++)); do
			kill -0 $! 2>/dev/null || break
			nap 1
		done
		pkill -KILL -s $! || true
		wait $! 2>/dev/null || true
		! grep -H 'Warning' "/tmp/$name.txt" || fail "$name: the warnings above"
		watches_locks || fail "$name: the kernel has found a fault in its locks: see its log"
	done
	for cpu in $CPUS/cpu[0-9]*/online; do echo 1 >"$cpu"; done
}

run 600 basic sptest1 sptest2
grep -q 'Test: Running shuffle_governors_for_all_cpus' /tmp/basic.txt || fail "basic has not come to its end"
run 60 sptest3 sptest4
govern schedutil
for mode in packing spread; do
	start --mode $mode
	powerpack-load hogs --count 6 --seconds 1000 >/dev/null &
	load=$!
	run 600 basic
	run 60 sptest3 sptest4
	kill $load
	stop
done
govern schedutil
