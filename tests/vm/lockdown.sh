#!/usr/bin/env bash
# A kernel that lets no BPF program read its memory: one sentence says so.
# only: 7
# vm: --cpus 2 --slow-virtual-time --append lockdown=confidentiality --append lsm=lockdown
. "$(dirname "$0")/lib.bash"

grep -qF '[confidentiality]' /sys/kernel/security/lockdown || fail "this kernel is not locked down: $(cat /sys/kernel/security/lockdown)"
refused 'locked down to confidentiality.*boot with lockdown=integrity' scx_powerpack --mode packing
kernel_is_back
