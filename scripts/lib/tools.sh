# shellcheck shell=bash
# Tools that no Debian package brings, cached outside the tree. Sourced after
# deps.sh.

# Make a Python environment in $1 with packages $2..; what they are is noted when all are there.
install_venv() {
	local venv=$1
	shift
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q "$@"
	echo "$*" >"$venv/installed"
}

# ensure_venv DIRECTORY PACKAGE..
ensure_venv() {
	local venv=$1
	shift
	[ "$(cat "$venv/installed" 2>/dev/null || true)" != "$*" ] || return 0
	stage "installing $*" install_venv "$venv" "$@"
}

# Install crate $1's program of the same name.
ensure_crate() {
	[ ! -x "$CACHE/tools/bin/$1" ] || return 0
	stage "building $1, once" env BPF_CLANG=clang-19 CARGO_TARGET_DIR="$CACHE/build" \
		cargo install -q --locked --root "$CACHE/tools" "$1"
}

# What VMs of $1 (amd64 or arm64) need. Debian's cloud kernels have no 9p, so the guest's root comes
# over virtiofs.
ensure_vm_tools() {
	ensure_packages "${BUILD_PACKAGES[@]}" "${VM_PACKAGES[@]}"
	case ${1:-amd64} in
	amd64) ensure_qemu qemu-system-x86_64 qemu-system-x86 ;;
	arm64)
		ensure_qemu qemu-system-aarch64 qemu-system-arm
		ensure_packages device-tree-compiler
		;;
	esac
	locked vng ensure_venv "$CACHE/venv" virtme-ng
	locked virtiofsd ensure_crate virtiofsd
}

# The schedulers that ours is measured against.
ensure_peers() {
	ensure_packages "${BUILD_PACKAGES[@]}"
	locked peers ensure_crate scx_bpfland
	locked peers ensure_crate scx_lavd
}

# Whether promtool is a package of its own, as from Debian 13 on.
has_promtool() { [ -n "$(private_apt "$1" search --names-only '^promtool$')" ]; }

fetch_prometheus() {
	local dir suite
	dir=$(mktemp -d)
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
	(cd "$dir" && private_apt "$suite" -qq download prometheus)
	! has_promtool "$suite" || (cd "$dir" && private_apt "$suite" -qq download promtool)
	for deb in "$dir"/*.deb; do
		dpkg -x "$deb" "$dir/x"
	done
	mkdir -p "$CACHE/tools/bin"
	cp "$dir/x/usr/bin/promtool" "$dir/x/usr/bin/prometheus" "$CACHE/tools/bin/"
	rm -rf "$dir"
}

# Prometheus and its promtool. Only the programs: the package starts a server.
ensure_prometheus() {
	[ -x "$CACHE/tools/bin/prometheus" ] || stage "fetching prometheus" fetch_prometheus
}
