#!/usr/bin/env bash
# In the VM: what may happen to a scheduler, by chance, from a seed. After each fault the kernel's
# scheduler runs or ours, every task goes on, and nothing is left behind. faults.sh SEED TIMES [FAULT..]:
# of all faults, or of these.
. "$TREE/tests/vm/lib.bash"
. "$TREE/tests/campaign/faults.bash"
. "$TREE/tests/campaign/machine-faults.bash"
. "$TREE/tests/campaign/workers.bash"
. "$TREE/scripts/lib/complaints.sh"
seed=$1 times=$2
RANDOM=$seed
PATH=$PATH:/usr/sbin # bpftool

# How many maps and programs of ours the kernel has.
ours_in_kernel() {
	{ bpftool map show && bpftool prog show; } >/tmp/ours || fail "bpftool does not work"
	grep -cE 'name (\.[a-z]*\.pp_|powerpack_)' /tmp/ours || true
}

# What it changes of the machine, as configure() has it: how soon a CPU has to wake, and where interrupts come.
latencies() { sort -u /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us | tr '\n' ' '; }
interrupts() { grep -H . /proc/irq/*/smp_affinity_list; }

# The agent has ended: nothing of it is left in the kernel, nor, unless it was killed, anywhere else.
nothing_is_left() {
	local ours
	[ "$(<$SCX/state)" = disabled ] || fail "the agent has ended, and the scheduler is $(<$SCX/state)"
	for _ in $(seq $((50 * PATIENCE))); do
		ours=$(ours_in_kernel)
		[ "$ours" != 0 ] || break
		nap 0.1
	done
	[ "$ours" = 0 ] || fail "$ours maps and programs are left after the agent has ended: $(grep name /tmp/ours)"
	[ "$STATUS" != 137 ] || return 0
	[ "$(latencies)" = '0 ' ] || fail "the agent has ended with status $STATUS and left hints: $(latencies)"
	[ "$(interrupts)" = "$INTERRUPTS" ] ||
		fail "the agent has ended with status $STATUS and left interrupts: $(interrupts | diff - <(echo "$INTERRUPTS") || true)"
	ours=$(find /run/scx_powerpack -type s -o -name '*.json*')
	[ -z "$ours" ] || fail "the agent has ended with status $STATUS and left $ours"
}

# What it says of itself: the mode, whether it was chosen by itself, which load it is, and how many CPUs are online.
reported() {
	scx_powerpack status --json >/tmp/status || fail "it has no status"
	jq -r 'if .auto then "auto" else .mode end, .enable_seq, ([.cpus[] | select(.online)] | length)' /tmp/status | tr '\n' ' '
}
agent_is_well() {
	local is
	is="$ASKED $(<$SCX/enable_seq) $(getconf _NPROCESSORS_ONLN) "
	[ "$(<$SCX/state)" = enabled ] || fail "the scheduler is $(<$SCX/state), and no fault was to end it: $(cat $LOG)"
	scx_powerpack mode >/tmp/answer 2>&1 || fail "it does not answer: $(cat /tmp/answer)"
	for _ in $(seq $((20 * PATIENCE))); do
		[ "$(reported)" != "$is" ] || return 0
		nap 0.1
	done
	fail "it reports '$(reported)', and it is '$is' (mode, loads, CPUs online)"
}

complaints() { dmesg | grep -E "$COMPLAINTS" | grep -vE 'kernel/sched/deadline.c|sysrq'; }

begin() {
	start --config $CONFIG
	GONE=no STATUS=0 ASKED=$CONFIGURED
}

# Milliseconds that "$@" takes, in MS.
time_ms() {
	local began=${EPOCHREALTIME/./}
	"$@"
	MS=$(((${EPOCHREALTIME/./} - began) / 1000))
}

# A fault that hangs, or what comes after it, says so: the VM's own limit ends it without a word.
FAULT_S=$((300 * PATIENCE))
limit_fault() {
	{
		nap $FAULT_S
		echo "failed: $doing takes more than $FAULT_S s"
		kill -KILL $$
	} &
	limit=$!
}
unlimit_fault() {
	kill -KILL $limit
	wait $limit 2>/dev/null || true
}

faults=("${@:3}")
[ ${#faults[@]} != 0 ] || mapfile -t faults < <(declare -F | sed -n 's/^declare -f fault_//p')
declare -A done_times
echo '+cpu +pids' >$CGROUPS/cgroup.subtree_control
configure packing
INTERRUPTS=$(interrupts)
start_workers
nap 0.5
time_ms begin
LOADING_MS=$MS
time_ms stop
UNLOADING_MS=$MS
nothing_is_left
echo "loading takes $LOADING_MS ms, unloading $UNLOADING_MS ms"
begin
[ "$(ours_in_kernel)" != 0 ] || fail "nothing of ours is found in the kernel while it is loaded"
[ "$(latencies)" != '0 ' ] || fail "no hint is in force while it is loaded"
for ((nth = 1; nth <= times; nth++)); do
	fault=${faults[RANDOM % ${#faults[@]}]}
	doing="fault $nth of seed $seed, $fault"
	echo "$doing"
	echo "$doing" >/dev/kmsg
	limit_fault
	"fault_$fault"
	done_times[$fault]=$((${done_times[$fault]:-0} + 1))
	workers_go_on "after $doing"
	if [ $GONE = yes ]; then
		nothing_is_left
		begin
	else
		agent_is_well
	fi
	! complaints || fail "the kernel complains after $doing"
	unlimit_fault
done
stop
STATUS=0
nothing_is_left
stop_workers
for fault in "${faults[@]}"; do echo "figure: $fault ${done_times[$fault]:-0}"; done
