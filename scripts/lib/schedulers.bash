# shellcheck shell=bash
# In the VM: start and stop the schedulers that are compared. Sourced, not run.
# Who sources it defines `failed TEXT`, which notes that a scheduler failed.
scx=/sys/kernel/sched_ext
log=/tmp/sched.log
pid=''
# A pipe on which nothing ever comes: waiting on it is a sleep without a fork,
# whose instructions would be counted.
exec {nothing}<> <(:)

nap() { read -rt "$1" -u "$nothing" || true; }

# What scheduler $1 is, as a command.
command_of() {
	case $1 in
	packing | spread | balance) echo "scx_powerpack --mode $1" ;;
	packing:small) echo "scx_powerpack --mode packing --pack small" ;;
	bpfland) echo "scx_bpfland -m powersave" ;;
	lavd) echo "scx_lavd --powersave" ;;
	*) echo "nothing is called $1" >&2 && return 1 ;;
	esac
}

state_is() {
	local state
	read -r state <$scx/state
	[ "$state" = "$1" ]
}

# Kill what runs, and note why: its last words too.
give_up() {
	failed "$1: $(grep . $log | tail -n 2)"
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	[ -z "$pid" ] || wait "$pid" 2>/dev/null || true
	pid=''
}

# Start scheduler $1 (eevdf: none), wait until it is in charge, and let it settle. How
# long it took to load is in load_us.
start_scheduler() {
	local begin end command
	pid=''
	load_us=''
	[ "$1" != eevdf ] || return 0
	read -ra command < <(command_of "$1")
	# Brings the program into memory, so that no load time is a disk's.
	"${command[@]}" --version >/dev/null 2>&1 || true
	nap 1
	begin=${EPOCHREALTIME/./}
	"${command[@]}" >$log 2>&1 &
	pid=$!
	until state_is enabled; do
		if ! kill -0 "$pid" 2>/dev/null; then give_up 'ended while loading' && return 1; fi
		end=${EPOCHREALTIME/./}
		if ((end - begin > 60000000)); then give_up 'not in charge after 60 s' && return 1; fi
		nap 0.002
	done
	end=${EPOCHREALTIME/./}
	# shellcheck disable=SC2034 # for who sources this
	load_us=$((end - begin))
	nap 3
}

# End it; whatever was measured while it was not in charge is none of its.
stop_scheduler() {
	[ -n "$pid" ] || return 0
	state_is enabled || { give_up 'lost charge during the measurements' && return; }
	kill -INT "$pid"
	wait "$pid" || true
	for _ in $(seq 100); do
		if state_is disabled; then return; fi
		nap 0.05
	done
	give_up 'still in charge 5 s after SIGINT'
}
