#!/usr/bin/env bash
# A machine of many CPUs, most of which are offline, as sysfs says: the verifier takes programs that are for as
# many (the topology is a constant to it), tasks share the CPUs that there are, modes are switched in the steps
# in which many CPUs are sized.
# vm: --slow-virtual-time
# timeout: 900
. "$(dirname "$0")/lib.bash"

# 1,024 take some minutes, which tests/campaign has.
CPUS=${LARGE_CPUS:-256}

# LLCs of two CPUs, two memory nodes that have every other one.
python3 - "$CPUS" /tmp/large/sys/devices/system <<'PYTHON'
import os, sys

cpus, root = int(sys.argv[1]), sys.argv[2]

def write(path, text):
    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
    with open(f"{root}/{path}", "w") as file:
        file.write(f"{text}\n")

for name, text in [("possible", f"0-{cpus - 1}"), ("present", f"0-{cpus - 1}"), ("online", "0-3"),
                   ("offline", f"4-{cpus - 1}"), ("kernel_max", cpus - 1), ("smt/active", 0)]:
    write(f"cpu/{name}", text)
write("node/online", "0-1")
for node in range(2):
    mine = [cpu for cpu in range(cpus) if cpu // 2 % 2 == node]
    write(f"node/node{node}/cpulist", ",".join(map(str, mine)))
    write(f"node/node{node}/distance", "10 20" if node == 0 else "20 10")
    for cpu in mine:
        os.makedirs(f"{root}/node/node{node}/cpu{cpu}")
for cpu in range(cpus):
    topology = [("core_id", cpu), ("physical_package_id", cpu // 2 % 2), ("cluster_id", cpu),
                ("thread_siblings_list", cpu), ("core_cpus_list", cpu)]
    for name, text in topology:
        write(f"cpu/cpu{cpu}/topology/{name}", text)
    if cpu:
        write(f"cpu/cpu{cpu}/online", int(cpu < 4))
    first = cpu // 2 * 2
    for index, (level, shared) in enumerate([(2, cpu), (3, f"{first}-{first + 1}")]):
        for name, text in [("level", level), ("type", "Unified"), ("id", cpu if index == 0 else first // 2),
                           ("shared_cpu_list", shared), ("size", "1024K")]:
            write(f"cpu/cpu{cpu}/cache/index{index + 2}/{name}", text)
PYTHON
export SCX_SYSFS_PREFIX=/tmp/large

hogs_share() {
	powerpack-load hogs --seconds 3 --count 8 >/tmp/hogs.json
	for s in $(json_list cpu_s </tmp/hogs.json); do
		awk -v s="$s" 'BEGIN { exit !(s > 1.0) }' || fail "$1: eight hogs on four CPUs: $(cat /tmp/hogs.json)"
	done
}

START_S=600 start --mode packing
status_says 'of 4 CPUs active' || fail "$(scx_powerpack status)"
offline=$(scx_powerpack status | grep -c ' offline ')
[ "$offline" = $((CPUS - 4)) ] || fail "$offline of $CPUS CPUs are offline: $(scx_powerpack status)"
hogs_share packing
for mode in spread packing balance; do
	scx_powerpack mode $mode >/dev/null
	hogs_share $mode
	[ "$mode" = packing ] || continue
	powerpack-load periodic --seconds 3 --settle 1 0.5/20 0.5/21 0.5/23 >/tmp/light.json
	[ "$(used /tmp/light.json 1 | wc -m)" = 1 ] || fail "light tasks are not packed: $(cat /tmp/light.json)"
done
powerpack-load pipe --rounds 500 >/dev/null
echo "figure: $CPUS CPUs: $(scx_powerpack status | sed -n 's/.* \([0-9]* of [0-9]* CPUs active\).*/\1/p')"
stop
