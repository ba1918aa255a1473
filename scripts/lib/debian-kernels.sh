# shellcheck shell=bash
# Debian's kernels as Debian runs them, for scripts/vm: each is called debian-VERSION-FLAVOUR, as
# debian-7-cloud or debian-6.19-rt, and is the newest of that version that any of these suites has.
# Sourced after deps.sh.

DEBIAN_KERNEL_SUITES='trixie trixie-backports sid'

# What a VM over virtiofs needs of the modules, where these drivers are not built in: paths below
# the kernel's directory of modules, to begin with.
GUEST_MODULES='fs/fuse/|drivers/virtio/|drivers/char/virtio_console|drivers/char/hw_random/|fs/overlayfs/|net/unix/'

# The beginning of names of Debian's packages for flavour $1: generic, cloud or rt.
flavour_suffix() {
	case $1 in
	generic) echo amd64 ;;
	cloud | rt) echo "$1-amd64" ;;
	*) die "Debian has no kernels of flavour '$1': choose generic, cloud or rt" ;;
	esac
}

# The name of the newest package with a kernel of version $1 (7 or 6.19) and flavour $2: that called
# binary where there is one, for that called image has none in it then.
newest_kernel_package() {
	local version=${1//./\\.} suffix
	suffix=$(flavour_suffix "$2")
	private_apt "$DEBIAN_KERNEL_SUITES" search --names-only \
		"^linux-(binary|image)-${version}\.[0-9.]*[+~][^-]*-$suffix\$" |
		cut -d' ' -f1 | sort -r | sort -s -V -t- -k3,3 | tail -n 1
}

# Download package $2 into $1, and those that have its modules and configuration where they are packages of
# their own. Of kernels that have been followed by others the suites keep the first alone: it boots
# without, if the drivers are built in.
download_kernel() {
	local dir=$1 package=$2 name names=("$2")
	for name in "${package/binary/base}" "${package/binary/modules}"; do
		[ "$name" = "$package" ] || [ -z "$(private_apt "$DEBIAN_KERNEL_SUITES" search --names-only "^${name//+/\\+}\$")" ] ||
			names+=("$name")
	done
	(cd "$dir" && private_apt "$DEBIAN_KERNEL_SUITES" -qq download "${names[@]}")
}

# The one file below $1 that find's conditions $2.. name; nothing if there is none.
one_file() { find "$1" -type f "${@:2}" | head -n 1; }

# Take from the modules in directory $1 what a guest needs to $2.
take_modules() {
	local file
	mkdir -p "$2"
	cp "$1"/modules.{builtin,order}* "$2/"
	while IFS= read -r file; do
		mkdir -p "$2/$(dirname "$file")"
		case $file in
		*.xz) xz -dc "$1/$file" >"$2/${file%.xz}" ;;
		*) cp "$1/$file" "$2/$file" ;;
		esac
	done < <(cd "$1" && find kernel -name '*.ko*' | grep -E "^kernel/($GUEST_MODULES)")
}

# Take the kernel, its configuration and what a guest needs of its modules from the packages in $1 to
# $1/kernel, laid out as a file system's root, by which vng finds the modules.
take_kernel() {
	local dir=$1 file modules
	for file in "$dir"/*.deb; do dpkg -x "$file" "$dir/x"; done
	mkdir "$dir/kernel"
	cp "$(one_file "$dir/x" -name 'vmlinuz*')" "$dir/kernel/vmlinuz"
	file=$(one_file "$dir/x" \( -path '*/boot/config-*' -o -path '*/modules/*/config' \))
	[ -z "$file" ] || cp "$file" "$dir/kernel/config"
	modules=$(find "$dir/x" -type d -path '*/lib/modules/*' -name kernel -prune | head -n 1)
	modules=${modules%/kernel}
	[ -n "$modules" ] || return 0
	take_modules "$modules" "$dir/kernel/lib/modules/${modules##*/}"
	depmod -b "$dir/kernel" "${modules##*/}"
}

# Fetch kernel $1, debian-VERSION-FLAVOUR, into the cache.
fetch_debian_kernel() {
	local version flavour package dir
	IFS=- read -r _ version flavour <<<"$1"
	package=$(newest_kernel_package "$version" "$flavour")
	[ -n "$package" ] || die "Debian's $DEBIAN_KERNEL_SUITES have no kernel $version of flavour $flavour"
	dir=$(mktemp -d "$CACHE/kernel-$1.XXXX")
	download_kernel "$dir" "$package"
	take_kernel "$dir"
	keep_kernel "$dir/kernel" "$1"
	rm -rf "$dir"
}

ensure_debian_kernel() {
	[ ! -s "$CACHE/kernels/$1/vmlinuz" ] || return 0
	# file tells vng the version; modules are loaded by busybox, before the root is there.
	ensure_packages xz-utils kmod file busybox-static
	stage "fetching Debian's kernel $1" fetch_debian_kernel "$1"
}
