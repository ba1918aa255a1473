#!/usr/bin/env bash
# Everything that can be wrong is one sentence and exit status 1.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

refused 'needs root' setpriv --reuid 65534 --clear-groups -- "$(command -v scx_powerpack)"
refused "unknown mode 'turbo': choose one of spread, balance, packing, energy, or auto" scx_powerpack --mode turbo
refused "unknown mode 'turbo'" scx_powerpack mode turbo
refused 'out of range.*1\.\.4' scx_powerpack --max-cores 0
refused 'out of range.*1\.\.4' scx_powerpack --max-cores 5
refused 'fill-pct 9 is out of range: 10\.\.100' scx_powerpack --fill-pct 9
refused 'latency-budget-ms 0 is out of range: 1\.\.100' scx_powerpack --latency-budget-ms 0
refused 'pack small is for mode packing' scx_powerpack --mode spread --pack small
printf 'mode = "packing"\n[policy]\nfill = 80\n' >/tmp/bad.toml
refused 'in /tmp/bad.toml: line 3: unknown field `fill`' scx_powerpack --config /tmp/bad.toml
refused 'cannot read /tmp/none.toml' scx_powerpack --config /tmp/none.toml
refused 'not running' scx_powerpack mode spread
refused 'not running' scx_powerpack reload
refused 'not running' scx_powerpack status
refused 'not running' scx_powerpack --monitor 1
refused 'needs root' setpriv --reuid 65534 --clear-groups -- "$(command -v scx_powerpack)" --monitor 1
refused 'lacks: give both' setpriv --bounding-set -all -- "$(command -v scx_powerpack)"
mkdir -p /tmp/empty
SCX_SYSFS_PREFIX=/tmp/empty refused 'cannot read' scx_powerpack topology
SCX_SYSFS_PREFIX=/tmp/empty refused 'cannot read' scx_powerpack
mkdir -p /tmp/no-cpus/sys/devices/system/{cpu/cpu0,node/node0}
echo 0 | tee /tmp/no-cpus/sys/devices/system/{cpu/{possible,online},node/node0/{cpulist,distance}} >/dev/null
SCX_SYSFS_PREFIX=/tmp/no-cpus refused 'no CPU that is online' scx_powerpack topology
mkdir -p /run/scx_powerpack
touch /run/scx_powerpack/control.sock
refused 'in the way' scx_powerpack
rm /run/scx_powerpack/control.sock
# What a killed instance leaves is not in the way.
start && stop KILL 137
start
refused "runs already, process $PID: stop it first" scx_powerpack
refused "'turbo': choose one of" scx_powerpack mode turbo
# The running one survives bad requests.
for request in '' 'x' '{"set_policy":{"mode":"turbo"}}' '{"set_policy":3}' '{"set_policy":{"policy":{"fill_pct":0}}}'; do
	printf '%s\n' "$request" |
		timeout 60 python3 -c 'import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect("/run/scx_powerpack/control.sock")
s.sendall(sys.stdin.buffer.read()); print(s.recv(9999).decode())' | grep -q error ||
		fail "request '$request' was not refused"
done
# What a client was refused for want of an answer is not done later.
kill -STOP $PID
refused 'did not answer' scx_powerpack mode spread
kill -CONT $PID
nap 1
status_says 'mode packing' || fail "a request is carried out after its client has given up"
# Who reads it may go.
{ scx_powerpack --monitor 0.1 2>/tmp/err || true; } | head -n 1 >/tmp/out
grep -q '^active' /tmp/out || fail "no statistics: $(cat /tmp/err)"
[ ! -s /tmp/err ] || fail "said as its reader goes: $(cat /tmp/err)"
stop
# Cgroup v1 has the cpu controller as soon as no hierarchy of v2 has it.
echo -cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /tmp/v1
# It is refused as long as the kernel has some cgroup's part of the controller left, which ends by itself.
for _ in $(seq 100); do
	! mount -t cgroup -o cpu cgroup /tmp/v1 2>/dev/null || break
	nap 0.1
done
refused 'cgroup v1 has the cpu controller.*leave out --require-cpu-max' scx_powerpack --require-cpu-max
start
grep -q 'limits and shares of cgroups are not kept' $LOG || fail "nothing is said of cgroup v1"
stop
umount /tmp/v1
# A /run that is read-only, or full: one sentence, and nothing is loaded.
no_run() { unshare -m sh -c "mount -t tmpfs -o $1 tmpfs /run && exec scx_powerpack"; }
export -f no_run
refused 'cannot create /run/scx_powerpack: Read-only file system' bash -c 'no_run ro'
refused 'cannot create /run/scx_powerpack: No space left on device' bash -c 'no_run nr_inodes=1'
# A kernel without sched_ext, as far as sysfs shows.
unshare -m sh -c 'mount -t tmpfs tmpfs /sys/kernel && exec scx_powerpack' >/tmp/out 2>&1 && fail "loaded without sched_ext"
grep -q 'no sched_ext' /tmp/out || fail "$(cat /tmp/out)"
