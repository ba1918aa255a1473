# shellcheck shell=bash
# What may happen to the scheduler and its agent: a function each, fault_NAME. Each begins with the scheduler loaded and
# ends with it loaded, or with "gone" if it has ended it. What may happen to the machine is in machine-faults.bash.
# Sourced by faults.sh, after lib.bash.
# shellcheck disable=SC2034 # what faults.sh looks at

CPUS=$(nproc)
CONFIG=/tmp/faults.toml
# Whether the fault has ended the scheduler, and with which status; the mode that was asked for last. For faults.sh.
GONE=no STATUS=0 ASKED=''
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

# Whether what was started (process $1, ours without it, which writes to $2) loads, within 60 s (PATIENCE times that),
# and does not end before.
is_loaded() {
	for _ in $(seq $((600 * PATIENCE))); do
		! grep -q attached "${2:-$LOG}" || return 0
		kill -0 "${1:-$PID}" 2>/dev/null || return 1
		nap 0.1
	done
	return 1
}

# The agent is not there any more, as was meant: the kernel's scheduler must be.
gone() {
	local status=0
	wait $PID || status=$?
	kernel_is_back
	GONE=yes
	STATUS=$status
}

ask() {
	scx_powerpack mode "$@" >/tmp/answer 2>&1 || fail "mode $* was refused: $(cat /tmp/answer)"
	ASKED=$1
}
# The configuration: mode $1, what else in the policy, and what it changes of the machine.
configure() {
	printf 'mode = "%s"\n[policy]\n%s\n[hints]\nidle_latency_us = 200\nirqs = "follow"\n' "$1" "${2:-}" >$CONFIG
	CONFIGURED=$1
}
# Start it as it is configured, without waiting for it. What it said before is gone, or is_loaded() would see that.
launch() {
	: >$LOG
	scx_powerpack --config $CONFIG >$LOG 2>&1 &
	PID=$!
	ASKED=$CONFIGURED
}

fault_sigkill() {
	kill -KILL $PID
	gone
	[ "$STATUS" = 137 ] || fail "status $STATUS after SIGKILL"
}
fault_interrupt() {
	kill -INT $PID
	gone
	[ "$STATUS" = 0 ] || fail "status $STATUS after Ctrl-C"
}
fault_oom() {
	out_of_memory
	[ "$STATUS" = 137 ] || fail "status $STATUS as the kernel had no memory"
}
# Interrupts have been moved as it ends; unless all come to an active CPU already, as after others were offline.
fault_irqs_follow() {
	ask packing
	for _ in $(seq $((100 * PATIENCE))); do
		[ "$(interrupts)" = "$INTERRUPTS" ] || break
		nap 0.1
	done
	fault_interrupt
}
# The agent gets no CPU: what is loaded goes on.
fault_sigstop() {
	kill -STOP $PID
	random_nap 999
	[ "$(<$SCX/state)" = enabled ] || fail "the scheduler ended while its agent was stopped"
	workers_go_on "while the agent is stopped"
	kill -CONT $PID
}
# What may come to the agent at any instant of loading, of a switch, and of unloading: "$@", which says in GONE
# whether it has ended it.
at_loading() {
	stop
	random_mode
	configure $MODE
	launch
	random_instant $LOADING_MS
	"$@"
	[ $GONE = yes ] || is_loaded || fail "it has not loaded after $*: $(cat $LOG)"
}
at_switching() {
	local switch
	random_mode
	scx_powerpack mode $MODE >/dev/null 2>&1 &
	switch=$!
	random_nap 20
	"$@"
	# Who asked may have given up while the agent was stopped; it is to be in that mode all the same.
	wait $switch || true
	ASKED=$MODE
}
at_unloading() {
	kill -INT $PID
	random_instant $UNLOADING_MS
	"$@"
	[ $GONE = yes ] || gone
}
kill_agent() {
	kill -KILL $PID 2>/dev/null || true
	gone
}
oom_kills() { sed -n 's/^oom_kill //p' /proc/vmstat; }
# Out of memory, the kernel kills the agent; or, if that has just ended, another process that is there for that.
out_of_memory() {
	local other before
	sleep 1000 &
	other=$!
	echo 999 >/proc/$other/oom_score_adj
	{ echo 1000 >/proc/$PID/oom_score_adj; } 2>/dev/null || true
	before=$(oom_kills)
	echo f >/proc/sysrq-trigger
	# It is done later, and does not count who was about to end.
	for _ in $(seq $((20 * PATIENCE))); do
		[ "$(oom_kills)" = "$before" ] || break
		nap 0.1
	done
	kill -KILL $other 2>/dev/null || true
	wait $other 2>/dev/null || true
	gone
}
# The agent gets no CPU for a while. What is loaded goes on, and so do all tasks.
freeze_agent() {
	kill -STOP $PID 2>/dev/null || return 0
	random_nap 999
	workers_go_on "while the agent is stopped"
	kill -CONT $PID 2>/dev/null || true
}
fault_kill_loading() { at_loading kill_agent; }
fault_kill_switching() { at_switching kill_agent; }
fault_kill_unloading() { at_unloading kill_agent; }
fault_oom_loading() { at_loading out_of_memory; }
fault_oom_switching() { at_switching out_of_memory; }
fault_oom_unloading() { at_unloading out_of_memory; }
fault_sigstop_loading() { at_loading freeze_agent; }
fault_sigstop_switching() { at_switching freeze_agent; }
fault_sigstop_unloading() { at_unloading freeze_agent; }
fault_stop_while_loading() {
	stop
	launch
	random_instant $LOADING_MS
	# What a script starts in the background does not hear Ctrl-C until it asks for it.
	kill -TERM $PID
	gone
}
fault_two_agents() { refused 'runs already' scx_powerpack --mode spread; }
# Of two that are started at once one loads, and the other says why it does not.
fault_two_agents_loading() {
	local other said=/tmp/second status=0
	stop
	: >$said
	launch
	scx_powerpack --config $CONFIG >$said 2>&1 &
	other=$!
	if is_loaded; then
		wait $other || status=$?
	else
		wait $PID || status=$?
		PID=$other
		mv $LOG /tmp/first
		mv $said $LOG
		said=/tmp/first
		is_loaded || fail "of two agents at once none loads: $(cat $said)"
	fi
	[ $status = 1 ] || fail "of two agents at once one ended with $status: $(cat $said)"
	grep -qE 'runs already|another sched_ext' $said || fail "of two agents at once one says: $(cat $said)"
}

# Another scheduler: this one again, which does not know of ours as it has a /run of its own. Whether it loads.
load_other() {
	mkdir -p /run/scx_powerpack
	: >/tmp/other.log
	unshare -m bash -c 'mount -t tmpfs none /run/scx_powerpack && exec scx_powerpack --mode spread' >/tmp/other.log 2>&1 &
	OTHER=$!
	is_loaded $OTHER /tmp/other.log
}
unload_other() {
	kill -INT $OTHER
	wait $OTHER || fail "the other scheduler: $(cat /tmp/other.log)"
	kernel_is_back
}
# It is refused beside ours; and if it comes first, ours says so.
fault_other() {
	! load_other || fail "another scheduler was loaded beside ours"
	grep -q 'another sched_ext' /tmp/other.log || fail "the other scheduler: $(cat /tmp/other.log)"
	agent_is_well
	stop
	load_other || fail "another scheduler cannot be loaded: $(cat /tmp/other.log)"
	refused 'another sched_ext' scx_powerpack --config $CONFIG
	kill -0 $OTHER || fail "the other scheduler has ended: $(cat /tmp/other.log)"
	unload_other
	launch
	is_loaded || fail "it does not load after another scheduler: $(cat $LOG)"
}
# It is loaded at any instant of our loading: one of both runs, and ours says why it is not that.
fault_other_loading() {
	stop
	launch
	random_instant $LOADING_MS
	if load_other; then
		! is_loaded || fail "two schedulers are loaded: $(cat /tmp/other.log)"
		STATUS=0
		wait $PID || STATUS=$?
		[ $STATUS = 1 ] && grep -q 'another sched_ext' $LOG || fail "it ended with $STATUS beside another scheduler: $(cat $LOG)"
		unload_other
		GONE=yes
	else
		is_loaded || fail "it does not load, and no other scheduler did: $(cat $LOG)"
	fi
}

fault_mode() { random_mode && ask $MODE; }
fault_ceiling() {
	ask packing --max-cores "$((1 + RANDOM % CPUS))"
	workers_go_on "below a ceiling"
	ask packing --max-cores all
}
reload() {
	scx_powerpack reload >/tmp/answer 2>&1 || fail "reload was refused: $(cat /tmp/answer)"
	ASKED=$CONFIGURED
}
fault_reload() {
	random_mode
	configure $MODE "fill_pct = $((20 + RANDOM % 80))"
	reload
}
fault_bad_reload() {
	echo 'mode = "turbo"' >$CONFIG
	refused 'turbo' scx_powerpack reload
	configure packing
	reload
}

# Nothing can be written to /run, which is small: to fill half of the memory takes minutes.
fill_run() {
	mount -o remount,size=32M /run
	dd if=/dev/zero of=/run/full bs=64k >/dev/null 2>&1 || true
	! echo 'no room' 2>/dev/null >/run/more || fail "/run is not full"
}
# While it runs: it changes its mode all the same.
fault_run_full_running() {
	fill_run
	random_mode
	ask $MODE
	workers_go_on "with /run full"
	rm -f /run/full /run/more
}
fault_run_full() {
	stop
	fill_run
	launch
	is_loaded || { gone && grep -q 'scx_powerpack: ' $LOG || fail "no sentence with /run full: $(cat $LOG)"; }
	rm -f /run/full /run/more
}
# For a second, more clients than it serves, and what no client says.
fault_socket() {
	python3 - <<-'PY'
		import os, random, socket, sys, time
		end, served = time.monotonic() + 1, 0
		while time.monotonic() < end:
		    clients = []
		    for n in range(64):
		        s = socket.socket(socket.AF_UNIX)
		        s.settimeout(0.01)
		        try:
		            s.connect("/run/scx_powerpack/control.sock")
		            s.sendall(os.urandom(random.randrange(1, 4000)) + (b"\n" if n % 2 else b""))
		            served += 1
		        except OSError:
		            pass
		        clients.append(s)
		    for s in clients: s.close()
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
fault_watch() {
	random_worker
	timeout $((5 * PATIENCE)) scx_powerpack why "$WORKER" --count 1 >/tmp/answer 2>&1 || fail "why: $(cat /tmp/answer)"
	scx_powerpack status --json >/dev/null || fail "no status"
}
