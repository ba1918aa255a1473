#!/bin/sh
# For meson.build: build with Cargo, put the program where Meson wants it.
# Arguments: cargo, the source, Cargo's target directory, the output.
set -eu
out=$(realpath "$4")
cd "$2" # for .cargo/config.toml
"$1" build --release --quiet --target-dir "$3"
cp "$3/release/scx_powerpack" "$out"
