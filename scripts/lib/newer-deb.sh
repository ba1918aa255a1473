#!/usr/bin/env bash
# newer-deb.sh DEB NEWER: the same package with a higher version and a changed program, to
# upgrade to.
set -euo pipefail

deb=$1 newer=$2
program=usr/bin/scx_powerpack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb -R "$deb" "$work"
sed -i 's/^Version: .*/&+newer/' "$work/DEBIAN/control"
echo >>"$work/$program"
# What changed is in the list of sums too.
(cd "$work" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group -Znone -b "$work" "$newer" >/dev/null
