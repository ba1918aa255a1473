# shellcheck shell=bash
# What may happen to a scheduler: a function each, fault_NAME. Each begins with the scheduler loaded and
# ends with it loaded, or with "gone" if it has ended it. Sourced by faults.sh, after lib.bash.

CPUS=$(nproc)
CONFIG=/tmp/faults.toml
# Whether the fault has ended the scheduler; for faults.sh.
GONE=no
# What loading and unloading take; for faults.sh to measure.
LOADING_MS=1000 UNLOADING_MS=200
# The tasks that must go on.
workers=()

# What is chosen by chance comes in variables: a subshell has other random numbers, that no seed gives again.
# Sleep up to $1 ms.
random_nap() {
	local seconds
	printf -v seconds '0.%03d' $((RANDOM % $1))
	nap "$seconds"
}
# Sleep up to a tenth more than the $1 ms that something takes: the same part of it by the same seed.
random_instant() {
	local ms=$(($1 * (RANDOM % 1100) / 1000)) seconds
	printf -v seconds '%d.%03d' $((ms / 1000)) $((ms % 1000))
	nap "$seconds"
}
random_mode() {
	local modes=(spread balance packing energy auto)
	MODE=${modes[RANDOM % 5]}
}
random_worker() { WORKER=${workers[RANDOM % ${#workers[@]}]}; }

# The agent is not there any more, as was meant: the kernel's scheduler must be.
gone() {
	local status=0
	wait $PID || status=$?
	kernel_is_back
	# shellcheck disable=SC2034
	GONE=yes
	STATUS=$status
}

ask() { scx_powerpack mode "$@" >/tmp/answer 2>&1 || fail "mode $* was refused: $(cat /tmp/answer)"; }

fault_sigkill() { kill -KILL $PID && gone; }
fault_interrupt() {
	kill -INT $PID
	gone
	[ "$STATUS" = 0 ] || fail "status $STATUS after Ctrl-C"
}
# Out of memory, the kernel kills the agent.
fault_oom() {
	echo 1000 >/proc/$PID/oom_score_adj
	echo f >/proc/sysrq-trigger
	gone
}
# The agent gets no CPU: what is loaded goes on.
fault_sigstop() {
	kill -STOP $PID
	random_nap 999
	[ "$(<$SCX/state)" = enabled ] || fail "the scheduler ended while its agent was stopped"
	workers_go_on "while the agent is stopped"
	kill -CONT $PID
}
# Killed at any instant of loading, of a switch, and of unloading.
fault_kill_loading() {
	stop
	random_mode
	scx_powerpack --mode $MODE >$LOG 2>&1 &
	PID=$!
	random_instant $LOADING_MS
	kill -KILL $PID 2>/dev/null || true
	gone
}
fault_kill_switching() {
	random_mode
	scx_powerpack mode $MODE >/dev/null 2>&1 &
	random_nap 20
	kill -KILL $PID
	wait $! || true
	gone
}
fault_kill_unloading() {
	kill -INT $PID
	random_instant $UNLOADING_MS
	kill -KILL $PID 2>/dev/null || true
	gone
}
fault_stop_while_loading() {
	stop
	scx_powerpack --mode packing >$LOG 2>&1 &
	PID=$!
	random_instant $LOADING_MS
	# What a script starts in the background does not hear Ctrl-C until it asks for it.
	kill -TERM $PID
	gone
}
fault_two_agents() { refused 'runs already' scx_powerpack --mode spread; }

online() { echo "$2" >/sys/devices/system/cpu/cpu"$1"/online; }
# Any CPUs but the first go, and come again.
fault_hotplug() {
	local cpu gone=()
	for ((cpu = 1; cpu < CPUS; cpu++)); do
		((RANDOM % 2 == 1)) || continue
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
	scx_powerpack --config $CONFIG >$LOG 2>&1 &
	PID=$!
	random_instant $LOADING_MS
	online $cpu 0
	random_nap 300
	online $cpu 1
	for _ in $(seq $((300 * PATIENCE))); do
		! grep -q attached $LOG || return 0
		kill -0 $PID 2>/dev/null || break
		nap 0.1
	done
	gone
	grep -q 'scx_powerpack: ' $LOG || fail "it ended with $STATUS and no sentence: $(cat $LOG)"
}

fault_mode() { random_mode && ask $MODE; }
fault_ceiling() {
	ask packing --max-cores "$((1 + RANDOM % CPUS))"
	workers_go_on "below a ceiling"
	ask packing --max-cores all
}
fault_reload() {
	random_mode
	printf 'mode = "%s"\n[policy]\nfill_pct = %d\n' $MODE $((20 + RANDOM % 80)) >$CONFIG
	scx_powerpack reload >/tmp/answer 2>&1 || fail "reload was refused: $(cat /tmp/answer)"
}
fault_bad_reload() {
	echo 'mode = "turbo"' >$CONFIG
	refused 'turbo' scx_powerpack reload
	echo 'mode = "packing"' >$CONFIG
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
fault_threads() {
	stress-ng --pthread 1 --pthread-max 1000 --timeout 1 >/tmp/threads 2>&1 || fail "threads: $(tail -n 3 /tmp/threads)"
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
fault_deadline() {
	# A deadline task may have no children.
	chrt -d -T 5000000 -P 20000000 0 sh -c 'while :; do :; done' &
	random_nap 500
	kill $!
	wait $! || true
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
# Nothing can be written to /run, which is small: to fill half of the memory takes minutes.
fault_run_full() {
	stop
	mount -o remount,size=32M /run
	dd if=/dev/zero of=/run/full bs=64k >/dev/null 2>&1 || true
	! echo 'no room' 2>/dev/null >/run/more || fail "/run is not full"
	scx_powerpack --config $CONFIG >$LOG 2>&1 &
	PID=$!
	for _ in $(seq $((300 * PATIENCE))); do
		! grep -q attached $LOG || break
		kill -0 $PID 2>/dev/null || break
		nap 0.1
	done
	rm -f /run/full /run/more
	kill -0 $PID 2>/dev/null || { gone && grep -q 'scx_powerpack: ' $LOG || fail "no sentence with /run full: $(cat $LOG)"; }
}
# More clients than it serves, and what no client says.
fault_socket() {
	python3 - <<-'PY'
		import os, random, socket, sys
		clients, served = [], 0
		for n in range(64):
		    s = socket.socket(socket.AF_UNIX)
		    s.settimeout(0.2)
		    try:
		        s.connect("/run/scx_powerpack/control.sock")
		        s.sendall(os.urandom(random.randrange(1, 4000)) + (b"\n" if n % 2 else b""))
		        served += 1
		    except OSError:
		        pass
		    clients.append(s)
		sys.exit(served == 0)
	PY
	scx_powerpack mode >/dev/null || fail "it does not answer after a flood"
}
# The kernel is asked to end the scheduler.
fault_sysrq() {
	echo S >/proc/sysrq-trigger
	gone
	[ "$STATUS" = 4 ] || fail "status $STATUS after the kernel ended it"
	grep -q 'ended the scheduler' $LOG || fail "the end is not reported: $(cat $LOG)"
}
fault_freeze() {
	local delay_s=/sys/module/suspend/parameters/pm_test_delay before after
	[ -w /sys/power/state ] || return 0
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
fault_watch() {
	random_worker
	timeout $((5 * PATIENCE)) scx_powerpack why "$WORKER" --count 1 >/tmp/answer 2>&1 || fail "why: $(cat /tmp/answer)"
	scx_powerpack status --json >/dev/null || fail "no status"
}
