#!/bin/sh
# The configuration $1, where the program looks for it whatever the prefix is, unless one is there: it may have been
# edited, and takes effect as it is written. Meson calls this as it installs.
set -eu
[ -z "${MESON_INSTALL_DRY_RUN:-}" ] || exit 0
to=${DESTDIR:-}/etc/scx_powerpack/config.toml
[ -e "$to" ] || install -D -m 644 "$1" "$to"
