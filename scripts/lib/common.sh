# shellcheck shell=bash
# What every script here needs: where things are, and how a failure is reported. No script
# ends without a sentence.
set -Eeuo pipefail
# $(...) too ends at its first failing command.
shopt -s inherit_errexit

# The exit status of whatever has reported its failure: the shells around it add nothing.
REPORTED=3

say() { printf '%s\n' "$*" >&2; }

die() {
	say "${0##*/}: $*"
	exit $REPORTED
}

# A script may have been called by a path from there, and be elsewhere by now.
STARTED_IN=$PWD

# Report that the command at line $3 of file $2 failed with status $1. The whole line is
# shown: of a pipeline, BASH_COMMAND is the last command, not the one that failed.
report_failure() {
	local file=$2 text=()
	[ "$1" != $REPORTED ] || exit $REPORTED
	[[ $file = /* ]] || file=$STARTED_IN/$file
	mapfile -t -s $(($3 - 1)) -n 1 text <"$file" || true
	read -r text <<<"${text:-}" || true
	die "failed with status $1 in ${2##*/}, line $3: $text"
}
trap 'report_failure $? "${BASH_SOURCE[0]}" $LINENO' ERR

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-${HOME:?is not set: it says where the cache is}/.cache}/scx_powerpack
mkdir -p "$CACHE" || die "cannot create $CACHE, the cache: set XDG_CACHE_HOME to a directory that can be written"
# Where the programs to run are: scripts/test has a build of its own (PROGRAMS).
PROGRAMS=${PROGRAMS:-${CARGO_TARGET_DIR:-$TREE/target}/release}
export TREE CACHE PROGRAMS
export PATH="$CACHE/venv/bin:$CACHE/tools/bin:$HOME/.cargo/bin:$PATH"

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
