#!/usr/bin/env bash
# arm64-emulated.sh EMULATOR COMMAND..: as root, run COMMAND in namespaces of its own in which the kernel
# runs programs of arm64 with an emulator, and in which root is root: nothing is registered on this
# machine.
set -euo pipefail

outside() {
	local inside map
	setpriv --pdeathsig KILL unshare --user --mount --pid --fork --kill-child "$0" --inside "$@" &
	inside=$!
	until [ "$(readlink /proc/$inside/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
	for map in uid_map gid_map; do echo '0 0 65536' >/proc/$inside/$map; done
	wait $inside
}

# Have the kernel run programs of arm64 with emulator $1, here.
register() {
	local handlers=/proc/sys/fs/binfmt_misc head mask
	# A namespace has handlers of its own since Linux 6.7. Before, only the machine has them.
	if ! mount -t binfmt_misc binfmt_misc $handlers; then
		[ ! -e $handlers/qemu-aarch64 ] || return 0
		echo "${0##*/}: programs of arm64 cannot be run here: install qemu-user-binfmt, or run Linux 6.7" >&2
		exit 1
	fi
	# The head of ELF files of 64 bits, little-endian, executables and shared objects, for arm64.
	# F: opened now, so that it is found in any root.
	head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	printf '%s' ":arm64:M::$head:$mask:$1:F" >$handlers/register
}

if [ "$1" != --inside ]; then
	outside "$@"
	exit
fi
# Programs that begin after users are mapped are root's, and may mount.
until [ "$(id -u)" = 0 ]; do sleep 0.1; done
mount -t proc proc /proc
register "$2"
exec "${@:3}"
