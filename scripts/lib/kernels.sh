# shellcheck shell=bash
# The kernels of the VM: the newest 7.x of Debian sid; 6.12, the oldest that
# is supported, which Debian builds without sched_ext; powerlab, 6.12 with our model of a
# machine's power; and powerlab-debug, the same with the kernel's checks of locks; and what
# scripts/campaign boots beside these. Sourced after tools.sh.

. "$TREE/scripts/lib/debian-kernels.sh"

# The path of kernel $1 for $2 (amd64 or arm64), fetched or built if it is missing.
kernel_path() {
	local arch=${2:-amd64}
	case $1,$arch in
	7,*) locked "kernel-7-$arch" ensure_kernel_7 "$arch" ;;
	debian-*-*,amd64) locked "kernel-$1" ensure_debian_kernel "$1" ;;
	6.12,* | 6.12-plain,amd64 | 6.12-checks,amd64 | powerlab,* | powerlab-debug,*)
		locked "kernel-$1-$arch" ensure_kernel_6_12 "$1" "$arch"
		;;
	*) die "no kernel '$1' for $arch: scripts/vm --help lists them" ;;
	esac
	echo "$CACHE/kernels/$(kernel_name "$1" "$arch")/vmlinuz"
}

POWERLAB=$TREE/tests/powerlab

# What kernel $1 of ours for $2 is to have. Some begin with that of 6.12 for x86, but for what their
# own says is not set.
kernel_config() {
	local configs=("$TREE/scripts/lib/kernel-6.12.config") own=''
	[[ $1 != powerlab* ]] || configs+=("$POWERLAB/kernel.config")
	[ "$1" != powerlab-debug ] || configs+=("$POWERLAB/debug.config")
	[[ $1 != 6.12-* ]] || own=$TREE/scripts/lib/kernel-$1.config
	[ "$2" != arm64 ] || own=$TREE/scripts/lib/kernel-6.12-arm64.config
	if [ -n "$own" ]; then
		sed -n 's/^# \(CONFIG_.*\) is not set/\1=y/p' "$own" | grep -hvxFf - "${configs[@]}"
		configs=("$own")
	fi
	cat "${configs[@]}"
}

# What our builds of 6.12 are made of, beside its source.
kernel_inputs() {
	kernel_config "$1" "$2"
	[[ $1 != powerlab* ]] || cat "$POWERLAB/deadline.sed" "$POWERLAB"/driver/*
}

# The name of kernel $1 for $2 in the cache: ours are one for each configuration and driver.
kernel_name() {
	case $1,$2 in
	6.12*,* | powerlab*,*) echo "$1-$(kernel_inputs "$1" "$2" | sha256sum | cut -c1-16)" ;;
	*,amd64) echo "$1" ;;
	*) echo "$1-$2" ;;
	esac
}

# Take a finished directory into the cache in one step.
keep_kernel() {
	mkdir -p "$CACHE/kernels"
	rm -rf "$CACHE/kernels/$2"
	mv "$1" "$CACHE/kernels/$2"
}

# Unpack the newest 7.x kernel of Debian sid for $2 into $1/kernel, with the one module that a
# test needs.
fetch_kernel_7() {
	local dir=$1 package deb
	local -x APT_ARCH=$2
	package=$(private_apt sid search --names-only "^linux-binary-7\.[0-9.]*.*-cloud-$2\$" |
		cut -d' ' -f1 | sort -V | tail -n 1)
	[ -n "$package" ] || die "Debian sid offers no 7.x cloud kernel"
	(cd "$dir" && private_apt sid -qq download \
		"$package" "${package/binary/base}" "${package/binary/modules}")
	for deb in "$dir"/*.deb; do
		dpkg -x "$deb" "$dir/x"
	done
	mkdir "$dir/kernel"
	cp "$dir"/x/usr/lib/modules/*/vmlinuz "$dir"/x/usr/lib/modules/*/config "$dir/kernel/"
	find "$dir/x" -name overlay.ko.xz -exec xz -dc {} \; >"$dir/kernel/overlay.ko"
	[ -s "$dir/kernel/vmlinuz" ] && [ -s "$dir/kernel/overlay.ko" ] ||
		die "$package has no kernel or no overlay.ko.xz"
}

ensure_kernel_7() {
	local dir name
	name=$(kernel_name 7 "$1")
	[ ! -s "$CACHE/kernels/$name/overlay.ko" ] || return 0
	ensure_packages xz-utils
	dir=$(mktemp -d "$CACHE/kernel-$name.XXXX")
	stage "fetching Linux 7 for $1 from Debian sid" fetch_kernel_7 "$dir" "$1"
	keep_kernel "$dir/kernel" "$name"
	rm -rf "$dir"
}

# Build kernel $2, one of ours, for $3 into $1/kernel.
build_kernel_6_12() {
	local dir=$1 source=$1/linux-source-6.12 config=$1/wanted.config
	(cd "$dir" && private_apt trixie -qq download linux-source-6.12)
	dpkg -x "$dir"/linux-source-*.deb "$dir/x"
	tar -C "$dir" -xf "$dir"/x/usr/src/linux-source-6.12.tar.xz
	kernel_config "$2" "$3" >"$config"
	[[ $2 != powerlab* ]] || add_powerlab "$source"
	[ "$2" != 6.12-plain ] || let_smt_be_unset "$source"
	mkdir "$dir/kernel"
	case $3 in
	amd64) compile_kernel "$source" "$config" arch/x86/boot/bzImage ARCH=x86 ;;
	arm64) compile_kernel "$source" "$config" arch/arm64/boot/Image ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- ;;
	esac
	cp "$source/.config" "$dir/kernel/config"
	# The kernel's own tests of what our driver is.
	mkdir "$dir/kernel/selftests"
	cp -r "$source"/tools/testing/selftests/{cpufreq,kselftest} "$dir/kernel/selftests/"
}

# Add our driver to the source in $1; mend what its tests trip over.
add_powerlab() {
	sed -i -f "$POWERLAB/deadline.sed" "$1/kernel/sched/deadline.c"
	cp -r "$POWERLAB/driver" "$1/drivers/powerlab"
	sed -i '/^endmenu/i source "drivers/powerlab/Kconfig"' "$1/drivers/Kconfig"
	echo 'obj-y += powerlab/' >>"$1/drivers/Makefile"
}

# x86 asks nobody whether it knows siblings, as other architectures do.
let_smt_be_unset() { sed -i '/^config SCHED_SMT/,/^$/s/def_bool y if SMP/bool "SMT"/' "$1/arch/x86/Kconfig"; }

# compile_kernel SOURCE CONFIG IMAGE OPTION..: with these options of make.
compile_kernel() {
	local source=$1 config=$2 image=$3 line
	shift 3
	(cd "$source" && KCONFIG_ALLCONFIG=$config make -s "$@" allnoconfig)
	while IFS= read -r line; do
		grep -qxF "$line" "$source/.config" || die "Linux 6.12 does not take $line"
	done < <(grep '^CONFIG_.*=y' "$config")
	while IFS= read -r line; do
		! grep -qxF "$line=y" "$source/.config" || die "Linux 6.12 has $line, whatever its configuration says"
	done < <(sed -n 's/^# \(CONFIG_.*\) is not set/\1/p' "$config")
	make -C "$source" -s -j"$(nproc)" "$@" "${image##*/}"
	cp "$source/$image" "$source/../kernel/vmlinuz"
}

ensure_kernel_6_12() {
	local name dir
	name=$(kernel_name "$1" "$2")
	[ ! -s "$CACHE/kernels/$name/vmlinuz" ] || return 0
	ensure_packages "${BUILD_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}"
	[ "$2" = amd64 ] || ensure_packages gcc-aarch64-linux-gnu
	dir=$(mktemp -d "$CACHE/kernel-6.12.XXXX")
	stage "building Linux 6.12 with sched_ext, once ($1, $2)" build_kernel_6_12 "$dir" "$1" "$2"
	keep_kernel "$dir/kernel" "$name"
	rm -rf "$dir"
}
