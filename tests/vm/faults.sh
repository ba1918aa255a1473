#!/usr/bin/env bash
# A dozen of what may happen to a scheduler, by chance: the short of the campaign (scripts/campaign faults), which has
# hundreds of them, and a kernel that checks its locks. The seed is none of those.
# only: 7
# alone
# timeout: 900
# expect-dmesg: kernel/sched/deadline.c|sysrq
# vm: --slow-virtual-time
set -o pipefail
"$TREE/tests/campaign/faults.sh" 21 12 | sed '/^figure: .* 0$/d'
