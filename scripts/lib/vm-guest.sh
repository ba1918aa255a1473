#!/bin/sh
# The first thing that runs in the VM: make it a machine, run the command.
# Arguments: the directory of this run, the tree, the cache.
work=$1
tree=$2
cache=$3

# The guest's root is the host's, read-only. Files that tests write are in
# memory; the tree is kept visible even where it is below /tmp.
mkdir /run/tree
mount --bind "$tree" /run/tree
mount -t tmpfs tmpfs /tmp
mkdir -p "$tree"
case $tree in
/tmp/*) mount --bind /run/tree "$tree" ;;
esac
mount -t tmpfs tmpfs /var/tmp
[ -d /sys/fs/cgroup/cgroup.controllers ] || [ -e /sys/fs/cgroup/cgroup.controllers ] ||
	mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
ip link set lo up 2>/dev/null
if [ -e "$work/config" ]; then
	mount -t tmpfs tmpfs /boot
	cp "$work/config" "/boot/config-$(uname -r)"
fi
# It has done its part, and its workers ending would be measured.
udevadm control --exit 2>/dev/null

export PATH="$tree/target/release:$cache/tools/bin:$HOME/.cargo/bin:$PATH"
export CACHE="$cache" TREE="$tree" SCX_POWERPACK_VM=1
cd "$tree" || exit 1
sh -c "$(cat "$work/command")" >"$work/out" 2>&1 </dev/null
status=$?
dmesg >"$work/dmesg"
echo $status >"$work/status.new"
mv "$work/status.new" "$work/status"
sync
