#!/usr/bin/env bash
# The Debian package: lintian, what is in it, and that it installs, upgrades and goes away.
# check-deb.sh [DEB]; without one, that of build/deb, built from HEAD unless it is newer.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$TREE/scripts/lib/deps.sh"

PROGRAM=/usr/bin/scx_powerpack
CONFIG=/etc/scx_powerpack/config.toml
UNIT=scx_powerpack.service
FILES="$PROGRAM
$CONFIG
/usr/lib/tmpfiles.d/scx_powerpack.conf
/usr/share/man/man8/scx_powerpack.8.gz
/usr/share/man/man5/scx_powerpack-config.5.gz
/usr/share/bash-completion/completions/scx_powerpack.bash
/usr/share/zsh/vendor-completions/_scx_powerpack
/usr/share/fish/vendor_completions.d/scx_powerpack.fish
/usr/share/doc/scx-powerpack/copyright
/usr/share/doc/scx-powerpack/examples/config.toml
/usr/share/doc/scx-powerpack/examples/scx_loader.toml
/usr/share/doc/scx-powerpack/examples/scx.service.d/powerpack.conf"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# A package of what is committed.
package() {
	local deb
	deb=$("$TREE/scripts/lib/current-deb.sh") || true
	[ -n "$deb" ] || deb=$("$TREE/scripts/build-deb")
	echo "$deb"
}

check_contents() {
	local files file
	files=$(dpkg-deb -c "$deb" | awk '{ print substr($6, 2) }')
	for file in $FILES; do
		grep -qx "$file" <<<"$files" || fail "$file is not in the package"
	done
	for file in "$UNIT" scx_powerpack-metrics.socket; do
		grep -qx "\(/usr\)\?/lib/systemd/system/$file" <<<"$files" || fail "$file is not in the package"
	done
	[ "$(dpkg-deb -I "$deb" conffiles)" = "$CONFIG" ] || fail "$CONFIG is no conffile"
}

check_manual() {
	local page said
	for page in "$TREE"/packaging/*.[58]; do
		said=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)
		said+=$(mandoc -T lint -W warning "$page") || true
		[ -z "$said" ] || fail "$page: $said"
	done
}

# This machine's root with a layer above it that takes every change, and vanishes with us.
in_private_root() {
	as_root unshare --mount bash -euc '
		layer=$1 deb=$2 newer=$3 script=$4
		mount -t tmpfs none "$layer"
		mkdir "$layer"/{upper,work,root}
		mount -t overlay none "$layer/root" \
			-o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work"
		mount --rbind /proc "$layer/root/proc"
		mount --rbind /dev "$layer/root/dev"
		mkdir "$layer/root/package-check"
		cp "$script" "$layer/root/package-check/script"
		cp "$deb" "$layer/root/package-check/deb"
		cp "$newer" "$layer/root/package-check/newer"
		chroot "$layer/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			DEBIAN_FRONTEND=noninteractive /bin/bash /package-check/script
		rm -r "$layer/upper/package-check"
		# Whiteouts and directories aside, what is left differs from what was there before.
		cd "$layer/upper"
		find . ! -type d ! -type c ! -path "./var/lib/dpkg/*" ! -path "./var/log/*" \
			! -path "./var/cache/*" ! -path "./tmp/*"
		find . -name "*powerpack*" ! -type c
	' private "$1" "$2" "$3" "$TREE/scripts/lib/check-deb-root.sh"
}

ensure_packages "${BUILD_PACKAGES[@]}" "${DEB_PACKAGES[@]}"
deb=${1:-$(package)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "checking $(basename "$deb")"
# The package comes from Debian 12, whose debhelper looks for units below /lib; the lintian of
# Debian 13 has a tag for that, which the older one does not know.
of_other_suite=()
! lintian-explain-tags aliased-location >/dev/null 2>&1 || of_other_suite=(--suppress-tags aliased-location)
lintian "${of_other_suite[@]}" --fail-on error "$deb"
check_contents
check_manual
"$TREE/scripts/lib/newer-deb.sh" "$deb" "$work/newer.deb"
mkdir "$work/layer"
left=$(in_private_root "$work/layer" "$deb" "$work/newer.deb")
[ -z "$left" ] || fail "left after a purge: $left"
echo "ok"
