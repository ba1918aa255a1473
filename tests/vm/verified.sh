#!/usr/bin/env bash
# How many instructions the verifier looks at, by program: no more than a tenth beyond what
# src/bpf/verified.txt says. Loading takes its time for that. What is about kinds of cores is gone where
# there is but one: such a machine has lines of its own, PROGRAM@kinds.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

KNOWN=$TREE/src/bpf/verified.txt
# 7.2 of 7.2.13+deb14-cloud-amd64: another one may look at more, which is no fault of a change here.
kernel=$(uname -r | cut -d. -f1,2)

# The programs that are verified as the scheduler is loaded, with $1 behind their names.
load() {
	start -v
	stop
	sed -n "s/.*verified \([a-z_]*\): \([0-9]*\) instructions.*/\1$1 \2/p" $LOG | sort >>/tmp/verified
}

load ''
two_kinds_of_cores
# Each kind with a cache of its own, and frequencies, as on most boards.
mkdir -p $SCX_SYSFS_PREFIX/sys/devices/system/cpu/cpufreq/policy0
for cpu in 0 1 2 3; do
	cache=$SCX_SYSFS_PREFIX/sys/devices/system/cpu/cpu$cpu/cache/index3
	echo $((cpu / 2)) >"$cache/id"
	echo $((cpu / 2 * 2))-$((cpu / 2 * 2 + 1)) >"$cache/shared_cpu_list"
done
load @kinds
[ -s /tmp/verified ] || fail "no program was said to be verified"
[ -z "${VERIFIED_TO:-}" ] || awk -v kernel="$kernel" '{ print kernel, $1, $2 }' /tmp/verified >"$VERIFIED_TO"
grep -q "^$kernel " "$KNOWN" || skip "nothing is known of Linux $kernel: scripts/verified writes it"
awk -v kernel="$kernel" '
	NR == FNR { if ($1 == kernel) known[$2] = $3; next }
	$1 !~ /@/ { all += $2 }
	!($1 in known) { print $1 " is new, with " $2 " instructions"; bad = 1; next }
	$2 > known[$1] * 1.1 { print $1 " has " $2 " instructions, not " known[$1]; bad = 1 }
	END { print "figure: " all " instructions verified"; exit bad }' "$KNOWN" /tmp/verified ||
	fail "if that is meant, write them again with scripts/verified, for who reviews it"
