#!/usr/bin/env bash
# The Debian package under a real systemd: an installation starts nothing, after an upgrade
# the new program runs, with the administrator's configuration; a removal ends it.
# vm: --cpus 4
# timeout: 400
# only: 7
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/box.bash"
CONFIG=$BOX/etc/scx_powerpack/config.toml

# The box has what the package brings from nowhere else, and can be installed in.
box_for_packages() {
	local dir
	# Debian's kernel has it as a module.
	insmod "$CACHE/kernels/7/overlay.ko"
	rm -r $BOX/etc/systemd/system/scx_powerpack* $BOX/etc/scx_powerpack
	for dir in usr var/lib/dpkg; do
		mkdir -p "/run/layer/$dir" "/run/work/$dir"
		mount -t overlay overlay "$BOX/$dir" \
			-o "lowerdir=/$dir,upperdir=/run/layer/$dir,workdir=/run/work/$dir"
	done
	mount -t tmpfs tmpfs $BOX/var/cache
	# Images of containers forbid packages to touch services by it.
	rm -f $BOX/usr/sbin/policy-rc.d
}

# dpkg in the box, quiet unless it fails.
box_dpkg() { box env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg "$@" >/tmp/dpkg 2>&1 || fail "dpkg $*: $(cat /tmp/dpkg)"; }

main_pid() { box_systemctl show -P MainPID scx_powerpack; }
# What runs is what is installed: a file that is gone reads "(deleted)".
runs_the_installed() {
	local program
	program=$(box readlink "/proc/$(main_pid)/exe")
	[[ $program == */usr/bin/scx_powerpack ]] || fail "it runs $program"
}

deb=$(find "$TREE/build/deb" -maxdepth 1 -name '*.deb' 2>/dev/null | head -n 1)
[ -n "$deb" ] || fail "no package: scripts/build-deb makes it"
box_prepare
box_for_packages
cp "$deb" $BOX/usr/deb
"$TREE/scripts/lib/newer-deb.sh" "$deb" $BOX/usr/newer
box_boot

echo "installed: nothing runs"
box_dpkg -i /usr/deb
[ "$(box_systemctl show -P LoadState scx_powerpack)" = loaded ] || fail "systemd does not know the unit"
[ "$(cat $SCX/state)" = disabled ] || fail "the installation has loaded a scheduler"
box_systemctl start scx_powerpack
box_service_is 60 ActiveState active
runs_the_installed

echo "upgraded while it runs: the new program, the old configuration"
echo 'mode = "spread"' >"$CONFIG"
old=$(main_pid) loads=$(cat $SCX/enable_seq)
box_dpkg -i /usr/newer
box_service_is 60 ActiveState active
[ "$(main_pid)" != "$old" ] || fail "the old program runs on"
runs_the_installed
[ "$(cat $SCX/enable_seq)" = $((loads + 1)) ] || fail "loaded $(($(cat $SCX/enable_seq) - loads)) times, not once"
[ "$(box /usr/bin/scx_powerpack mode)" = spread ] || fail "after the upgrade: $(box /usr/bin/scx_powerpack mode)"

echo "removed, purged"
box_dpkg --remove scx-powerpack
kernel_is_back
[ -e "$CONFIG" ] || fail "a removal has taken the configuration"
box_dpkg --purge scx-powerpack
[ ! -e "$CONFIG" ] || fail "a purge has left the configuration"
box_stop
