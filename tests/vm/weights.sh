#!/usr/bin/env bash
# Cgroups get CPU time by their cpu.weight, whatever is in them: it does not grow with the threads,
# does not count twice in a nested cgroup, and cpu.idle gives way. In packing and in spread.
# vm: --slow-virtual-time --cpus 2
. "$(dirname "$0")/lib.bash"

echo +cpu >$CGROUPS/cgroup.subtree_control

# Cgroup $1 with cpu.weight $2.
group() {
	mkdir -p "$CGROUPS/$1"
	echo "$2" >"$CGROUPS/$1/cpu.weight"
}

# Run powerpack-load hogs $2.. in cgroup $1.
hogs_in() { run_in "$1" powerpack-load hogs --seconds 60 "${@:2}" >/dev/null & }

# What cgroups $2.. use in $1 s (us), in their order, into USED.
measure() {
	local seconds=$1 name before=()
	shift
	for name in "$@"; do before+=("$(used_us "$name")"); done
	nap "$seconds"
	USED=()
	for name in "$@"; do USED+=($(($(used_us "$name") - before[${#USED[@]}]))); done
	echo "$MODE, $* in $seconds s: ${USED[*]} us"
}

# Of what cgroups $2.. use the first one has $1 %, within 5 %.
first_has() {
	local pct=$1
	shift
	measure 5 "$@"
	awk -v pct="$pct" 'BEGIN {
		for (i = 1; i < ARGC; i++) all += ARGV[i]
		share = 100 * ARGV[1] / all
		exit !(share > pct * 0.95 && share < pct * 1.05)
	}' "${USED[@]}" || fail "of $* the first one has not $pct %: ${USED[*]} us, in $MODE"
}

# Of what both use cgroup $1, which has cpu.idle, has at most a twentieth of $2. If not: which of its
# threads had how much so far, and whether it lasts.
gives_way() {
	local used pid
	measure 5 "$@"
	used=("${USED[@]}")
	[ $((used[0] * 20)) -gt "${used[1]}" ] || return 0
	echo "of each thread of $1: on a CPU (ns), waiting (ns), turns"
	while read -r pid; do cat "/proc/$pid/schedstat"; done <"$CGROUPS/$1/cgroup.threads"
	measure 5 "$@"
	fail "a cgroup with cpu.idle has ${used[0]} us beside ${used[1]}, in $MODE"
}

for MODE in packing spread; do
	start --mode $MODE
	# One that is worth a whole CPU, which it has only if it never waits for a turn: 88 % of one under
	# the kernel's own scheduler.
	group one 100 && hogs_in one --count 1
	group eight 100 && hogs_in eight --count 8
	nap 2
	measure 5 one eight
	[ "${USED[0]}" -ge 4400000 ] || fail "one hog beside eight of another cgroup has ${USED[0]} us of 5 s, in $MODE"
	end_cgroups one
	group three 300 && hogs_in three --count 3
	nap 2
	first_has 75 three eight
	# A weight that changes.
	echo 100 >$CGROUPS/three/cpu.weight
	nap 1
	first_has 50 three eight
	echo 1 >$CGROUPS/eight/cpu.idle
	nap 1
	gives_way eight three
	end_cgroups three eight

	# A pod of weight 50 with one container of 50, beside one of 100 with two; and nice inside.
	for pod in a:50 b:100; do
		group ${pod%:*} ${pod#*:}
		echo +cpu >$CGROUPS/${pod%:*}/cgroup.subtree_control
	done
	group a/only 50 && hogs_in a/only --count 2
	group b/light 20 && hogs_in b/light --count 2
	group b/heavy 80 && hogs_in b/heavy --count 2 --nice 0,10
	nap 2
	first_has 33.3 a b
	first_has 20 b/light b/heavy
	end_cgroups a/only a b/light b/heavy b
	stop
done
