#!/usr/bin/env bash
# PID 1 of a VM of arm64, in the directory of this run: what virtme-ng does for those of x86, as far as
# the tests need it.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec >/dev/console 2>&1
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mkdir -p /dev/pts /dev/shm /run/lock /run/dbus /run/kernel
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs tmpfs /var/log
mount -t virtiofs -o ro kernel /run/kernel
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hostname arm64

bash "$(dirname "$0")/guest.sh" </dev/null

echo o >/proc/sysrq-trigger
# PID 1 must not end before that is done.
sleep infinity
