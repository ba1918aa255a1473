# shellcheck shell=bash
# What the tests on the real kernel share. Sourced, not run.
set -Eeuo pipefail
# No test ends without a sentence.
trap 'echo "failed: status $? of line $LINENO: $BASH_COMMAND"' ERR
SCX=/sys/kernel/sched_ext
LOG=/tmp/scx_powerpack.log
PID=''

# With the lines that called it, the nearest first: what is printed is often a file alone.
fail() {
	local lines=${BASH_LINENO[*]}
	echo "failed: line ${lines% 0}: $*"
	[ ! -e $LOG ] || tail -n 5 $LOG
	exit 1
}

# There is nothing here to test, for the reason $1, a sentence.
skip() {
	echo "$1"
	exit 77
}

# Sleep $1 s. To start a program, sleep(1) too, costs a VM as much as 20 ms of sleep: where
# they polled that was a quarter of the time to load.
exec {NOTHING}<> <(:)
nap() { read -rt "$1" -u "$NOTHING" || true; }

# scripts/lib/vm-guest.sh says why.
PATIENCE=${PATIENCE:-1}

# Start the scheduler with these arguments and wait until it is attached, for $START_S (60) s at most.
start() {
	scx_powerpack "$@" >$LOG 2>&1 &
	PID=$!
	attached_times 1
}

# Wait, as long, until the scheduler that runs has been attached $1 times: it loads again as CPUs come that it does
# not know.
attached_times() {
	local i said rest
	for i in $(seq $((${START_S:-60} * 10 * PATIENCE))); do
		said=$(<$LOG) rest=${said//attached: /}
		[ $(((${#said} - ${#rest}) / 10)) -lt "$1" ] || return 0
		kill -0 $PID 2>/dev/null || fail "scx_powerpack has ended"
		nap 0.1
	done
	fail "scx_powerpack did not attach within $((${START_S:-60} * PATIENCE)) s ($i tries)"
}

# End it with signal $1 (INT); its exit status must be $2 (0).
stop() {
	local status=0
	kill -"${1:-INT}" $PID
	wait $PID || status=$?
	[ $status = "${2:-0}" ] || fail "exit status $status after SIG${1:-INT}"
	kernel_is_back
}

kernel_is_back() {
	local i
	for i in $(seq $((100 * PATIENCE))); do
		[ "$(<$SCX/state)" != disabled ] || return 0
		nap 0.05
	done
	fail "the kernel's scheduler is not back after $((5 * PATIENCE)) s ($i tries)"
}

# Whether the kernel reports changes of cpu.max to a scheduler: since Linux 6.17.
reports_cpu_max() { grep -qa cgroup_set_bandwidth /sys/kernel/btf/vmlinux; }

# The scheduler's status must match $1.
status_says() {
	scx_powerpack status >/tmp/status
	grep -q "$1" /tmp/status
}

# A number out of the JSON on stdin: json KEY
json() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/"; }

# The list after "KEY":[ as words.
json_list() { sed "s/.*\"$1\":\[\([^]]*\)\].*/\1/" | tr ',' ' '; }

# The command must fail with status 1, and say one line that matches $1.
refused() {
	local pattern=$1 output status=0
	shift
	output=$(timeout $((60 * PATIENCE)) "$@" 2>&1) || status=$?
	[ $status = 1 ] || fail "$* ended with $status, not 1: $output"
	[ "$(printf '%s\n' "$output" | grep -c 'scx_powerpack: ')" = 1 ] || fail "$* said: $output"
	printf '%s\n' "$output" | grep -qE "$pattern" || fail "$* said: $output"
	! printf '%s\n' "$output" | grep -qiE 'panick|backtrace' || fail "$* said: $output"
}

# What CPU $2 is non-idle (%) in the JSON of load $1.
busy() { json_list non_idle_pct <"$1" | awk -v c="$2" '{ print int($(c + 1)) }'; }

# Which CPUs are non-idle for at least $2 % in the JSON of load $1, as digits.
used() {
	local cpu=0 pct
	for pct in $(json_list non_idle_pct <"$1"); do
		[ "${pct%.*}" -lt "$2" ] || printf %d $cpu
		cpu=$((cpu + 1))
	done
}

CGROUPS=/sys/fs/cgroup

# Whether cgroups can have a share of the CPU, or a limit.
has_cpu_controller() { grep -qw cpu $CGROUPS/cgroup.controllers; }

# Run command $2.. in cgroup $1 (.: the root).
run_in() {
	local cgroup=$1
	shift
	sh -c "echo \$\$ >$CGROUPS/$cgroup/cgroup.procs; exec \"\$@\"" sh "$@"
}

# End what runs in cgroups $1.., and remove them.
end_cgroups() {
	local cgroup
	for cgroup in "$@"; do
		echo 1 >"$CGROUPS/$cgroup/cgroup.kill"
		until rmdir "$CGROUPS/$cgroup" 2>/dev/null; do nap 0.05; done
	done
}

# USED_US is what cgroup $1 has used so far, AT_US when that was. Usage (us) is the first line; read without
# a process of its own, which takes time between the two, and again where the shell waited for a CPU between.
look_at_use() {
	local begin _
	for _ in {1..10}; do
		begin=${EPOCHREALTIME/./}
		read -r _ USED_US <"$CGROUPS/$1/cpu.stat"
		AT_US=${EPOCHREALTIME/./}
		[ $((AT_US - begin)) -gt 2000 ] || break
	done
}

# What cgroup $1 has used so far (us).
used_us() {
	look_at_use "$1"
	echo "$USED_US"
}

# USE_US is what cgroup $1 uses in ELAPSED_US, which are $2 s.
measure_use() {
	local before begin
	look_at_use "$1"
	before=$USED_US begin=$AT_US
	nap "$2"
	look_at_use "$1"
	ELAPSED_US=$((AT_US - begin)) USE_US=$((USED_US - before))
}

# How much of a CPU cgroup $1 uses in $2 s (%).
pct_of() {
	measure_use "$@"
	echo $((100 * USE_US / ELAPSED_US))
}

# The tasks of cgroup $1 that can run are on one of CPUs $2.. (Of one that sleeps the kernel says where
# it was.)
only_on() {
	local cgroup=$1 pid stat
	shift
	while read -r pid; do
		{ read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
		# The fields after the name: state is the first, the CPU the 37th.
		read -ra stat <<<"${stat##*) }"
		[ "${stat[0]}" = R ] || continue
		[[ " $* " = *" ${stat[36]} "* ]] || fail "CPU ${stat[36]} runs a task of $cgroup, which may use $*"
	done <"$CGROUPS/$cgroup/cgroup.threads"
}

# The topology of this machine, but its first two CPUs are small ones.
two_kinds_of_cores() {
	export SCX_SYSFS_PREFIX=/tmp/hybrid
	local root=$SCX_SYSFS_PREFIX/sys/devices/system list cpu
	mkdir -p $root/cpu $root/node
	for list in possible present online isolated; do
		cat /sys/devices/system/cpu/$list >$root/cpu/$list
	done
	for cpu in 0 1 2 3; do
		cp -r /sys/devices/system/cpu/cpu$cpu $root/cpu/ 2>/dev/null || true
		echo $((cpu < 2 ? 400 : 1024)) >$root/cpu/cpu$cpu/cpu_capacity
	done
	[ ! -e /sys/devices/system/node/node0 ] || cp -r /sys/devices/system/node/node0 $root/node/ 2>/dev/null || true
}
