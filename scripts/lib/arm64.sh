# shellcheck shell=bash
# What is built for arm64 on this machine, and what VMs of arm64 run over: two roots of Debian sid in
# the cache. That has a Rust new enough, with its standard library for arm64, so nothing but Debian's
# own toolchain is used. Sourced after deps.sh.

. "$TREE/scripts/lib/roots.sh"

ARM64=$CACHE/arm64-roots
RUST_TARGET=aarch64-unknown-linux-gnu
ARM64_OBJECTS=${CARGO_TARGET_DIR:-$TREE/target}/arm64

# A part of the build runs here: the libraries are there twice.
ARM64_BUILD_PACKAGES=(ca-certificates cargo rustc libstd-rust-dev:arm64 clang-19 llvm-19
	crossbuild-essential-arm64 build-essential pkgconf pkgconf:arm64 libelf-dev libelf-dev:arm64 zlib1g-dev zlib1g-dev:arm64
	debhelper dpkg-dev meson ninja-build)

# What the tests in a VM run, beside the essential: x86 VMs have it from this machine.
ARM64_GUEST_PACKAGES=(bpftool dbus gawk git iproute2 jq kmod libelf1t64 procps prometheus python3-dbusmock
	python3-prometheus-client rt-tests stress-ng systemd-sysv tmux zlib1g)

# QEMU that runs programs of arm64, from sid: static, and not installed.
ARM64_EMULATOR=$ARM64/qemu-aarch64

# As root, with this user's cache.
as_root_here() { as_root env HOME="$HOME" XDG_CACHE_HOME="${CACHE%/*}" "$@"; }

# ensure_arm64_root ROOT PACKAGES COMMAND..: make it, unless it is there with these packages.
ensure_arm64_root() {
	local root=$ARM64/$1 packages=$2
	shift 2
	[ "$(cat "$root/packages" 2>/dev/null || true)" != "$packages" ] || return 0
	ensure_packages mmdebstrap util-linux
	ensure_root "a root for arm64"
	mkdir -p "$ARM64"
	"$@" "$root" "$packages"
}

make_build_root() {
	stage "making a root to build for arm64 in, once" as_root_here \
		"$TREE/scripts/lib/make-root.sh" "$@" --architectures=amd64,arm64
}

ensure_emulator() {
	[ -x "$ARM64_EMULATOR" ] || stage "fetching QEMU for programs of arm64" fetch_emulator
}

make_guest_root() {
	ensure_emulator
	stage "making a root of arm64, once" as_root_here \
		"$TREE/scripts/lib/arm64-emulated.sh" "$ARM64_EMULATOR" \
		"$TREE/scripts/lib/make-root.sh" "$@" --architectures=arm64 --skip=check/qemu
}

fetch_emulator() {
	local dir
	dir=$(mktemp -d "$ARM64/qemu.XXXX")
	(cd "$dir" && private_apt sid -qq download qemu-user)
	dpkg --fsys-tarfile "$dir"/qemu-user_*.deb | tar -C "$dir" -x ./usr/bin/qemu-aarch64
	mv "$dir/usr/bin/qemu-aarch64" "$ARM64_EMULATOR"
	rm -rf "$dir"
}

# in_build_root COMMAND..: run it, as this user, over the tree and Cargo's cache of crates. In
# namespaces of its own, that end with it: mounts and processes. EMULATE=yes: in which programs of
# arm64 run.
in_build_root() {
	local environment objects cargo=${CARGO_HOME:-$HOME/.cargo}
	local spaces=(setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child)
	[ "${EMULATE:-no}" = no ] || spaces=("$TREE/scripts/lib/arm64-emulated.sh" "$ARM64_EMULATOR")
	mapfile -t environment < <(network_environment)
	mkdir -p "$ARM64_OBJECTS" "$cargo"
	objects=$(realpath "$ARM64_OBJECTS")
	as_root "${spaces[@]}" "$TREE/scripts/lib/arm64-inside.sh" "$ARM64/build" "$(id -u)" \
		"$TREE" "$cargo" "$objects" -- \
		"${environment[@]}" CARGO_HOME="$cargo" CARGO_TARGET_DIR="$objects" CARGO_BUILD_TARGET=$RUST_TARGET \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc BPF_CLANG=clang-19 \
		PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_ALLOW_CROSS=1 "$@"
}

ensure_build_root() {
	locked arm64-build-root ensure_arm64_root build "$(IFS=, && echo "${ARM64_BUILD_PACKAGES[*]}")" make_build_root
}

# The programs for arm64, by Cargo's profile $1: dev or release.
build_arm64() {
	ensure_build_root
	stage "building scx_powerpack for arm64 ($1)" in_build_root \
		cargo build --quiet --locked --workspace --bins --profile "$1"
}

# Where build_arm64 puts what it builds by profile $1.
arm64_programs() {
	local dir=$1
	[ "$1" != dev ] || dir=debug
	echo "$ARM64_OBJECTS/$RUST_TARGET/$dir"
}

# The package of source $1, built with Cargo's objects in $2, a part of $ARM64_OBJECTS, at time $3. It
# runs the program, which says itself how shells complete it.
build_arm64_deb() {
	EMULATE=yes in_build_root CARGO_TARGET_DIR="$2" SOURCE_DATE_EPOCH="$3" env --chdir="$1" \
		dpkg-buildpackage -us -uc -b -aarm64
}

ensure_arm64_guest_root() {
	locked arm64-guest-root ensure_arm64_root guest "$(IFS=, && echo "${ARM64_GUEST_PACKAGES[*]}")" make_guest_root
}
