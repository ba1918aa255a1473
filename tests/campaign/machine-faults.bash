# shellcheck shell=bash
# What may happen to the machine and to its tasks while the scheduler runs: a function each, as in faults.bash, after
# which it is sourced.
# shellcheck disable=SC2034,SC2154 # what all of them share

online() { echo "$2" >/sys/devices/system/cpu/cpu"$1"/online; }
# Any CPUs but the first go, and come again.
fault_hotplug() {
	local cpu gone=() one=$((1 + RANDOM % (CPUS - 1)))
	for ((cpu = 1; cpu < CPUS; cpu++)); do
		((RANDOM % 2 == 1 || cpu == one)) || continue
		online $cpu 0
		gone+=("$cpu")
	done
	random_nap 300
	workers_go_on "while CPUs ${gone[*]} are offline"
	for cpu in "${gone[@]}"; do online "$cpu" 1; done
}
fault_hotplug_all_but_one() {
	local cpu
	for ((cpu = 1; cpu < CPUS; cpu++)); do online $cpu 0; done
	workers_go_on "on one CPU"
	for ((cpu = 1; cpu < CPUS; cpu++)); do online $cpu 1; done
}
# A CPU goes while it loads: it loads in the end, or says why it did not.
fault_hotplug_loading() {
	local cpu=$((1 + RANDOM % (CPUS - 1)))
	stop
	launch
	random_instant $LOADING_MS
	online $cpu 0
	random_nap 300
	online $cpu 1
	! is_loaded || return 0
	gone
	grep -q 'scx_powerpack: ' $LOG || fail "it ended with $STATUS and no sentence: $(cat $LOG)"
}

# Cgroups come and go with tasks in them, with weights, limits and CPUs of their own.
fault_cgroups() {
	local nth names=()
	for nth in 1 2 3; do
		mkdir -p $CGROUPS/churn$nth/in
		echo $((1 + RANDOM % 1000)) >$CGROUPS/churn$nth/cpu.weight
		echo "$((5 + RANDOM % 50))000 100000" >$CGROUPS/churn$nth/cpu.max
		run_in churn$nth/in powerpack-load hogs --seconds 60 --count 2 >/dev/null &
	done
	random_nap 300
	echo 'max 100000' >$CGROUPS/churn1/cpu.max
	echo $((1 + RANDOM % 1000)) >$CGROUPS/churn2/cpu.weight
	for nth in 1 2 3; do names+=("churn$nth/in" "churn$nth"); done
	end_cgroups "${names[@]}"
}
# Processes without end, in a cgroup that may have 100.
fault_fork_bomb() {
	local refusals
	mkdir -p $CGROUPS/bomb
	echo 100 >$CGROUPS/bomb/pids.max
	# shellcheck disable=SC2016 # of that shell
	run_in bomb bash -c 'f() { f | f & }; while :; do f; done' >/dev/null 2>&1 &
	for _ in $(seq $((100 * PATIENCE))); do
		read -r _ refusals <$CGROUPS/bomb/pids.events
		[ "$refusals" = 0 ] || break
		nap 0.05
	done
	[ "$refusals" != 0 ] || fail "the fork bomb has not reached its limit"
	random_nap 500
	workers_go_on "beside a fork bomb"
	end_cgroups bomb
}
# Ten thousand threads. When all have begun they wake at the same instant, and each of them runs: as it begins, and
# then, if a kernel takes no more than half of the time to make them.
fault_threads() {
	local period_s=20
	[ "$PATIENCE" = 1 ] || period_s=60
	powerpack-load periodic "0.01/${period_s}000*10000" --seconds $((2 * period_s)) --json >/tmp/threads 2>/tmp/why ||
		fail "10,000 threads: $(head -n 3 /tmp/why)"
	[ "$(jq .activations /tmp/threads)" = 20000 ] || fail "of 10,000 threads: $(jq .activations /tmp/threads) runs, not two of each"
}
fault_affinity() {
	local nth
	for nth in $(seq 20); do
		random_worker
		taskset -cp $((RANDOM % CPUS)) "$WORKER" >/dev/null || fail "affinity $nth"
		random_nap 10
	done
	for nth in "${workers[@]}"; do taskset -cp 0-$((CPUS - 1)) "$nth" >/dev/null; done
}
fault_nice() {
	local nth
	for nth in $(seq 10); do
		random_worker
		renice -n $((RANDOM % 40 - 20)) -p "$WORKER" >/dev/null
	done
	for nth in "${workers[@]}"; do renice -n 0 -p "$nth" >/dev/null; done
}
# Real-time and deadline tasks have all CPUs. Who ends the first is above them: before 7.0
# the kernel gives no task of ours time beside such hogs.
fault_realtime() {
	local cpu pid pids=() status
	for ((cpu = 0; cpu < CPUS; cpu++)); do
		chrt -f 60 timeout 0.4 chrt -f 50 taskset -c $cpu sh -c 'while :; do :; done' &
		pids+=($!)
	done
	random_nap 400
	for pid in "${pids[@]}"; do
		status=0
		wait "$pid" || status=$?
		[ $status = 124 ] || fail "a real-time task ended with $status"
	done
}
# Deadline tasks have three quarters of each CPU, and ours share the rest.
fault_deadline() {
	local cpu pids=()
	for ((cpu = 0; cpu < CPUS; cpu++)); do
		# A deadline task may have no children, and no CPU of its own.
		chrt -d -T 15000000 -P 20000000 0 sh -c 'while :; do :; done' &
		pids+=($!)
	done
	random_nap 500
	workers_go_on "beside deadline tasks on all CPUs"
	for cpu in "${!pids[@]}"; do kill -0 "${pids[cpu]}" || fail "deadline task $cpu does not run"; done
	kill "${pids[@]}"
	wait "${pids[@]}" || true
}
# Tasks leave for another class and come back.
fault_classes() {
	random_worker
	chrt -f -p 10 "$WORKER"
	random_nap 50
	chrt -o -p 0 "$WORKER"
	chrt -b -p 0 "$WORKER"
	chrt -i -p 0 "$WORKER"
	random_nap 50
	chrt -o -p 0 "$WORKER"
}
# The clock of the wall jumps an hour, or a day back.
fault_clock() {
	local now
	now=$(date +%s)
	date -s "@$((now + 3600))" >/dev/null
	random_nap 100
	date -s "@$((now - 86400))" >/dev/null
	random_nap 100
	date -s "@$now" >/dev/null
}
# All tasks are frozen, as for suspend; not on a kernel without it.
[ ! -w /sys/power/state ] || fault_freeze() {
	local delay_s=/sys/module/suspend/parameters/pm_test_delay before after
	# It fails as the devices are to sleep, after all tasks were frozen.
	before=$(</sys/power/suspend_stats/fail)
	echo freeze 2>/dev/null >/sys/power/state || true
	after=$(</sys/power/suspend_stats/fail)
	[ "$after" -gt "$before" ] || fail "nothing was to sleep"
	[ -w /sys/power/pm_test ] || return 0
	# A kernel with tests of suspend can leave them frozen for a while.
	[ ! -w $delay_s ] || echo 1 >$delay_s
	echo freezer >/sys/power/pm_test
	echo freeze >/sys/power/state || fail "tasks cannot be frozen"
	echo none >/sys/power/pm_test
}
