#!/usr/bin/env bash
# Our scheduler's requests on a kernel that hears them: the frequency rises within a tick when a
# load comes, and falls when it leaves, also where CPUs share a clock.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

TRACE=/sys/kernel/tracing
govern schedutil
start --mode packing
nap 1

# The lowest that any A15 is asked for, of 1024: 1200 of 2000 MHz are best by the kernel's energy model,
# so 47 % of its capacity, before schedutil adds a quarter; without a model it is 55 %. (Not of one of
# them: the program that asks is not known yet, and may run there.)
lowest_target() {
	scx_powerpack status --json | grep -o '"cpu":[4-7],[^}]*"perf_target":[0-9]*' | sed 's/.*://' | sort -n | head -n 1
}
for _ in {1..20}; do
	asked=$(lowest_target)
	[ "$asked" != $((1024 * 47 / 100)) ] || break
	nap 0.2
done
[ "$asked" = $((1024 * 47 / 100)) ] || fail "no idle A15 is asked for less than $asked of 1024"

# From the creation of a thread that computes until the clock of its CPU is above 1800 MHz.
echo 'comm == "powerpack-load"' >$TRACE/events/sched/sched_wakeup_new/filter
echo "state == $((1800 * 1000)) || state == $((2000 * 1000)) || state == $((1900 * 1000))" \
	>$TRACE/events/power/cpu_frequency/filter
for event in sched/sched_wakeup_new power/cpu_frequency; do
	echo 1 >$TRACE/events/$event/enable
done
# No program is started for it: what is not known yet gets everything.
low_khz() { read -r khz <$CPUS/cpu4/cpufreq/scaling_cur_freq && [ "$khz" -lt 1800000 ]; }
for _ in {1..40}; do low_khz && break || nap 0.05; done
low_khz || fail "the clock is at $khz kHz before there is a load"
# Started on a small CPU: the program is not known yet either, and would raise that clock before
# its thread is there.
taskset -c 0 powerpack-load hogs --count 1 --pin 4 --seconds 1 >/dev/null &
nap 0.9
low_khz && fail "it is at $khz kHz while something computes"
high=$khz
wait $!
for _ in {1..20}; do
	nap 0.05
	! low_khz || break
done
low_khz || fail "it stayed at $khz kHz when the load had left"
echo 0 >$TRACE/events/enable
grep -v '^#' $TRACE/trace >/tmp/trace || true
grep -q cpu_frequency /tmp/trace || fail "the clock never rose"
rose_us=$(awk '{ at = 0; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) at = $i * 1e6 }
	/sched_wakeup_new/ && !/cpu_frequency/ { woken = at }
	/cpu_frequency/ && woken { printf "%d", at - woken; exit }' /tmp/trace)
echo "the clock rose after $rose_us us, to $high kHz, and was $khz when the load had left"
# A request that comes within a millisecond of the last change is ignored, and repeated at the tick;
# from its creation the thread has to get to its CPU first.
[ "$rose_us" -le 5000 ] || fail "it rose after $rose_us us: a tick is 4000, and the thread has to get to its CPU"
stop
