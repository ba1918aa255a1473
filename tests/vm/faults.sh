#!/usr/bin/env bash
# A dozen of what may happen to a scheduler, by chance: the short of the campaign (scripts/campaign faults), which has
# hundreds of them from other seeds, and on a kernel that checks its locks.
# only: 7
# timeout: 900
# expect-dmesg: kernel/sched/deadline.c|sysrq
# vm: --slow-virtual-time
exec "$TREE/tests/campaign/faults.sh" 5 12
