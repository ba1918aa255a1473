# shellcheck shell=bash
# Tasks each of which counts its own work, so that one that is lost is found. Sourced after tests/vm/lib.bash.
WORK=/tmp/work

# Tasks that wake, compute, and say how far they are: one that is lost says nothing any more. They sleep
# for longer where the kernel is slow, and leave CPUs idle there too. By their nice value scripts/bad-builds
# knows them.
start_workers() {
	local nth sleep_s
	mkdir -p $WORK
	workers=()
	for nth in 0 1 2 3 4 5; do
		printf -v sleep_s '%d.%02d' $(((nth + 1) * PATIENCE / 100)) $(((nth + 1) * PATIENCE % 100))
		nice -n 1 bash -c 'exec {no}<> <(:); while :; do for ((i = 0; i < '$((nth * 20))'; i++)); do :; done
			echo $((++n)) >'$WORK/$nth'; read -rt '$sleep_s' -u $no; done' &
		workers+=($!)
	done
}

# Every worker goes on, within 5 s (PATIENCE times that). $1: when.
workers_go_on() {
	local nth before=() waits=${#workers[@]} i
	for nth in "${!workers[@]}"; do before+=("$(<$WORK/"$nth")"); done
	for i in $(seq $((100 * PATIENCE))); do
		waits=0
		for nth in "${!workers[@]}"; do
			[ "$(<$WORK/"$nth")" != "${before[nth]}" ] || waits=$((waits + 1))
		done
		[ $waits != 0 ] || return 0
		nap 0.05
	done
	fail "$waits workers do not go on $1 ($i looks)"
}

stop_workers() { kill "${workers[@]}"; }
