#!/usr/bin/env bash
# CPU time follows the weights: nice 0 against nice 10 (1024 to 110) within a
# tenth, cgroups of weight 300 and 100, and SCHED_IDLE starves no task nor is
# starved. Tasks confined to some CPUs share all of these.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

ratio_within() {
	awk -v a="$1" -v b="$2" -v want="$3" -v off="$4" \
		'BEGIN { r = a / b / want; exit !(r > 1 - off && r < 1 + off) }'
}

start --mode packing
read -r first second < <(powerpack-load hogs --seconds 8 --count 2 --nice 0,10 --pin 1 | json_list cpu_s)
ratio_within "$first" "$second" 9.31 0.1 || fail "nice 0 got $first s, nice 10 $second s"

cgroups_share() {
	local weight before after
	echo +cpu >$CGROUPS/cgroup.subtree_control
	# What their threads did as they started counts for an epoch or two (src/bpf/shares.h).
	for weight in 300 100; do
		mkdir -p $CGROUPS/w$weight
		echo $weight >$CGROUPS/w$weight/cpu.weight
		run_in w$weight powerpack-load hogs --seconds 60 --count 1 --pin 2 >/dev/null &
	done
	nap 3
	before=("$(used_us w300)" "$(used_us w100)")
	nap 6
	after=("$(used_us w300)" "$(used_us w100)")
	ratio_within $((after[0] - before[0])) $((after[1] - before[1])) 3 0.15 ||
		fail "cgroups of 300 and 100 used ${before[*]} us, and ${after[*]} us six seconds later"
	end_cgroups w300 w100
}
! has_cpu_controller || cgroups_share

# Confined to two CPUs they share these, and none has one to itself.
taskset -c 1,2 powerpack-load hogs --seconds 6 --count 6 >/tmp/six.json
json_list cpu_s </tmp/six.json | awk '{ for (i = 1; i <= 6; i++) bad += $i < 1.7 || $i > 2.3; exit bad || NF != 6 }' ||
	fail "six on two CPUs: $(cat /tmp/six.json)"

# By weight they share both CPUs together, not each one among those that wait for it: five on two.
taskset -c 1,2 powerpack-load hogs --seconds 8 --count 5 --nice 0,0,3,3,6 >/tmp/five.json
json_list cpu_s </tmp/five.json | awk '{
	split("1024 1024 526 526 272", weight)
	for (i = 1; i <= 5; i++) { sum += weight[i]; all += $i }
	for (i = 1; i <= 5; i++) { r = $i / all * sum / weight[i]; bad += r < 0.93 || r > 1.07 }
	exit bad || all < 15
}' || fail "five of three weights on two CPUs: $(cat /tmp/five.json)"

chrt --idle 0 powerpack-load hogs --seconds 6 --count 1 --pin 1 >/tmp/idle.json &
idle=$!
powerpack-load hogs --seconds 6 --count 1 --pin 1 >/tmp/normal.json
wait $idle || true
awk -v i="$(json_list cpu_s </tmp/idle.json)" 'BEGIN { exit !(i > 0 && i < 0.6) }' ||
	fail "SCHED_IDLE got $(cat /tmp/idle.json)"

# Who yields goes on if none waits for its CPU, and makes way for who does.
yields() {
	taskset -c 1 python3 - <<'PYTHON'
import os, resource
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(20000):
    os.sched_yield()
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw)
PYTHON
}
switches=$(yields)
[ "$switches" -lt 1000 ] || fail "20,000 yields with no other on the CPU made $switches switches"
powerpack-load hogs --seconds 600 --count 1 --pin 1 >/dev/null &
hog=$!
nap 0.3
began=$(cut -d' ' -f14 /proc/$hog/task/*/stat | sort -n | tail -n 1)
yields >/dev/null
ended=$(cut -d' ' -f14 /proc/$hog/task/*/stat | sort -n | tail -n 1)
kill -KILL $hog
wait $hog 2>/dev/null || true
[ "$ended" -gt "$began" ] || fail "20,000 yields left a hog on the same CPU no time: $began, $ended"
stop
