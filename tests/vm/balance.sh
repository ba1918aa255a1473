#!/usr/bin/env bash
# Two LLCs of two cores of two threads: in balance a load that one LLC carries stays in it and
# is spread inside, and one that it does not carry uses both. In virtual time: on a busy host
# no load fits one LLC.
# vm: --slow-virtual-time --topology sockets=2,cores=2,threads=2
. "$(dirname "$0")/lib.bash"

# What the CPUs of each LLC are non-idle together (%) in the JSON of load $1: two numbers.
by_llc() { json_list non_idle_pct <"$1" | awk '{ print int($1 + $2 + $3 + $4), int($5 + $6 + $7 + $8) }'; }

llcs=$(scx_powerpack topology | awk 'NR > 3 { print $4 }' | sort -u | wc -l)
[ "$llcs" = 2 ] || fail "this machine has $llcs LLCs, not 2: $(scx_powerpack topology)"
start --mode balance
powerpack-load periodic --seconds 4 --settle 2 '3/20*4' >/tmp/load.json
scx_powerpack status
read -r first second < <(by_llc /tmp/load.json)
[ "$first" -ge 40 ] || fail "the first LLC does not do the work: $(cat /tmp/load.json)"
[ "$second" -le 5 ] || fail "a load that fits one LLC uses both: $(cat /tmp/load.json)"
# They wake at the same instant: one after the other in packing, side by side here.
[[ $(used /tmp/load.json 8) =~ ^(0|1)+(2|3)+$ ]] || fail "it is not spread inside its LLC: $(cat /tmp/load.json)"

echo "the same in packing is on one core"
scx_powerpack mode packing >/dev/null
powerpack-load periodic --seconds 4 --settle 2 --phases even '1/20*4' >/tmp/load.json
[ "$(used /tmp/load.json 8)" = 0 ] || fail "packing spreads it: $(cat /tmp/load.json)"

echo "energy, in a VM that says nothing of its power, does as balance"
scx_powerpack mode energy >/dev/null
grep -q 'mode energy goes by defaults' $LOG || fail "it does not say what energy goes by"
powerpack-load periodic --seconds 4 --settle 2 '3/20*4' >/tmp/load.json
read -r first second < <(by_llc /tmp/load.json)
[ "$first" -ge 40 ] && [ "$second" -le 5 ] || fail "energy uses both LLCs: $(cat /tmp/load.json)"
[[ $(used /tmp/load.json 8) =~ ^(0|1)+(2|3)+$ ]] || fail "it is on one core: $(cat /tmp/load.json)"

echo "what one LLC does not carry uses both"
scx_powerpack mode balance >/dev/null
powerpack-load hogs --seconds 2 --count 4 >/tmp/load.json
read -r first second < <(by_llc /tmp/load.json)
[ "$first" -ge 150 ] && [ "$second" -ge 150 ] || fail "four hogs are not on both LLCs: $(cat /tmp/load.json)"
stop
