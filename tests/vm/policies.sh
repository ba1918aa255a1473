#!/usr/bin/env bash
# The knobs and the table of workloads, changed while tasks run: what they say is where the
# tasks are.
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# Used are CPUs above 10 %: until its first tick a thread may be anywhere.
# Under hogs in cgroup $1 (their number: $2) the CPUs $3 are used, and no others.
hogs_use() {
	(echo 0 >"/sys/fs/cgroup/$1/cgroup.procs" &&
		exec powerpack-load hogs --seconds 2 --count "$2") >/tmp/hogs.json
	[ "$(used /tmp/hogs.json 10)" = "$3" ] || fail "hogs in '$1' use CPUs $(used /tmp/hogs.json 10), not $3: $(cat /tmp/hogs.json)"
}

mkdir -p /tmp/etc /sys/fs/cgroup/job.slice/backup.service
config=/tmp/etc/config.toml
echo 'mode = "packing"' >$config
start --config $config

echo "a ceiling, live and back"
scx_powerpack mode packing --max-cores 2 >/dev/null
hogs_use . 6 01
scx_powerpack mode spread >/dev/null
hogs_use . 6 01
scx_powerpack mode --max-cores all >/dev/null
hogs_use . 6 0123
refused 'max-cores 5 is out of range' scx_powerpack mode packing --max-cores 5
[ "$(scx_powerpack mode)" = spread ] || fail "a refused request changed the mode"

echo "efficient workloads stay on the efficient cores, while others do not"
printf 'mode = "packing"\n[workloads]\nefficient = ["backup.service"]\n' >$config
[[ $(scx_powerpack reload) == packing* ]] || fail "reload says no mode"
hogs_use job.slice/backup.service 4 0
hogs_use job.slice 6 0123
status_says '1 cgroups treated' || fail "status does not show the table"

echo "a cgroup that comes later is treated too"
mkdir -p /sys/fs/cgroup/later.slice/backup.service
sleep 3
hogs_use later.slice/backup.service 4 0

echo "a mistake in the file changes nothing"
printf 'mode = "spread"\n[workloads]\nefficent = []\n' >$config
refused 'line 3: unknown field' scx_powerpack reload
[ "$(scx_powerpack mode)" = packing ] || fail "a bad file changed the mode"
hogs_use job.slice/backup.service 4 0

echo "an empty table lets go"
echo 'mode = "spread"' >$config
scx_powerpack reload >/dev/null
hogs_use job.slice/backup.service 4 0123

echo "a file that is emptied or removed changes nothing until a reload is asked for"
echo 'mode = "balance"' >$config
scx_powerpack reload >/dev/null
# The log must say $1 of the file.
log_says() {
	for _ in $(seq 100); do
		! grep -q "stays as it was: $config is $1" $LOG || break
		nap 0.1
	done
	grep -q "stays as it was: $config is $1" $LOG || fail "the log does not say that the file is $1"
	[ "$(scx_powerpack mode)" = balance ] || fail "a file that is $1 changes the mode to $(scx_powerpack mode)"
}
: >$config
log_says empty
rm $config
log_says gone
refused "cannot read $config" scx_powerpack reload
: >$config
[[ $(scx_powerpack reload) == packing* ]] || fail "a reload of an empty file does not take the defaults"

echo "small tasks are packed, large ones use other CPUs at once"
scx_powerpack mode packing --pack small >/dev/null
status_says 'small tasks packed' || fail "status does not show what is packed"
# All packed they would share two CPUs.
powerpack-load periodic --seconds 4 0.5/20*8 12/20*2 >/tmp/small.json
[ "$(used /tmp/small.json 10 | wc -m)" -ge 3 ] || fail "large tasks are packed: $(cat /tmp/small.json)"

stop
