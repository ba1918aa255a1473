#!/usr/bin/env bash
# SMT is switched on while it runs: it loads again, as it did not know which CPUs share a core, with what was
# switched by hand. A CPU that goes and comes back then has it load no more.
# only: 7
# vm: --slow-virtual-time --topology sockets=2,cores=2,threads=2
. "$(dirname "$0")/lib.bash"

siblings() {
	local cpu
	for cpu in 1 3 5 7; do echo "$1" >/sys/devices/system/cpu/cpu$cpu/online; done
}
# The CPUs in the order of their ranks.
order() { sed -n 's/^ *[0-9]\+ \+\([0-9]\+\) .*/\1/p' | tr '\n' ' '; }

want=$(scx_powerpack topology | order)
siblings 0
printf '[policy]\nmax_cores = 64\n' >/tmp/later.toml
start --mode packing --config /tmp/later.toml
scx_powerpack mode spread >/dev/null
scx_powerpack status >/tmp/status
order </tmp/status | grep -q '^0 2 4 6 ' || fail "siblings are offline: $(</tmp/status)"
siblings 1
attached_times 2
grep -q 'the set of CPUs has changed: loading again' $LOG || fail "it has not loaded again: $(<$LOG)"
status_says 'mode spread, 8 of 8 CPUs active' || fail "after it has loaded again: $(</tmp/status)"
[ "$(order </tmp/status)" = "$want" ] || fail "want the order $want: $(</tmp/status)"
loads=$(<$SCX/enable_seq)
siblings 0
siblings 1
if status_says offline; then fail "a CPU is offline: $(</tmp/status)"; fi
[ "$(<$SCX/enable_seq)" = "$loads" ] || fail "it has loaded again, though it knew these CPUs: $(<$LOG)"
stop
