#!/usr/bin/env bash
# For arm64.sh, in namespaces of its own: mount what a build needs over the root, and run the command
# in the tree, the first of the directories, as the user.
# arm64-inside.sh ROOT USER-ID DIRECTORY.. -- VARIABLE.. COMMAND..
set -euo pipefail
. "$(dirname "$0")/roots.sh"
root=$1 user=$2 tree=$3
shift 2

mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
# They are where they are outside too: compilers write paths down.
while [ "$1" != -- ]; do
	mkdir -p "$root$1"
	mount --bind "$1" "$root$1"
	shift
done
shift
lay_out_network "$root"

exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups env -i HOME=/tmp LC_ALL=C.UTF-8 \
	PATH=/usr/sbin:/usr/bin:/sbin:/bin env --chdir="$tree" "$@"
