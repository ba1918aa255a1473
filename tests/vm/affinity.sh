#!/usr/bin/env bash
# Pinned and cpuset-restricted tasks run where they may, and only there, also
# when that changes while they wait; the surplus CPU is not avoided for them. Hundreds of changes of
# tasks that run and wait lose nobody's turn.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

start --mode packing
# Three hogs pinned to the last CPU, which is surplus.
powerpack-load hogs --seconds 4 --count 3 --pin 3 >/tmp/pin.json
[ "$(busy /tmp/pin.json 3)" -ge 90 ] || fail "CPU 3 is not busy: $(cat /tmp/pin.json)"
[ "$(busy /tmp/pin.json 1)" -le 20 ] || fail "others are: $(cat /tmp/pin.json)"
# A cpuset of two CPUs.
echo +cpuset +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/pair
echo 1-2 >/sys/fs/cgroup/pair/cpuset.cpus
bash -c 'echo $$ >/sys/fs/cgroup/pair/cgroup.procs; exec powerpack-load hogs --seconds 6 --count 4' >/tmp/pair.json &
pair=$!
sleep 2
only_on pair 1 2
# Moved while it runs and waits.
echo 0,3 >/sys/fs/cgroup/pair/cpuset.cpus
sleep 1
only_on pair 0 3
wait $pair || fail "the tasks of the cpuset did not finish"
rmdir /sys/fs/cgroup/pair

# A storm of taskset, in one program as to start that takes longer than all else.
storm() {
	python3 - "$1" "$2" <<'PYTHON'
import os, random, sys, time

pid, kind = int(sys.argv[1]), sys.argv[2]
threads = [int(tid) for tid in os.listdir(f"/proc/{pid}/task") if int(tid) != pid]
random.seed(1)

def ran_ms(tid):
    return int(open(f"/proc/{pid}/task/{tid}/schedstat").read().split()[0]) / 1e6

def state_and_cpu(tid):
    fields = open(f"/proc/{pid}/task/{tid}/stat").read().rsplit(") ", 1)[1].split()
    return fields[0], int(fields[36])

def any_cpus():
    """A running or waiting one is put elsewhere: it is nowhere else, and all have had their turns."""
    begin, before = time.monotonic(), {tid: ran_ms(tid) for tid in threads}
    for nr in range(400):
        tid = random.choice(threads)
        cpus = random.sample(range(4), random.choice([1, 1, 2, 3]))
        os.sched_setaffinity(tid, cpus)
        state, cpu = state_and_cpu(tid)
        assert state != "R" or cpu in cpus, f"change {nr}: on CPU {cpu}, may use {cpus}"
        time.sleep(0.004)
    for tid in threads:
        os.sched_setaffinity(tid, range(4))
    elapsed_ms = (time.monotonic() - begin) * 1e3
    ran = sorted(ran_ms(tid) - before[tid] for tid in threads)
    print(f"400 changes in {elapsed_ms:.0f} ms, in which they ran", " ".join(f"{ms:.0f}" for ms in ran), "ms")
    # Of four CPUs for six threads it is two thirds for each, less what the masks forbid.
    assert ran[0] > elapsed_ms * 0.4, "one has hardly run"
    assert sum(ran) > elapsed_ms * 4 * 0.75, "CPUs were idle"

def to_an_idle_cpu():
    """One that waits behind others begins at once where a CPU is idle."""
    longest = 0
    for nr in range(100):
        tid = threads[nr % len(threads)]
        begin, before = time.monotonic(), ran_ms(tid)
        os.sched_setaffinity(tid, [nr % 2])
        while ran_ms(tid) - before < 1:
            waited_ms = (time.monotonic() - begin) * 1e3
            assert waited_ms < 30, f"change {nr}: it has not run for {waited_ms:.0f} ms, with CPU {nr % 2} idle"
            time.sleep(0.001)
        longest = max(longest, (time.monotonic() - begin) * 1e3)
        os.sched_setaffinity(tid, [3])
    print(f"to an idle CPU and back 100 times: it had run for a millisecond after {longest:.1f} ms at most")

def where_it_was():
    """One that waits for the active CPU, and is bound to the idle one where it ran before, begins at once."""
    longest, tid = 0, threads[1]
    os.sched_setaffinity(threads[0], [0])
    for nr in range(300):
        os.sched_setaffinity(tid, range(4))
        time.sleep(0.012 * random.random())
        begin, before = time.monotonic(), ran_ms(tid)
        os.sched_setaffinity(tid, [3])
        while ran_ms(tid) - before < 1:
            waited_ms = (time.monotonic() - begin) * 1e3
            assert waited_ms < 30, f"change {nr}: it has not run for {waited_ms:.0f} ms, with CPU 3 idle"
            time.sleep(0.001)
        longest = max(longest, (time.monotonic() - begin) * 1e3)
    print(f"bound to where it was 300 times: it had run for a millisecond after {longest:.1f} ms at most")

{"any": any_cpus, "idle": to_an_idle_cpu, "back": where_it_was}[kind]()
PYTHON
}

powerpack-load hogs --seconds 60 --count 6 >/dev/null &
hogs=$!
nap 1
storm $hogs any || fail "a storm of changes"
kill -0 $PID || fail "the scheduler ended"
kill $hogs
powerpack-load hogs --seconds 60 --count 3 --pin 3 >/dev/null &
hogs=$!
nap 1
storm $hogs idle || fail "tasks that wait, and are moved to an idle CPU"
kill $hogs

scx_powerpack mode packing --max-cores 1 >/dev/null
powerpack-load hogs --seconds 60 --count 2 >/dev/null &
hogs=$!
nap 1
storm $hogs back || fail "tasks that wait, and are bound to where they were"
kill $hogs
scx_powerpack mode packing --max-cores all >/dev/null

# A program of many short tasks that wake each other, all on one CPU: these take it from the long ones
# four thousand times a second at most, or they would do nothing but switch.
preempted() { scx_powerpack status --json | jq .counters.preempt; }
begin_us=${EPOCHREALTIME/./} before=$(preempted)
taskset -c 1 hackbench -g 2 -l 50 >/dev/null
after=$(preempted) lasted_ms=$(((${EPOCHREALTIME/./} - begin_us) / 1000))
[ $((after - before)) -le $((4 * lasted_ms + 100)) ] || fail "$((after - before)) preemptions in $lasted_ms ms"
stop
