# shellcheck shell=bash
# The kernels of the VM: the newest 7.x of Debian sid, and 6.12, the oldest
# that is supported, which Debian builds without sched_ext. Sourced after
# tools.sh.

# The path of kernel $1 (7 or 6.12), fetched or built if it is missing.
kernel_path() {
	case $1 in
	7) locked kernel-7 fetch_kernel_7 ;;
	6.12) locked kernel-6.12 build_kernel_6_12 ;;
	*) die "no kernel '$1': choose 6.12 or 7" ;;
	esac
	echo "$CACHE/kernels/$1/vmlinuz"
}

# Take a finished directory into the cache in one step.
keep_kernel() {
	mkdir -p "$CACHE/kernels"
	rm -rf "$CACHE/kernels/$2"
	mv "$1" "$CACHE/kernels/$2"
}

# With the one module that a test needs.
fetch_kernel_7() {
	[ -s "$CACHE/kernels/7/overlay.ko" ] && return
	local dir package
	ensure_packages xz-utils
	dir=$(mktemp -d "$CACHE/kernel-7.XXXX")
	package=$(private_apt sid search --names-only '^linux-binary-7\.[0-9.]*.*-cloud-amd64$' |
		cut -d' ' -f1 | sort -V | tail -n 1)
	[ -n "$package" ] || die "Debian sid offers no 7.x cloud kernel"
	say "fetching $package"
	(cd "$dir" && private_apt sid -qq download \
		"$package" "${package/binary/base}" "${package/binary/modules}" >&2)
	for deb in "$dir"/*.deb; do
		dpkg -x "$deb" "$dir/x"
	done
	mkdir "$dir/kernel"
	cp "$dir"/x/usr/lib/modules/*/vmlinuz "$dir"/x/usr/lib/modules/*/config "$dir/kernel/"
	find "$dir/x" -name overlay.ko.xz -exec xz -dc {} \; >"$dir/kernel/overlay.ko"
	[ -s "$dir/kernel/vmlinuz" ] && [ -s "$dir/kernel/overlay.ko" ] ||
		die "$package could not be fetched, or has no kernel or no overlay.ko.xz"
	keep_kernel "$dir/kernel" 7
	rm -rf "$dir"
}

build_kernel_6_12() {
	local config=$TREE/scripts/lib/kernel-6.12.config stamp dir
	stamp=$(sha256sum "$config" | cut -c1-16)
	[ "$(cat "$CACHE/kernels/6.12/stamp" 2>/dev/null)" = "$stamp" ] && return
	ensure_packages "${BUILD_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}"
	dir=$(mktemp -d "$CACHE/kernel-6.12.XXXX")
	say "building Linux 6.12 with sched_ext (5 to 10 minutes, once)"
	(cd "$dir" && private_apt "trixie" -qq download linux-source-6.12 >&2)
	dpkg -x "$dir"/linux-source-*.deb "$dir/x"
	tar -C "$dir" -xf "$dir"/x/usr/src/linux-source-6.12.tar.xz
	compile_kernel "$dir/linux-source-6.12" "$config"
	mkdir "$dir/kernel"
	cp "$dir/linux-source-6.12/arch/x86/boot/bzImage" "$dir/kernel/vmlinuz"
	cp "$dir/linux-source-6.12/.config" "$dir/kernel/config"
	echo "$stamp" >"$dir/kernel/stamp"
	keep_kernel "$dir/kernel" 6.12
	rm -rf "$dir"
}

compile_kernel() {
	local source=$1 config=$2 line
	(cd "$source" && KCONFIG_ALLCONFIG=$config make -s allnoconfig >/dev/null)
	while IFS= read -r line; do
		grep -qxF "$line" "$source/.config" || die "Linux 6.12 does not take $line"
	done < <(grep '^CONFIG_.*=y' "$config")
	(cd "$source" && make -s -j"$(nproc)" bzImage >"$source/build.log" 2>&1) ||
		die "Linux 6.12 does not build: $(tail -n 3 "$source/build.log")"
}
