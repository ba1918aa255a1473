# shellcheck shell=bash
# The jobs of scripts/campaign: a VM each. Sourced after common.sh.

# Tests of tests/vm that say most of a kernel, of those that want four CPUs: loading, switching, load, cgroups.
# hotplug, which leaves 6.12 in disorder, is the last.
KERNEL_TESTS='load switch stress policies realtime fairness cpu-max hotplug'
KERNELS='6.12 6.12-plain 6.12-checks 7
	debian-6.19-cloud debian-7.0-generic debian-7.2-rt debian-7-cloud debian-7-generic debian-7-rt'
# Kernels on which nothing can be loaded, each with the cause that is to be said (tests/campaign/refused.sh).
REFUSING_KERNELS='debian-6.12-cloud:no-sched_ext debian-6.12-rt:no-sched_ext debian-7.1-cloud:old-pahole'
# QEMU's emulation does not get through the boot of more CPUs: 96 had not come up after two minutes, 255 not after 30.
SIZES='1 2 64'
# Faults come from seeds, so many of them from each, on each of these kernels.
FAULT_SEEDS=20
FAULTS_PER_SEED=100
FAULT_KERNELS='7 6.12-checks'
# It checks its locks and its memory at each use: of the host's time it takes some six times as long, so it has a
# fifth of the faults of a seed, and a longer time limit (s). Its CPUs are fast: as slow as those of the others, they
# would be busy with what loads of the tests are to leave idle, under the kernel's scheduler too.
SLOW_KERNEL=6.12-checks
SLOW_FAULTS_PER_SEED=20
SLOW_TIMEOUT=15000

# On which other people's tests are run, and what they need beside what our tests do.
OTHERS_KERNEL=7
# shellcheck disable=SC2034 # scripts/campaign installs them
OTHERS_PACKAGES=(rt-app linux-perf)

# On which real-time threads are measured, with and without PREEMPT_RT. With one CPU: several take turns in QEMU, of
# 0.8 ms each, which is what a thread waits for then, under every scheduler.
LATENCY_KERNELS='7 debian-7-rt'
LATENCY_SYSTEMS='eevdf packing spread'

# Suspended so many times to each depth: both sleep, and the one with PREEMPT_RT has the kernel's tests of that too.
SUSPEND_KERNELS='7 debian-7-rt'
SUSPENDS=100

tests_of() { printf 'tests/vm/%s.sh ' "$@"; }

# A line for each job: its name, the options of scripts/vm, and the command in the VM, separated by "|". Without
# options the command is a script of ours that has a VM of its own.
campaign_jobs() {
	local kernel cause size seed timeout faults clock memory
	for kernel in $KERNELS; do
		timeout=3000 clock=--slow-virtual-time
		[ "$kernel" != $SLOW_KERNEL ] || timeout=$SLOW_TIMEOUT clock=--virtual-time
		# shellcheck disable=SC2086 # lists of words
		echo "kernels/$kernel|--kernel $kernel $clock --timeout $timeout|scripts/lib/vm-suite.sh $(tests_of $KERNEL_TESTS)"
	done
	for kernel in $REFUSING_KERNELS; do
		cause=${kernel#*:} kernel=${kernel%:*}
		echo "kernels/$kernel|--kernel $kernel --slow-virtual-time|tests/campaign/refused.sh $cause"
	done
	# The CPUs of a VM are one after another what the host has: many are fast ones, or it takes hours.
	for size in $SIZES; do
		clock=--slow-virtual-time
		[ "$size" -le 2 ] || clock=--virtual-time
		echo "sizes/$size|--cpus $size $clock --memory 4G --timeout 5000|scripts/lib/vm-suite.sh tests/campaign/size.sh"
	done
	# As sysfs says, with four that are online.
	echo "sizes/1024|--slow-virtual-time --timeout 3000|env LARGE_CPUS=1024 scripts/lib/vm-suite.sh tests/vm/large.sh"
	echo "others/$OTHERS_KERNEL|--kernel $OTHERS_KERNEL --slow-virtual-time --timeout 12000|tests/campaign/others.sh"
	for kernel in $LATENCY_KERNELS; do
		echo "latency/$kernel|--cpus 1 --kernel $kernel --virtual-time --timeout 3000|tests/campaign/latency.sh $LATENCY_SYSTEMS"
	done
	for kernel in $SUSPEND_KERNELS; do
		echo "suspend/$kernel||scripts/suspend-tests --kernel $kernel $SUSPENDS"
	done
	for kernel in $FAULT_KERNELS; do
		timeout=5000 faults=$FAULTS_PER_SEED clock=--slow-virtual-time memory=2G
		# The kernel allows as many threads as fit into an eighth of its memory: of 2 GB, less its checks', no 10,000.
		[ "$kernel" != $SLOW_KERNEL ] ||
			timeout=$SLOW_TIMEOUT faults=$SLOW_FAULTS_PER_SEED clock=--virtual-time memory=4G
		for ((seed = 1; seed <= FAULT_SEEDS; seed++)); do
			echo "faults/$kernel/$seed|--kernel $kernel --memory $memory $clock --timeout $timeout|tests/campaign/faults.sh $seed $faults"
		done
	done
}
