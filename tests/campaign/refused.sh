#!/usr/bin/env bash
# Arguments: CAUSE. On a kernel on which no sched_ext scheduler can be loaded: one sentence with the cause and the
# way out, and exit status 1.
. "$TREE/tests/vm/lib.bash"
case $1 in
no-sched_ext)
	[ ! -e $SCX ] || fail "this kernel, $(uname -r), has sched_ext: it belongs to those that are tested with it"
	said='no sched_ext.*6\.12'
	;;
old-pahole) said="BTF was made by a pahole older than 1\.26.*boot a kernel" ;;
*) fail "no kernel is refused for '$1'" ;;
esac
refused "$said" scx_powerpack --mode packing
refused 'not running' scx_powerpack mode
scx_powerpack topology >/dev/null || fail "the topology is not shown"
echo "ok      refused: ${1//-/ }"
