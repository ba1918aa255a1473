#!/usr/bin/env bash
# The table of workloads: a cgroup that is to be spread is spread in packing, and one that is
# to be packed is packed in spread. The limit of a cgroup is in the status while it is in force.
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

job=/sys/fs/cgroup/job.slice/backup.service
mkdir -p /tmp/etc $job
config=/tmp/etc/config.toml

# In mode $1, with `$2` in the table, light tasks of the cgroup use $3 CPUs.
light_tasks_use() {
	printf 'mode = "%s"\n[workloads]\n%s\n' "$1" "$2" >$config
	scx_powerpack reload >/dev/null
	tasks_use "$3" "in $1 with '$2'"
}

# As it is, light tasks of the cgroup use $1 CPUs; $2 says how it is. They begin together, which scatters
# them over the idle CPUs if they may use these. Those that are to be on one CPU then rarely wake at the same
# time; those that are to be on four always do: two that one CPU got at first, as another was busy, would stay there.
tasks_use() {
	local tasks='0.5/20 0.5/21 0.5/23 0.5/26'
	[ "$1" = 1 ] || tasks='0.5/20 0.5/20 0.5/20 0.5/20'
	# shellcheck disable=SC2086 # a list of words
	(echo 0 >$job/cgroup.procs && exec powerpack-load periodic --seconds 4 --settle 1 $tasks) >/tmp/light.json
	[ "$(used /tmp/light.json 1 | wc -m)" = "$1" ] ||
		fail "$2 light tasks use not $1 CPUs: $(cat /tmp/light.json)"
}

# The limit is put on one of the two levels only: the other has none to report.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
echo "20000 100000" >/sys/fs/cgroup/job.slice/cpu.max
sentence='cpu.max of job.slice: 20 of 100 ms; throttled in 0 of'

echo 'mode = "packing"' >$config
start --config $config --require-cpu-max
scx_powerpack status | grep -q "$sentence" || fail "status does not report cpu.max"
echo "max 100000" >/sys/fs/cgroup/job.slice/cpu.max
nap 1.1
scx_powerpack status | grep -q cpu.max && fail "status reports a limit that is gone"
stop
start --config $config --require-cpu-max
light_tasks_use packing '' 1
light_tasks_use packing 'spread = ["backup.service"]' 4
light_tasks_use spread '' 4
light_tasks_use spread 'pack = ["backup.service"]' 1
# As many cgroups as before, but another one, without the cpu controller, as that of a unit that is started again.
rmdir $job
mkdir $job
nap 1.2
tasks_use 1 "in a new cgroup that is to be packed"
stop

# What a container is that has the host's /sys/fs/cgroup and a cgroup namespace of its own: some kernels look
# up no cgroup of the host from there, which must be said then.
mkdir -p /sys/fs/cgroup/container
scx_powerpack() {
	echo 0 >/sys/fs/cgroup/container/cgroup.procs
	exec unshare --cgroup "$(type -P scx_powerpack)" "$@"
}
start --config $config
unset -f scx_powerpack
if scx_powerpack status | grep -q 'treated by the table'; then
	tasks_use 1 "seen from a cgroup namespace,"
else
	grep -q 'are not treated as the table of workloads says: the kernel hides them' $LOG ||
		fail "nothing says that cgroups are hidden: $(cat $LOG)"
fi
stop
