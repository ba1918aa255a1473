#!/usr/bin/env bash
# Mode auto chooses, and says why: it packs, spreads under load, and packs again.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"
asking=()

echo +cpu >$CGROUPS/cgroup.subtree_control
mkdir -p $CGROUPS/limited
echo "20000 100000" >$CGROUPS/limited/cpu.max

start --mode auto
echo "a container at its limit"
run_in limited powerpack-load hogs --seconds 25 --count 2 >/dev/null
awk '/^some/ { split($2, avg10, "="); exit !(avg10[2] > 20) }' /proc/pressure/cpu ||
	fail "a container at its limit makes no pressure: $(cat /proc/pressure/cpu)"
[[ $(scx_powerpack mode) == 'packing (auto: the load fits'*'with cpu.max'* ]] ||
	fail "auto spreads for a container at its limit: $(scx_powerpack mode)"

echo "idle, busy, and idle again"
scx_powerpack mode spread >/dev/null
[[ $(scx_powerpack mode auto) == packing* ]] || fail "auto does not pack an idle machine"
[[ $(scx_powerpack mode) == *'auto: '* ]] || fail "the reason is not reported"
# Two that ask all the time, as `top` does, and do not keep it from looking.
for _ in 1 2; do
	python3 -c 'import socket, time
while True:
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/scx_powerpack/control.sock")
    s.sendall(b"{\"top\":{\"tasks\":1}}\n")
    s.recv(9)
    time.sleep(0.7)' &
	asking+=($!)
done
powerpack-load hogs --seconds 18 --count 8 >/dev/null &
load=$!
for i in $(seq 16); do
	sleep 1
	[[ $(scx_powerpack mode) != spread* ]] || break
done
[[ $(scx_powerpack mode) == 'spread (auto: busy'* ]] || fail "auto packs hogs after $i s: $(scx_powerpack mode)"
# What it knows of the machine outlasts a reload, and a knob that is asked for.
[[ $(scx_powerpack reload) == spread* ]] || fail "auto has forgotten by a reload that the machine is busy"
[[ $(scx_powerpack mode auto --pack small) == spread* ]] || fail "auto has forgotten by a knob that the machine is busy"
kill "${asking[@]}"
wait $load
sleep 1
# Or auto would take an idle machine for a busy one.
utils=$(scx_powerpack status --json | grep -o '"util":[0-9]*' | cut -d: -f2)
[ "$(echo "$utils" | wc -l)" = 4 ] || fail "status shows no utilization"
min=$(echo "$utils" | sort -n | head -n 1)
[ "$min" -lt 300 ] || fail "no CPU of an idle machine is reported to be idle: $utils"
# Calm for half a minute, and the pressure of the last ten seconds gone.
for i in $(seq 60); do
	sleep 1
	[[ $(scx_powerpack mode) != packing* ]] || break
done
[[ $(scx_powerpack mode) == 'packing (auto: the load fits'* ]] || fail "auto does not pack again after $i s: $(scx_powerpack mode)"
scx_powerpack mode packing >/dev/null
[ "$(scx_powerpack mode)" = packing ] || fail "auto cannot be left"
scx_powerpack mode spread >/dev/null
scx_powerpack mode auto --pack small >/dev/null || fail "a knob of packing does not wait for that mode"
stop
