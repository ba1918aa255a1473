#!/usr/bin/env bash
# Where there is cpufreq the scheduler says what performance its CPUs should have. A
# VM has none: a copy of its sysfs with a policy in it makes the programs load with
# that code, and run it on this kernel, though nobody hears.
. "$(dirname "$0")/lib.bash"

prefix=$(mktemp -d)
mkdir -p "$prefix/sys/devices/system"
cp -r /sys/devices/system/{cpu,node} "$prefix/sys/devices/system/" 2>/dev/null || true
wishes() { scx_powerpack status --json | sed -n 's/.*"wish":\([0-9]*\).*/\1/p'; }

start
powerpack-load light --seconds 2 --json >/dev/null
[ "$(wishes)" = 0 ] || fail "it asks for frequencies that there are not"
stop
mkdir -p "$prefix/sys/devices/system/cpu/cpufreq/policy0"
SCX_SYSFS_PREFIX=$prefix start
powerpack-load light --seconds 2 --json >/dev/null
[ "$(wishes)" -gt 4 ] || fail "it never asked for a frequency"
stop
