#!/usr/bin/env bash
# No script ends without a sentence: each program that a script runs is hidden from it in
# turn. The script must do without, install it, or say what has failed. The long work is
# replaced by programs that do nothing, so that each run takes a moment.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib/common.sh"

# With arguments that take each through what it does of its own.
SCRIPTS=(run 'test --native' 'vm -- true' fresh soak build-deb 'bench sizes'
	measure-reality pages pictures sim-tables)
# What scripts do with texts and files is done.
REAL=(awk basename bash cat chmod cp cut date dirname du env expr false find flock git grep head id
	ln ls mkdir mktemp mv nproc numfmt paste printf ps readlink realpath rm sed seq sh sha256sum
	sleep sort stat tail tar tee test timeout touch tr true uniq wc xargs xz)
# What would install, build, boot or mount is not.
IDLE=(ansible apt-cache apt-config cargo chown chroot clang-format-19 curl dpkg dpkg-buildpackage
	dpkg-deb flex ip jq lintian make meson mmdebstrap mount promtool python3 rsync rustc
	scx_powerpack setpriv shellcheck stress-ng sudo systemd-analyze umount unshare vng)

world=$(mktemp -d)
trap 'rm -rf "$world"' EXIT

program() {
	printf '#!/bin/bash\n%s\n' "$2" >"$world/bin/$1"
	chmod +x "$world/bin/$1"
}

# A PATH and a home in which everything seems to be there already.
make_world() {
	local name release=$world/tree/target/release
	mkdir -p "$world/bin" "$world/home/.cargo/registry" "$world/home/.cargo/bin" "$release" \
		"$world/home/.rustup/toolchains"
	for name in "${REAL[@]}"; do ln -s "$(command -v "$name")" "$world/bin/$name"; done
	for name in "${IDLE[@]}"; do program "$name" ':'; done
	program dpkg-query 'echo "install ok installed"'
	program qemu-system-x86_64 'echo "QEMU emulator version 10.0.0"'
	program cargo 'echo "cargo 99.0.0 (made up)"'
	program apt-get 'case $* in *install*) echo "$*" >>"$INSTALLED" ;; *indextargets*) echo http://mirror ;; esac'
	# A copy of the tree, for whatever the scripts write there.
	git -C "$TREE" ls-files -z -co --exclude-standard -- scripts tests/vm packaging src/bench/suites Cargo.toml |
		tar -C "$TREE" --null -T - -c | tar -x -C "$world/tree"
	git -C "$world/tree" init -q
	git -C "$world/tree" -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
	touch "$release"/{scx_powerpack,powerpack-load}
}

# Run script $1 (a name and arguments) without program $2; what it prints goes to $3. Its
# caches are its own.
run_without() {
	local script=$1 hidden=$2 output=$3 dir=$world/run.${1%% *}.$2 name
	mkdir -p "$dir/bin" "$dir/cache/scx_powerpack"/{venv/bin,tools/bin,kernels/7}
	cp -P "$world"/bin/* "$dir/bin"
	rm -f "$dir/bin/$hidden"
	for name in virtiofsd prometheus; do ln -s "$world/bin/mount" "$dir/cache/scx_powerpack/tools/bin/$name"; done
	echo virtme-ng >"$dir/cache/scx_powerpack/venv/installed"
	echo x | tee "$dir/cache/scx_powerpack/kernels/7/"{overlay.ko,vmlinuz,config} >/dev/null
	cp -r "$world/tree" "$dir/tree"
	# shellcheck disable=SC2086 # the script's arguments are words
	env -i HOME="$world/home" XDG_CACHE_HOME="$dir/cache" INSTALLED="$dir/installed" PATH="$dir/bin" \
		${4:+SHELLOPTS=xtrace} \
		/usr/bin/timeout 60 /bin/bash $dir/tree/scripts/$script >"$output" 2>&1 </dev/null ||
		echo "status $?" >>"$output"
	[ ! -e "$dir/installed" ] || echo "installed: $(cat "$dir/installed")" >>"$output"
	rm -rf "$dir"
}

# The programs that script $1 runs when all are there, as far as this test has them.
programs_of() {
	run_without "$1" nothing "$world/trace" trace
	# dirname is how scripts find common.sh, which reports failures.
	sed -n 's/^++* \([a-z][a-z0-9_.-]*\)\( .*\)\?$/\1/p' "$world/trace" | sort -u | grep -vx dirname |
		while read -r name; do [ ! -e "$world/bin/$name" ] || echo "$name"; done
}

# Whether script $1 without $2 does well, or says what is wrong.
check() {
	local script=$1 hidden=$2 output=$world/output.${1%% *}.$2
	run_without "$script" "$hidden" "$output"
	if grep -q '^status' "$output" && ! grep -qE '^[a-z-]+(\.sh)?: .*|^FAILED |^installed: ' "$output"; then
		echo "scripts/$script without $hidden says nothing of it: $(tail -n 3 "$output")"
		return 1
	fi
}

if [ "${1:-}" = --check ]; then
	world=$WORLD
	trap - EXIT
	check "$2" "$3" || exit 1
	exit 0
fi
make_world
for script in "${SCRIPTS[@]}"; do
	programs_of "$script" | sed "s|.*|'$script' &|"
done >"$world/pairs"
export WORLD=$world
xargs -n 2 -P "$(nproc)" "$0" --check <"$world/pairs" || die "see above"
echo "$(wc -l <"$world/pairs") programs hidden from ${#SCRIPTS[@]} scripts"
