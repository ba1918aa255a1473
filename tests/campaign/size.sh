#!/usr/bin/env bash
# On as many CPUs as this machine has: load and switch, all of them busy and most of them idle, CPUs that
# go so that their numbers have holes, and loading with those.
. "$TREE/tests/vm/lib.bash"

CPUS=$(nproc)
online() { echo "$2" >/sys/devices/system/cpu/cpu"$1"/online; }

# Milliseconds that "$@" takes.
timed_ms() {
	local begin=${EPOCHREALTIME/./}
	"$@" >/dev/null
	MS=$(((${EPOCHREALTIME/./} - begin) / 1000))
}

# How long hogs run: on many CPUs, which one after another have the host's, a quarter of what they do on few.
HOGS_S=2
((CPUS <= 64)) || HOGS_S=0.5
# Every one of $1 hogs has had time.
hogs_go_on() {
	powerpack-load hogs --seconds $HOGS_S --count "$1" >/tmp/hogs.json
	json_list cpu_s </tmp/hogs.json | awk -v nr="$1" '{ for (i = 1; i <= NF; i++) bad += $i <= 0; exit bad || NF != nr }' ||
		fail "not each of $1 hogs ran: $(cat /tmp/hogs.json)"
}

timed_ms start --mode packing
echo "figure: loaded in $MS ms"
scx_powerpack status --json >/tmp/status.json
listed=$(grep -o '"cpu":' /tmp/status.json | wc -l)
[ "$listed" -ge "$CPUS" ] || fail "the status lists $listed CPUs of $CPUS"
hogs_go_on $((CPUS + 2))
timed_ms scx_powerpack mode spread
echo "figure: switched in $MS ms"
hogs_go_on 3
powerpack-load periodic --seconds 3 1/10 1/20 0.5/5 >/tmp/periodic.json || fail "the periodic load failed"
if ((CPUS > 1)); then
	holes=$(for ((cpu = 1; cpu < CPUS; cpu += CPUS / 4 + 1)); do echo $cpu; done)
	for cpu in $holes; do online "$cpu" 0; done
	hogs_go_on "$CPUS"
	stop
	start --mode packing
	hogs_go_on "$CPUS"
	for cpu in $holes; do online "$cpu" 1; done
	hogs_go_on "$CPUS"
fi
for mode in balance energy auto packing; do scx_powerpack mode $mode >/dev/null || fail "no switch to $mode"; done
timed_ms stop
echo "figure: unloaded in $MS ms"
