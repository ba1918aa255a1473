#!/usr/bin/env bash
# arm64-boot.sh WORK ROOT IMAGE APPEND OPTION..: boot a kernel of arm64 in QEMU with these options, and
# have it run init.sh in WORK, which is in build/ of the tree. What it shares ends with it.
# Not with virtme-ng: what that talks to its guest over is a module in Debian's kernels for arm64.
set -euo pipefail
work=$1 root=$2 image=$3 append=$4
shift 4
tree=$(dirname "$(dirname "$work")")

# Share directory $2 under the name $1, with these options. Paths of sockets are short in here.
devices=()
share() {
	local name=$1 directory=$2
	shift 2
	virtiofsd --syslog --no-announce-submounts --socket-path "$name.socket" --shared-dir "$directory" \
		--sandbox none "$@" &
	devices+=(-chardev "socket,id=$name,path=$name.socket" -device "vhost-user-fs-pci,chardev=$name,tag=$name")
}

cd "$work"
share root "$root" --readonly --cache always
share kernel "$(dirname "$image")" --readonly --cache always
share tree "$tree" --cache auto
for name in root kernel tree; do
	until [ -S $name.socket ]; do sleep 0.1; done
done

# The shell mounts no more than it takes to find the rest.
init="mount -t tmpfs tmpfs /run; mkdir /run/tree; mount -t virtiofs tree /run/tree; exec bash /run/tree/build/${work##*/}/init.sh"
exec qemu-system-aarch64 -nodefaults "$@" "${devices[@]}" \
	-display none -chardev stdio,id=console,signal=off -serial chardev:console -no-reboot -kernel "$image" \
	-append "rootfstype=virtiofs root=root ro console=ttyAMA0 panic=-1 $append init=/bin/sh -- -c \"$init\""
