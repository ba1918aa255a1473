#!/usr/bin/env bash
# On a kernel without sched_ext: one sentence with the cause and the way out, and exit status 1.
. "$TREE/tests/vm/lib.bash"
[ ! -e $SCX ] || fail "this kernel, $(uname -r), has sched_ext: it belongs to those that are tested with it"
refused 'no sched_ext.*6\.12' scx_powerpack --mode packing
refused 'not running' scx_powerpack mode
scx_powerpack topology >/dev/null || fail "the topology is not shown without sched_ext"
echo "ok      refused"
