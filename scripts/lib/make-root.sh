#!/usr/bin/env bash
# make-root.sh ROOT PACKAGES OPTION..: as root, make a minimal Debian sid with these packages (a list
# with commas) and options of mmdebstrap, in one step. Which they are is noted in it.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$TREE/scripts/lib/deps.sh"
. "$TREE/scripts/lib/roots.sh"

root=$1 packages=$2
shift 2
rm -rf "$root" "$root.new"
mkdir -p "$(dirname "$root")"
network_apt_conf >"$root.apt.conf"
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" --keyring="$(keyring)" \
	--aptopt="$root.apt.conf" "$@" sid "$root.new" "$(mirror)"
rm "$root.apt.conf"
echo "$packages" >"$root.new/packages"
mv "$root.new" "$root"
