#!/bin/sh
# For meson.build: run the tests with Cargo. Arguments: cargo, the source, Cargo's target
# directory unless CARGO_TARGET_DIR says another one (an absolute path, to use what is built
# there). Not --release: debug assertions, clap's own among them, are half of the test.
set -eu
cd "$2" # for .cargo/config.toml
exec "$1" test --locked --quiet --workspace --target-dir "${CARGO_TARGET_DIR:-$3}"
