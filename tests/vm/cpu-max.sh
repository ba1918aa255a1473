#!/usr/bin/env bash
# A cgroup gets what its cpu.max says, within 2 % over some seconds, in packing and in spread: one
# thread and many, nested, from a burst, changed while it is in force; raised to "max" it runs at
# once. Others lose nothing to it, and no timer runs while no cgroup has a limit.
# also: debian-7-rt
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

has_cpu_controller || skip "this kernel has no cpu.max: it is built without the cpu controller"
echo +cpu >$CGROUPS/cgroup.subtree_control

# Cgroup $1 with cpu.max $2.
limited() {
	mkdir -p "$CGROUPS/$1"
	echo "$2" >"$CGROUPS/$1/cpu.max"
}

# What cgroup $1 uses in $2 s must be $3 % of a CPU, within 2 %. Where in a period the time begins and
# ends decides on up to a quota more or less: of 100 periods that is 1 %.
must_use() {
	measure_use "$1" "$2"
	awk -v us="$USE_US" -v elapsed="$ELAPSED_US" -v want="$3" -v what="$1" 'BEGIN {
		pct = 100 * us / elapsed
		print what ": " pct " % of a CPU, of " want
		exit !(pct > want * 0.98 && pct < want * 1.02)
	}' || fail "cgroup $1 does not use $3 % of a CPU, in $MODE"
}

for MODE in packing spread; do
	start --mode $MODE
	limited one "20000 100000"
	run_in one powerpack-load hogs --seconds 120 --count 1 >/dev/null &
	limited many "50000 50000"
	run_in many powerpack-load hogs --seconds 120 --count 12 >/dev/null &
	limited nest "60000 100000"
	echo +cpu >$CGROUPS/nest/cgroup.subtree_control
	for inner in a b; do
		limited nest/$inner "50000 100000"
		run_in nest/$inner powerpack-load hogs --seconds 120 --count 2 >/dev/null &
	done
	nap 1
	must_use one 10 20
	status_says '^cpu.max of one: 20 of 100 ms; throttled in \(9[0-9]\|1[0-3][0-9]\) of' || fail "status: $(cat /tmp/status)"
	status_says '^cpu.max of nest/a: 50 of 100 ms; throttled in ' || fail "status: $(cat /tmp/status)"
	must_use many 10 100
	must_use nest 10 60
	echo "40000 100000" >$CGROUPS/one/cpu.max
	nap 0.2
	must_use one 10 40
	end_cgroups many nest/a nest/b nest
	# However little it may use, whoever ends it need not wait for that.
	limited little "1000 1000000"
	run_in little powerpack-load hogs --seconds 60 --count 12 >/dev/null &
	nap 1
	begin=${EPOCHREALTIME/./}
	end_cgroups little
	ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
	[ $ms -le 1500 ] || fail "a throttled cgroup was killed only after $ms ms, in $MODE"
	# A task that is throttled for a whole second goes on at once when it may.
	echo "1000 1000000" >$CGROUPS/one/cpu.max
	nap 0.3
	echo max >$CGROUPS/one/cpu.max
	# Where the kernel does not report it, within a tenth of a second.
	reports_cpu_max || nap 0.1
	must_use one 1 100
	end_cgroups one
	stop
done

# The agent may itself be limited: where it is the timer of those that are held it is not held too.
MODE=packing
start --mode $MODE
limited agent "1000 1000000"
echo $PID >$CGROUPS/agent/cgroup.procs
for _ in 1 2 3; do timeout 5 scx_powerpack status >/dev/null || true; done
limited one "20000 100000"
run_in one powerpack-load hogs --seconds 60 --count 1 >/dev/null &
nap 1
must_use one 5 20
end_cgroups one
echo $PID >$CGROUPS/cgroup.procs
rmdir $CGROUPS/agent
stop
