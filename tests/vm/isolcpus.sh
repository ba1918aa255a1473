#!/usr/bin/env bash
# With isolated CPUs the kernel runs no sched_ext scheduler: one sentence says so.
# vm: --cpus 2 --slow-virtual-time --append isolcpus=1
. "$(dirname "$0")/lib.bash"

if [ -z "$(cat /sys/devices/system/cpu/isolated)" ]; then
	echo "this kernel knows no isolcpus"
	exit 0
fi
refused 'isolated from scheduling \(1\): boot without isolcpus=' scx_powerpack --mode packing
kernel_is_back
