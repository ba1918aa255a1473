# shellcheck shell=bash
# What every script here needs: where things are, how to say and how to fail.

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/scx_powerpack
mkdir -p "$CACHE"
export TREE CACHE
export PATH="$CACHE/venv/bin:$CACHE/tools/bin:$HOME/.cargo/bin:$PATH"

say() { printf '%s\n' "$*" >&2; }

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# Run as root: needed to install packages, nothing else.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "'$*' needs root: run this script as root, or install sudo"
	fi
}

# Hold a lock named $1 while running the rest, so that two runs do not build
# the same thing at once.
locked() {
	local lock="$CACHE/$1.lock"
	shift
	(
		flock 9
		"$@"
	) 9>"$lock"
}
