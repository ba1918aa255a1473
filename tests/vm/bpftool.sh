#!/usr/bin/env bash
# What an administrator sees of the running scheduler with bpftool (docs/operating.md): its
# struct_ops, its programs, and its maps, field by field. In virtual time: on a busy host a hog
# has not all of its CPU.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

PATH=$PATH:/usr/sbin

# The maps as they are now: that of CPUs has a place for each of the 1,024 that there may be.
dump() {
	bpftool -j map dump name .bss.pp_cpus |
		jq -c '.[].formatted.value[".bss.pp_cpus"][].cpus[:4]' >/tmp/cpus.json
	bpftool -j map dump name .bss.pp_active >/tmp/active.json
}

# Field $2 of CPU $1 in the map of CPUs.
of_cpu() {
	jq -r --argjson cpu "$1" --arg field "$2" '.[$cpu][$field]' /tmp/cpus.json
}

# Field $1 of the active set.
of_active() {
	jq -r --arg field "$1" '.[].formatted.value[".bss.pp_active"][].active_set[$field]' /tmp/active.json
}

# Whether CPU $1 has a utilization of at most 100 at one of five looks: what a look itself takes
# may have spilled there before the last one.
idles() {
	for _ in 1 2 3 4 5; do
		dump
		[ "$(of_cpu "$1" util)" -gt 100 ] || return 0
		nap 1
	done
	return 1
}

start --mode packing
echo "struct_ops, programs, maps"
bpftool struct_ops show | tee /tmp/ops
grep -q 'powerpack_ops' /tmp/ops || fail "bpftool shows no struct_ops of ours"
bpftool prog show | grep -E 'struct_ops +name powerpack_' | tee /tmp/progs
for program in select_cpu enqueue dispatch running stopping; do
	grep -q "name powerpack_$program" /tmp/progs || fail "bpftool shows no program $program"
done
bpftool map show | grep -A 2 'name .bss.pp_' | tee /tmp/maps
for map in cpus active limits; do
	grep -q "name .bss.pp_$map " /tmp/maps || fail "bpftool shows no map .bss.pp_$map"
done

echo "a pinned hog's CPU is busy, and another one is not"
powerpack-load hogs --seconds 10 --count 1 --pin 2 >/dev/null &
hog=$!
sleep 3
# What it does itself is on the active CPUs, the lowest ranks: CPU 3 is left alone.
idles 3 || fail "an idle CPU has a utilization of $(of_cpu 3 util)"
[ "$(of_cpu 2 util)" -ge 900 ] || fail "the hog's CPU has a utilization of $(of_cpu 2 util)"
[ "$(of_cpu 2 running_since_ns)" -gt 0 ] || fail "nothing runs on the hog's CPU"
wait $hog
# It is as of the last time that a CPU looked for what to run.
nap 1
idles 2 || fail "a CPU whose hog has ended has $(of_cpu 2 util)"

echo "capacity, rank and state, as topology and status report them"
scx_powerpack topology >/tmp/topology
for cpu in 0 1 2 3; do
	rank=$(awk -v cpu=$cpu 'NR > 3 && $2 == cpu { print $1 }' /tmp/topology)
	[ "$(of_cpu $cpu rank)" = "$rank" ] || fail "CPU $cpu has rank $(of_cpu $cpu rank), not $rank"
	[ "$(of_cpu $cpu capacity)" = 1024 ] || fail "CPU $cpu has capacity $(of_cpu $cpu capacity)"
done
scx_powerpack mode packing --max-cores 2 >/dev/null
sleep 1
dump
[ "$(of_cpu 0 state)" = PP_CPU_ACTIVE ] || fail "CPU 0 is $(of_cpu 0 state)"
[ "$(of_cpu 3 state)" = PP_CPU_SURPLUS ] || fail "CPU 3 is $(of_cpu 3 state)"
[ "$(of_active ceiling)" = 2 ] || fail "the ceiling is $(of_active ceiling), not 2"
[ "$(of_active nr)" -le 2 ] || fail "$(of_active nr) CPUs are active, not 2 at most"
scx_powerpack mode spread --max-cores all >/dev/null
dump
[ "$(of_active nr)" = 4 ] || fail "$(of_active nr) CPUs are active in spread, not 4"
[ "$(of_cpu 3 state)" = PP_CPU_ACTIVE ] || fail "CPU 3 is $(of_cpu 3 state) in spread"
stop
