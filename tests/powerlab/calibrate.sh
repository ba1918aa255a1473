#!/usr/bin/env bash
# calibrate finds the model again that the driver has from the machine's file, within 5 %; puts everything
# back, after a kill too; and what it has written is what the simulator reads, and mode energy goes by
# where the kernel has no energy model.
# machine: chromebook2
# timeout: 3000
. "$(dirname "$0")/lib.bash"

OUT=/tmp/machine.toml
RECORD=/run/scx_powerpack/calibrate.json

# All that it may set.
settings() {
	grep . $CPUS/cpu*/cpuidle/state*/disable $CPUS/cpufreq/policy*/scaling_{governor,min_freq,max_freq}
}

govern schedutil
# What a user has set stays.
echo 1200000 >$CPUS/cpufreq/policy0/scaling_max_freq
settings >/tmp/before

echo "1: refused on a machine that is not idle, under a scheduler, and for others than root"
powerpack-load hogs --count 1 --seconds 1000 >/dev/null &
hog=$!
refused 'is not idle: what runs uses [0-9]+ % of a CPU' scx_powerpack calibrate --out $OUT
kill $hog
wait $hog || true
start
refused 'a sched_ext scheduler is loaded, powerpack' scx_powerpack calibrate --out $OUT
stop
refused 'needs root' setpriv --reuid=65534 --clear-groups "$(command -v scx_powerpack)" calibrate --out $OUT
[ ! -e $OUT ] || fail "it has written $OUT"
settings | diff /tmp/before - || fail "a refusal has left settings"

# Begin to measure, and wait until something is set: without a program, which would be measured.
begin() {
	local i
	scx_powerpack calibrate --out $OUT >$LOG 2>&1 &
	PID=$!
	for i in $(seq 60); do
		[ ! -e $RECORD ] || return 0
		kill -0 $PID 2>/dev/null || fail "calibrate ended"
		nap 0.5
	done
	fail "nothing is set after 30 s ($i tries)"
}

echo "2: Ctrl-C puts back; after a kill the next start does"
begin
status=0
kill -INT $PID
wait $PID || status=$?
[ $status = 130 ] || fail "exit status $status after Ctrl-C"
settings | diff /tmp/before - || fail "Ctrl-C has left settings"
begin
kill -9 $PID
wait $PID 2>/dev/null || true
settings | cmp -s /tmp/before - && fail "there is nothing to put back after a kill"
[ -e $RECORD ] || fail "there is no record of what is set"
start
settings | diff /tmp/before - || fail "the agent has not put back what a killed calibration has set"
stop

echo "3: the model, within 5 %"
scx_powerpack calibrate --out $OUT >/tmp/calibrate.out 2>$LOG || fail "calibrate: $(cat $LOG)"
settings | diff /tmp/before - || fail "it has left settings"
[ ! -e $RECORD ] || fail "it has left its record"
cat /tmp/calibrate.out $OUT
python3 - "$(dirname "$0")/../../sim/machines/chromebook2.toml" $OUT <<'PYTHON' || fail "the model is not the machine's"
import re, sys, tomllib
truth, found = (tomllib.load(open(path, "rb")) for path in sys.argv[1:])
text = open(sys.argv[2]).read()
wakes_uj = [float(uj) for uj in re.findall(r"wakes with it: ([0-9.]+) uJ", text)]
bad = 0

def same(what, is_, must):
    global bad
    apart = abs(is_ - must) / must * 100
    bad += apart > 5
    print(f"{what}: {is_:.1f}, by the machine's file {must:.1f}: {apart:.1f} %{'  BAD' if apart > 5 else ''}")

floor = 0
for nr, (kind, llc) in enumerate(zip(("a7", "a15"), truth["llc"])):
    core, own = truth["core"][kind], found["core"][f"kind{nr}"]
    off = core["idle"][-1]["mw"]
    power = {opp["mhz"]: opp["mw"] for opp in core["opps"]}
    assert own["capacity"] == core["capacity"] and len(own["opps"]) >= 4, own
    assert [state["name"] for state in own["idle"]] == ["WFI", "off"], own["idle"]
    for opp in own["opps"]:
        same(f"{kind} at {opp['mhz']} MHz (mW)", opp["mw"], power[opp["mhz"]] - off)
    same(f"{kind} in WFI (mW)", own["idle"][0]["mw"], core["idle"][0]["mw"] - off)
    shared = llc["active_mw"] - llc["idle"][0]["mw"]
    same(f"cluster of {kind} (mW)", found["llc"][nr]["active_mw"], shared)
    # While it wakes a core takes what it takes at work, at its lowest frequency, and so does its cluster.
    lowest = core["opps"][0]["mw"]
    same(f"wake-up of {kind} (uJ)", wakes_uj[nr], core["idle"][-1]["exit_us"] / 1e3 * (lowest - off + shared))
    floor += 4 * off + llc["idle"][0]["mw"]
same("idle machine (mW)", found["package"]["active_mw"], floor)
# The VM has one cache for both kinds, with a clock for each.
assert found["clock"] == "kind" and found["governor"] == "schedutil" and found["idle_governor"] == "menu", found
sys.exit(bad > 0)
PYTHON

echo "4: the simulator reads it, and mode energy goes by it where the kernel has no energy model"
scx_powerpack sim --machine $OUT --workload light --policy packing,energy | tail -n 12
# The root of the VM is read-only.
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/scx_powerpack
cp $OUT /var/lib/scx_powerpack/machine.toml
start --mode energy
grep -q "mode energy goes by the kernel's energy model" $LOG || fail "it does not say what it goes by"
stop
umount -l /sys/kernel/debug
start --mode energy
mount -t debugfs none /sys/kernel/debug
grep -q 'mode energy goes by what scx_powerpack calibrate has measured' $LOG || fail "it does not say what it goes by"
stop
# That of another machine is of no use.
sed '0,/^cores = 4/s//cores = 3/' $OUT >/var/lib/scx_powerpack/machine.toml
umount -l /sys/kernel/debug
start --mode energy
mount -t debugfs none /sys/kernel/debug
grep -q 'machine with other CPUs' $LOG && grep -q 'mode energy goes by defaults' $LOG ||
	fail "it goes by the file of another machine"
stop
