#!/usr/bin/env bash
# In the VM: what may happen to a scheduler, by chance, from a seed. After each fault the kernel's
# scheduler runs or ours, every task goes on, and nothing is left behind. faults.sh SEED TIMES [FAULT..]:
# of all faults, or of these.
. "$TREE/tests/vm/lib.bash"
. "$TREE/tests/campaign/faults.bash"
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

# The agent is not there: nothing of it is.
nothing_is_left() {
	local ours
	[ "$(<$SCX/state)" = disabled ] || fail "the agent has ended, and the scheduler is $(<$SCX/state)"
	for _ in $(seq $((50 * PATIENCE))); do
		ours=$(ours_in_kernel)
		[ "$ours" != 0 ] || return 0
		nap 0.1
	done
	fail "$ours maps and programs are left after the agent has ended: $(grep name /tmp/ours)"
}

agent_is_well() {
	[ "$(<$SCX/state)" = enabled ] || fail "the scheduler is $(<$SCX/state), and no fault was to end it: $(cat $LOG)"
	scx_powerpack mode >/tmp/answer 2>&1 || fail "it does not answer: $(cat /tmp/answer)"
}

complaints() { dmesg | grep -E "$COMPLAINTS" | grep -vE 'kernel/sched/deadline.c|sysrq'; }

begin() { start --config $CONFIG && GONE=no; }

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
echo 'mode = "packing"' >$CONFIG
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
nothing_is_left
stop_workers
for fault in "${faults[@]}"; do echo "figure: $fault ${done_times[$fault]:-0}"; done
