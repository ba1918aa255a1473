#!/usr/bin/env bash
# No task starves, whatever a third runs elsewhere: services beside hogs of their own cpuset
# while a free hog runs, a probe beside the heaviest and the lightest hog, and a thread of one
# CPU beside a hog. Run with "eevdf" it shows how the kernel's own scheduler waits.
# vm: --slow-virtual-time
# timeout: 400
. "$(dirname "$0")/lib.bash"

# The last of a name in the JSON is the total.
total() { sed "s/.*\"$2\":{[^}]*\"$3\":\([0-9.]*\).*/\1/" "$1"; }

# Of the services in file $1: $2 runs at least, waits of $3 ms on average and $4 at most.
served() {
	local runs mean longest
	runs=$(json activations <"$1") mean=$(total "$1" wake_latency mean_us) longest=$(total "$1" wake_latency max_us)
	echo "$(basename "$1" .json): $runs runs, waited $mean us on average, $longest us at most"
	awk -v r="$runs" -v m="$mean" -v l="$longest" "BEGIN { exit !(r >= $2 && m <= $3 * 1000 && l <= $4 * 1000) }" ||
		fail "not $2 runs, $3 and $4 ms"
}

[ "${1:-}" = eevdf ] || start --mode packing

# The outsider runs first. It is lighter, so that its scaled time passes faster.
powerpack-load hogs --seconds 18 --count 1 --nice 10 >/tmp/outsider.json &
outsider=$!
sleep 1
taskset -c 2,3 powerpack-load hogs --seconds 16 --count 3 >/tmp/three.json &
three=$!
sleep 1
taskset -c 2,3 powerpack-load periodic --seconds 12 '1/50*4' >/tmp/services.json
wait $three $outsider
served /tmp/services.json 930 3 20

powerpack-load hogs --seconds 14 --count 2 --nice=-20,19 --pin 2 >/tmp/extremes.json &
extremes=$!
sleep 1
taskset -c 2 powerpack-load periodic --seconds 12 '0.2/500' >/tmp/probe.json
wait $extremes
served /tmp/probe.json 23 20 200
[ "${1:-}" = eevdf ] || json_list cpu_s </tmp/extremes.json | awk '{ exit !($2 > 0.03 && $2 < 0.7) }' ||
	fail "nice 19 starves beside nice -20, or takes its share: $(cat /tmp/extremes.json)"

powerpack-load hogs --seconds 8 --count 1 --pin 2 >/tmp/hog.json &
hog=$!
sleep 1
taskset -c 2 powerpack-load periodic --seconds 6 '0.05/7' >/tmp/thread.json
wait $hog
served /tmp/thread.json 840 0.3 4.5

# A hog that is given another nice value all the time is put off and on its CPU each time. That
# ends no run of it: it is still a long one, which need not be waited for.
powerpack-load hogs --seconds 8 --count 1 --pin 2 >/tmp/hog.json &
hog=$!
taskset -c 0 python3 - $hog <<'PYTHON' &
import os, sys, time
end = time.monotonic() + 7
while time.monotonic() < end:
    try:
        hog = [int(thread) for thread in os.listdir(f"/proc/{sys.argv[1]}/task")]
        for value in (1, 0):
            for thread in hog:
                os.setpriority(os.PRIO_PROCESS, thread, value)
            time.sleep(0.001)
    except (FileNotFoundError, ProcessLookupError):
        break  # it has ended: this program may have begun late
PYTHON
reniced=$!
sleep 1
taskset -c 2 powerpack-load periodic --seconds 5 '0.05/7' >/tmp/thread.json
wait $hog $reniced
served /tmp/thread.json 700 0.3 4.5

[ "${1:-}" = eevdf ] || stop
