# shellcheck shell=bash
# Debian packages, the Rust toolchain, and the build. Sourced after common.sh.

. "$TREE/scripts/lib/stage.sh"

# shellcheck disable=SC2034 # used by those that source this
{
	BUILD_PACKAGES=(clang-19 llvm-19 libelf-dev zlib1g-dev pkg-config make gcc)
	VM_PACKAGES=(kmod udev libcap-ng-dev libseccomp-dev python3-venv iproute2 procps)
	TEST_PACKAGES=(git bpftool jq clang-format-19 shellcheck meson ninja-build stress-ng rt-tests tmux util-linux
		chromium python3-dbusmock python3-prometheus-client dbus systemd)
	DEB_PACKAGES=(build-essential git debhelper dpkg-dev meson ninja-build pkgconf lintian man-db mandoc)
	KERNEL_PACKAGES=(flex bison bc libssl-dev pahole xz-utils cpio rsync)
}

# The mirror that this machine uses already.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort -u | head -n 1
}

keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		if [ -e "$file" ]; then
			echo "$file"
			return
		fi
	done
	die "no Debian archive keyring: install the package debian-archive-keyring"
}

# apt-get with a sources list of its own ("SUITE ..." in $1), so that neither
# the system's list nor its state is changed. APT_ARCH: of another architecture than this machine's.
private_apt() {
	local suites=$1 dir suite arch=${APT_ARCH:-}
	[ "$arch" != "$(dpkg --print-architecture)" ] || arch=''
	dir=$CACHE/apt/${suites// /+}${arch:+-$arch}
	shift
	mkdir -p "$dir/lists/partial"
	for suite in $suites; do
		echo "deb [${arch:+arch=$arch }signed-by=$(keyring)] $(mirror) $suite main"
	done >"$dir/sources.list"
	local options=(-o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o APT::Sandbox::User=root ${arch:+-o APT::Architecture=$arch})
	if [ -z "$(find "$dir/lists" -name '*Packages*' -mmin -720 -print -quit)" ]; then
		apt-get "${options[@]}" -qq update >&2
	fi
	case $1 in
	install) as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@" >&2 ;;
	search | policy) apt-cache "${options[@]}" "$@" ;;
	*) apt-get "${options[@]}" "$@" ;;
	esac
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

installed_names() { dpkg-query -W -f '${Package}\n' | sort; }

# Ask for the password, if one is needed, before a clock runs over the question.
ensure_root() {
	[ "$(id -u)" != 0 ] || return 0
	command -v sudo >/dev/null || die "$1 needs root: run this script as root, or install sudo"
	sudo -v || die "$1 needs root, and sudo refuses"
}

install_packages() {
	as_root apt-get -qq update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
}

# Install those of the packages that are missing.
ensure_packages() {
	local missing=() package
	for package in "$@"; do
		installed "$package" || missing+=("$package")
	done
	[ ${#missing[@]} != 0 ] || return 0
	command -v apt-get >/dev/null || die "needs the packages ${missing[*]}, and this is no Debian"
	ensure_root "installing ${missing[*]}"
	stage "installing ${missing[*]}" install_packages "${missing[@]}"
}

# Install those of the packages that are missing, and let none of their servers run: Debian starts each, now and
# with the machine. Who measures one starts it.
ensure_packages_stopped() {
	local before added services
	before=$(installed_names)
	ensure_packages "$@"
	mapfile -t added < <(comm -13 <(echo "$before") <(installed_names))
	[ ${#added[@]} != 0 ] && command -v systemctl >/dev/null || return 0
	mapfile -t services < <(dpkg -L "${added[@]}" | sed -n 's#.*/systemd/system/\([^/@]*\.service\)$#\1#p' | sort -u)
	[ ${#services[@]} != 0 ] || return 0
	as_root systemctl --quiet disable "${services[@]}"
	[ ! -d /run/systemd/system ] || as_root systemctl stop "${services[@]}"
}

# Whether QEMU's program $1 is there in a version whose virtual time is exact.
has_qemu() {
	local version
	command -v "$1" >/dev/null || return 1
	version=$("$1" --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
	[ "$(printf '%s\n8.1\n' "$version" | sort -V | head -n 1)" = 8.1 ]
}

# ensure_qemu PROGRAM PACKAGE: virtual time is exact from QEMU 8.1 on; Debian 12 has that in its
# backports.
ensure_qemu() {
	! has_qemu "$1" || return 0
	if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = bookworm ]; then
		ensure_root "installing QEMU"
		stage "installing $2 from bookworm-backports" \
			private_apt "bookworm bookworm-backports" install -qq -y --no-install-recommends \
			-t bookworm-backports "$2"
	else
		ensure_packages "$2"
	fi
}

# Rust is not installed behind the user's back: there is one right way to.
ensure_rust() {
	local wanted have
	wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$TREE/Cargo.toml")
	have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || have=none
	if [ "$(printf '%s\n%s\n' "${have:-none}" "$wanted" | sort -V | head -n 1)" != "$wanted" ] ||
		[ "${have:-none}" = none ]; then
		die "needs Rust $wanted or later, found ${have:-none}: install it with rustup (https://rustup.rs)"
	fi
}

# The programs in release mode, as they are packaged and measured.
build_programs() {
	ensure_packages "${BUILD_PACKAGES[@]}"
	ensure_rust
	(cd "$TREE" && stage "building scx_powerpack" cargo build --release --quiet --workspace)
}
