#!/usr/bin/env bash
# For scripts/fresh: README's first command does what README shows; Meson and the Debian
# package are built beside it, from the same objects.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib/common.sh"
. "$TREE/scripts/lib/deps.sh"
cd "$TREE"
printed=$(mktemp)

fail() { die "$* It printed: $(cat "$printed")"; }

# What stands between the line of phase $1 and the next one.
phase() { sed -n "/^$1\. /,/^$(($1 + 1))\. /p" "$printed" | sed '$d'; }

check_demonstration() {
	local nth
	for nth in 1 2 3 4; do
		grep -q "^$nth\. " "$printed" || fail "no phase $nth of the demonstration."
	done
	phase 2 | grep -q '=> 1 of 4 CPUs used' || fail "packing does not use one CPU."
	phase 3 | grep -q '=> 4 of 4 CPUs used' || fail "spread does not use four CPUs."
	grep -q "the kernel's own scheduler is back" "$printed" || fail "the kernel's scheduler is not back."
}

# Meson puts what it installs where distributions look.
check_meson() {
	local dir
	dir=$(mktemp -d)
	export CARGO_TARGET_DIR=$TREE/target
	meson setup "$dir/b" .
	meson compile -C "$dir/b"
	DESTDIR=$dir/root meson install -C "$dir/b"
	[ -x "$(find "$dir/root" -name scx_powerpack -type f)" ] || die "Meson has installed no program"
	[ -e "$(find "$dir/root" -name scx_powerpack.service)" ] || die "Meson has installed no unit"
	grep -rqx ExecStart=/usr/local/bin/scx_powerpack "$dir/root" --include=powerpack.conf ||
		die "the drop-in for scx.service runs another program than Meson has installed"
	rm -rf "$dir"
}

scripts/run | tee "$printed"
check_demonstration
scripts/build-deb
check_meson
