#!/bin/sh
# Whether a scheduler can be loaded on this node: nothing if so, else one sentence; and one if it can,
# but containers do not get what they were promised.
# scx_powerpack-preflight [SYS [STATUS [LABEL]]]: other places to look at, for the tests.
set -eu
sys=${1:-/sys}
status=${2:-/proc/self/status}
label=${3:-/proc/self/attr/current}

fail() {
	echo "scx_powerpack cannot run on this node: $*" >&2
	exit 1
}

read_or() { cat "$1" 2>/dev/null || echo "$2"; }

# CAP_PERFMON and CAP_BPF are bits 38 and 39 (include/uapi/linux/capability.h).
caps=$(sed -n 's/^CapEff:[[:space:]]*//p' "$status")
[ $((0x$caps >> 38 & 3)) = 3 ] ||
	fail "the container lacks the capabilities BPF and PERFMON: add both to its securityContext"
# The label of SELinux; other security modules have one there too, or none can be read.
! grep -qaF :container_t: "$label" 2>/dev/null ||
	fail "SELinux forbids bpf(2) to containers of type container_t: set seLinuxOptions.type to spc_t in its securityContext"
[ -d "$sys/kernel/sched_ext" ] ||
	fail "its kernel has no sched_ext: boot Linux 6.12 or later built with CONFIG_SCHED_CLASS_EXT"
[ -e "$sys/kernel/btf/vmlinux" ] ||
	fail "its kernel has no BTF: boot one built with CONFIG_DEBUG_INFO_BTF"

state=$(read_or "$sys/kernel/sched_ext/state" disabled)
name=$(read_or "$sys/kernel/sched_ext/root/ops" unknown)
case $state:$name in
# Ours is the one of a pod that is ending.
disabled:* | disabling:* | *:powerpack*) ;;
*) fail "another sched_ext scheduler is loaded, $name: stop it first" ;;
esac

# A member of struct sched_ext_ops where the kernel asks schedulers about cgroups.
grep -qaF cgroup_prep_move "$sys/kernel/btf/vmlinux" ||
	echo "scx_powerpack runs on this node, but its kernel has no CONFIG_EXT_GROUP_SCHED: requests and" \
		"limits of CPU (cpu.weight, cpu.max) do not hold while it runs" >&2
