# shellcheck shell=bash
# Tools that no Debian package brings, cached outside the tree. Sourced after
# deps.sh.

ensure_vng() {
	[ -x "$CACHE/venv/bin/vng" ] && return
	say "installing virtme-ng"
	rm -rf "$CACHE/venv.new"
	python3 -m venv "$CACHE/venv"
	"$CACHE/venv/bin/pip" install -q virtme-ng
}

# Install crate $1's program of the same name.
ensure_crate() {
	[ -x "$CACHE/tools/bin/$1" ] && return
	say "building $1 (once)"
	BPF_CLANG=clang-19 CARGO_TARGET_DIR=$CACHE/build \
		cargo install -q --locked --root "$CACHE/tools" "$1" >&2
}

# Debian's cloud kernels have no 9p, so the guest's root comes over virtiofs.
ensure_vm_tools() {
	ensure_packages "${BUILD_PACKAGES[@]}" "${VM_PACKAGES[@]}"
	ensure_qemu
	locked vng ensure_vng
	locked virtiofsd ensure_crate virtiofsd
}

# The schedulers that ours is measured against.
ensure_peers() {
	ensure_packages "${BUILD_PACKAGES[@]}"
	locked peers ensure_crate scx_bpfland
	locked peers ensure_crate scx_lavd
}

# Prometheus and its promtool. Only the programs: the package starts a server.
ensure_prometheus() {
	[ -x "$CACHE/tools/bin/prometheus" ] && return
	local dir suite
	say "fetching prometheus"
	dir=$(mktemp -d)
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
	(cd "$dir" && private_apt "$suite" -qq download prometheus >&2)
	dpkg -x "$dir"/prometheus_*.deb "$dir/x"
	mkdir -p "$CACHE/tools/bin"
	cp "$dir/x/usr/bin/promtool" "$dir/x/usr/bin/prometheus" "$CACHE/tools/bin/"
	rm -rf "$dir"
}
