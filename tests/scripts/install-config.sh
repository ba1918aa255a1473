#!/usr/bin/env bash
# The configuration is installed where the program reads it, and one that is there is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
to=$root/etc/scx_powerpack/config.toml

DESTDIR=$root packaging/install-config.sh packaging/config.toml
cmp packaging/config.toml "$to" || { echo "not installed in /etc" >&2 && exit 1; }
echo 'mode = "spread"' >"$to"
DESTDIR=$root packaging/install-config.sh packaging/config.toml
[ "$(cat "$to")" = 'mode = "spread"' ] || { echo "what was edited is gone" >&2 && exit 1; }
