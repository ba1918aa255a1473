# shellcheck shell=bash
# Which of the kernel's self-tests scripts/kernel-tests builds and runs. Sourced there and in the guest.

# A line for each run of a program: its directory, its time limit (s), the command. The limits are of
# the guest's time, in which a sleep costs next to nothing. CPUs go off last: what a failure there
# leaves behind disturbs no other.
kernel_tests() {
	local program
	echo "cgroup 300 test_cpu"
	echo "cgroup 60 test_cpuset"
	echo "sched 30 cs_prctl_test"
	echo "rseq 60 basic_test"
	param_tests
	requeue_pi_tests
	for program in requeue_pi_mismatched_ops requeue_pi_signal_restart wait_timeout wait_wouldblock \
		wait_uninitialized_heap wait_private_mapped_file wait requeue waitv; do
		echo "futex/functional 60 futex_$program"
	done
	timer_tests
	echo "cpu-hotplug 60 cpu-on-off-test.sh"
	echo "cpu-hotplug 60 cpu-on-off-test.sh -a"
}

# run_param_test.sh takes hours here, and basic_percpu_ops_test, which yields 20 million times, minutes.
# Of what the first runs: each kind of sequence, by CPU and by concurrency ID, some with two comparisons,
# some with threads that yield, get a signal or sleep inside one.
param_tests() {
	local kind inside id
	for id in '' _mm_cid; do
		for kind in s l b 'b -M' m 'm -M' i r; do
			echo "rseq 60 param_test$id -T $kind -r 200 -t 24"
		done
		for kind in s i; do
			echo "rseq 60 param_test${id}_compare_twice -T $kind -r 200 -t 24"
		done
	done
	for kind in s b i; do
		for inside in '-m 2 -y' '-m 2 -k' '-m 2 -s 1'; do
			echo "rseq 60 param_test -T $kind -r 50 -t 24 -7 -1 -8 -1 -9 -1 $inside"
		done
	done
}

# What futex/functional/run.sh runs of it.
requeue_pi_tests() {
	local options
	for options in '' -b '-b -l' '-b -o' -l -o {'-b -l',-l,-b,,'-b -o'}' -t '{5000,500000} \
		{'-b -l',-l}' -t 2000000000'; do
		echo "futex/functional 60 futex_requeue_pi $options"
	done
}

# Those that do not set the clock. Without -t two run for longer than is needed.
timer_tests() {
	echo "timers 60 posix_timers"
	echo "timers 60 nanosleep"
	echo "timers 400 nsleep-lat"
	echo "timers 300 set-timer-lat"
	echo "timers 60 mqueue-lat"
	echo "timers 60 inconsistency-check -t 1"
	echo "timers 300 raw_skew"
	echo "timers 60 threadtest -t 2"
	echo "timers 60 threadtest -t 2 -i"
}
