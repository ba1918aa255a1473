#!/bin/sh
# For meson.build: build with Cargo, put the program where Meson wants it.
# Arguments: cargo, the source, Cargo's target directory unless CARGO_TARGET_DIR says another
# one (an absolute path, to use what is built there), the output. CARGO_BUILD_TARGET: for another
# architecture.
set -eu
out=$(realpath "$4")
target=${CARGO_TARGET_DIR:-$3}
cd "$2" # for .cargo/config.toml
# dpkg's CFLAGS are of that architecture; what is built to run meanwhile is of this machine's.
if [ -n "${CARGO_BUILD_TARGET:-}" ] && [ -n "${CFLAGS:-}" ]; then
	export TARGET_CFLAGS="$CFLAGS"
	unset CFLAGS
fi
"$1" build --release --locked --quiet --target-dir "$target"
cp "$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release/scx_powerpack" "$out"
