# shellcheck shell=bash
# What is built for arm64 on this machine, in a root of Debian sid in the cache. That has a Rust new
# enough, with its standard library for arm64, so nothing but Debian's own toolchain is used. Sourced
# after deps.sh.

. "$TREE/scripts/lib/roots.sh"

ARM64=$CACHE/arm64-roots
RUST_TARGET=aarch64-unknown-linux-gnu
ARM64_OBJECTS=${CARGO_TARGET_DIR:-$TREE/target}/arm64

# A part of the build runs here: the libraries are there twice.
ARM64_BUILD_PACKAGES=(ca-certificates cargo rustc libstd-rust-dev:arm64 clang-19 llvm-19
	crossbuild-essential-arm64 pkgconf make libelf-dev libelf-dev:arm64 zlib1g-dev zlib1g-dev:arm64)

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

# in_build_root COMMAND..: run it, as this user, over the tree and Cargo's cache of crates. In
# namespaces of its own, that end with it: mounts and processes.
in_build_root() {
	local environment objects cargo=${CARGO_HOME:-$HOME/.cargo}
	mapfile -t environment < <(network_environment)
	mkdir -p "$ARM64_OBJECTS" "$cargo"
	objects=$(realpath "$ARM64_OBJECTS")
	as_root setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
		"$TREE/scripts/lib/arm64-inside.sh" "$ARM64/build" "$(id -u)" "$TREE" "$cargo" "$objects" -- \
		"${environment[@]}" CARGO_HOME="$cargo" CARGO_TARGET_DIR="$objects" CARGO_BUILD_TARGET=$RUST_TARGET \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc BPF_CLANG=clang-19 \
		PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_ALLOW_CROSS=1 "$@"
}

# The programs for arm64, by Cargo's profile $1: dev or release.
build_arm64() {
	locked arm64-build-root ensure_arm64_root build "$(IFS=, && echo "${ARM64_BUILD_PACKAGES[*]}")" make_build_root
	stage "building scx_powerpack for arm64 ($1)" in_build_root \
		cargo build --quiet --locked --workspace --bins --profile "$1"
}

# Where build_arm64 puts what it builds by profile $1.
arm64_programs() {
	local dir=$1
	[ "$1" != dev ] || dir=debug
	echo "$ARM64_OBJECTS/$RUST_TARGET/$dir"
}
