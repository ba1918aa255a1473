#!/usr/bin/env bash
# The first thing that runs in the VM: make it a machine, run the command. The tree is mounted
# on /run/tree; this file is in the directory of this run there. No "set -e": whatever of a
# machine cannot be had, the command is run, and its status noted.
set -u
work=$(dirname "$0")
. "$work/paths"

# The guest's root is the host's, read-only. Files that tests write are in memory. The tree
# is where it is on the host too, also below /tmp.
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/tmp
mkdir -p "$TREE"
mount --bind /run/tree "$TREE"
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
mountpoint -q /sys/kernel/security || mount -t securityfs securityfs /sys/kernel/security
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
if [ -e "$work/config" ]; then
	mount -t tmpfs tmpfs /boot
	cp "$work/config" "/boot/config-$(uname -r)"
fi
# It has done its part, and its workers ending would be measured.
[ ! -S /run/udev/control ] || udevadm control --exit

# The laboratory's slow CPUs are slow from here on: nobody waits for the boot.
slow=/sys/module/powerlab/parameters/slow
[ ! -e $slow ] || echo 1 >$slow

# How many times as long as on x86 a test may take, of the guest's time: virtual time runs ahead of an
# idle VM that waits for its files, on arm64 by far more; and a kernel that checks its locks and its memory
# takes six times as long to load a scheduler.
export PATIENCE=1
[ "$(uname -m)" != aarch64 ] || PATIENCE=10
[ ! -e /proc/lockdep ] || PATIENCE=10

export PROGRAMS=/var/tmp/programs
cp -r "$work/programs" $PROGRAMS
export PATH="$PROGRAMS:$CACHE/tools/bin:$HOME/.cargo/bin:$PATH" SCX_POWERPACK_VM=1
cd "$TREE" || exit 1
bash -c "$(cat "$work/command")" >"$work/out" 2>&1 </dev/null
status=$?
dmesg >"$work/dmesg"
echo $status >"$work/status.new"
mv "$work/status.new" "$work/status"
sync
