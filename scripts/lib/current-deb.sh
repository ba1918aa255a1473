#!/usr/bin/env bash
# The Debian package of the last commit, if scripts/build-deb has made it. Sourced where TREE is set.
set -euo pipefail
committed=$(git -c safe.directory='*' -C "$TREE" log -1 --format=%ct)
find "$TREE/build/deb" -maxdepth 1 -name '*.deb' -newermt "@$committed" 2>/dev/null | head -n 1
