#!/usr/bin/env bash
# For scripts/fresh, in namespaces of its own: mount what a system has, and run the command.
# fresh-inside.sh ROOT RUSTUP USER HOME VARIABLE.. -- COMMAND..
set -euo pipefail
root=$1 rust=$2 user=$3 home=$4
shift 4
variables=()
while [ "$1" != -- ]; do
	variables+=("$1")
	shift
done
shift

mount --make-rprivate /
# The root is a mount, as on any machine: virtiofsd shares nothing else.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
	touch "$root/dev/$node"
	mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount --bind -o ro "$rust" "$root$home/.rustup"
mount -o remount,bind,ro "$root$home/.rustup"

groups=(--clear-groups)
[ "$user" = root ] || groups=(--init-groups)
# shellcheck disable=SC2016 # of the shell in there
exec chroot "$root" setpriv --reuid "$user" --regid "$user" "${groups[@]}" env -i "${variables[@]}" \
	HOME="$home" USER="$user" TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
	PATH="$home/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	bash -c 'cd "$HOME/scx_powerpack" && exec "$@"' fresh "$@"
