#!/usr/bin/env bash
# Many cgroups with a task each, and a limit for some, made and removed at 100 a second while a table of
# workloads is in force and not: no error, nothing left behind, and what runs is served. A thousand, of
# which 200 are replaced; by hand NR of them, of which REPLACED are replaced (docs/operating.md).
# only: 7
# vm: --virtual-time --memory 4G
# timeout: 900
. "$(dirname "$0")/lib.bash"

ROOT=$CGROUPS/many
NR=${NR:-1000} REPLACED=${REPLACED:-200}
mkdir -p /tmp/etc $ROOT
echo +cpu >$CGROUPS/cgroup.subtree_control
echo +cpu >$ROOT/cgroup.subtree_control

# Makes and removes cgroups $ROOT/FIRST..LAST as it is asked on its input, and answers with a line. A
# shell with thousands of children takes longer for each of them than all that is tested here.
keeper() {
	exec python3 - $ROOT <<'PYTHON'
import gc, os, signal, sys, time

root, tasks = sys.argv[1], {}
commands = os.fdopen(3)
gc.disable()

def write(nr, file, text):
    with open(f"{root}/{nr}/{file}", "w") as out:
        out.write(text)

def make(nr):
    os.mkdir(f"{root}/{nr}")
    if nr % 10 == 0:
        write(nr, "cpu.max", "50000 100000")
    tasks[nr] = os.fork()
    if tasks[nr] == 0:
        # Nothing that would copy a page of its own.
        while True:
            signal.pause()
    write(nr, "cgroup.procs", str(tasks[nr]))

def remove(nr):
    write(nr, "cgroup.kill", "1")
    os.waitpid(tasks.pop(nr), 0)
    os.rmdir(f"{root}/{nr}")

def replace(nr):
    remove(nr)
    make(nr)

does = {"make": make, "remove": remove, "replace": replace}
for line in commands:
    if line == "end\n":
        break
    what, first, last, per_s = line.split()
    begin = time.monotonic()
    for done, nr in enumerate(range(int(first), int(last) + 1)):
        does[what](nr)
        late = begin + (done + 1) / float(per_s) - time.monotonic()
        if late > 0:
            time.sleep(late)
    print(f"{what} {first} to {last}: {time.monotonic() - begin:.1f} s", flush=True)
PYTHON
}
mkfifo /tmp/asked
keeper 3</tmp/asked >/tmp/done 2>&1 &
KEEPER=$!
exec {ASKED}>/tmp/asked

# Have the keeper do $1 with cgroups $2 to $3, at most $4 (1e6) a second.
ask() {
	local before
	before=$(wc -l </tmp/done)
	echo "$1 $2 $3 ${4:-1e6}" >&$ASKED
	while [ "$(wc -l </tmp/done)" = "$before" ]; do
		kill -0 $KEEPER 2>/dev/null || fail "cgroups cannot be made or removed: $(cat /tmp/done)"
		nap 0.1
	done
	tail -n 1 /tmp/done
	! grep -q Traceback /tmp/done || fail "$(cat /tmp/done)"
}

# Memory of all BPF maps, of the agent, and what the kernel has for its own (KiB).
maps_kib() { PATH=$PATH:/usr/sbin bpftool -j map show | jq '[.[] | .bytes_memlock] | add / 1024 | floor'; }
agent_kib() { awk '/VmRSS/ { print $2 }' /proc/$PID/status; }
kernel_kib() { awk '/^(Slab|Percpu|VmallocUsed):/ { all += $2 } END { print all }' /proc/meminfo; }
# CPU time of the agent so far (ms).
agent_ms() { cat /proc/$PID/task/*/schedstat | awk '{ ns += $1 } END { print int(ns / 1e6) }'; }

ask make 1 "$NR"
kernel=$(kernel_kib)
echo 'mode = "packing"' >/tmp/etc/config.toml
start --config /tmp/etc/config.toml
before=$(agent_kib)
echo "$NR cgroups: the kernel has $(($(kernel_kib) - kernel)) KiB more, maps $(maps_kib) KiB of that; agent $before KiB"
for table in '' '[workloads]
spread = ["many/*"]'; do
	printf 'mode = "packing"\n%s\n' "$table" >/tmp/etc/config.toml
	scx_powerpack reload >/dev/null
	ms=$(agent_ms)
	powerpack-load workload --seconds $((REPLACED / 100 + 2)) light >/tmp/light.json &
	light=$!
	ask replace 1 "$REPLACED" 100
	wait $light || fail "the light load beside that: $(cat /tmp/light.json)"
	[ "$(json overruns </tmp/light.json)" = 0 ] || fail "overruns beside that: $(cat /tmp/light.json)"
	kill -0 $PID || fail "the scheduler ended"
	echo "${table:-no table}: agent $(agent_kib) KiB, $(($(agent_ms) - ms)) ms of CPU time"
done
status_says '^cpu.max of many/10: 50 of 100 ms' || fail "no limit in the status: $(head -20 /tmp/status)"
ask remove 1 "$NR"
status_says 'cpu.max of' && fail "limits are left: $(grep -c cpu.max /tmp/status)"
echo "none: the kernel has $(($(kernel_kib) - kernel)) KiB more than with $NR cgroups and no scheduler, maps $(maps_kib) KiB; agent $(agent_kib) KiB"
[ "$(agent_kib)" -le $((before + 8192)) ] || fail "the agent has grown from $before to $(agent_kib) KiB"
echo end >&$ASKED
wait $KEEPER || fail "the keeper: $(cat /tmp/done)"
rmdir $ROOT
stop
