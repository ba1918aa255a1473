#!/usr/bin/env bash
# The Debian package under a real systemd: an installation starts nothing, after an upgrade
# the new program runs, with the administrator's configuration; a removal ends it.
# timeout: 400
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/box.bash"
CONFIG=$BOX/etc/scx_powerpack/config.toml
# Of what calibrate and mode auto have found out.
KEPT=$BOX/var/lib/scx_powerpack

# The box has what the package brings from nowhere else, and can be installed in.
box_for_packages() {
	local dir
	# Debian's kernel has it as a module.
	insmod "$KERNEL_FILES/overlay.ko"
	rm -r $BOX/etc/systemd/system/scx_powerpack* $BOX/etc/scx_powerpack
	mkdir -p /run/layer /run/work
	mount -t overlay overlay $BOX/usr -o "lowerdir=/usr,upperdir=/run/layer,workdir=/run/work"
	for dir in var/cache var/lib; do mount -t tmpfs tmpfs "$BOX/$dir"; done
	# Not the list of this machine's packages, which dpkg would read for minutes, but of one,
	# for it to keep the directories. With a file: else ours would replace it as a whole.
	mkdir -p $BOX/var/lib/{systemd,dpkg/{info,updates,triggers}}
	touch $BOX/var/lib/dpkg/available
	dpkg-query -s base-files >$BOX/var/lib/dpkg/status
	dpkg-deb -c "$deb" | awk '/^d/ && !/powerpack/ { sub("/$", "", $6); print substr($6, 2) }' |
		sed -e 's:^$:/.:' -e '$a /etc/debian_version' >$BOX/var/lib/dpkg/info/base-files.list
	# Images of containers forbid packages to touch services by it.
	rm -f $BOX/usr/sbin/policy-rc.d
}

# dpkg in the box, quiet unless it fails. What the package depends on is there, though not
# in the list.
box_dpkg() {
	box env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		dpkg --force-depends "$@" >/tmp/dpkg 2>&1 || fail "dpkg $*: $(cat /tmp/dpkg)"
}

main_pid() { box_systemctl show -P MainPID scx_powerpack; }
# What runs is what is installed: a file that is gone reads "(deleted)".
runs_the_installed() {
	local program
	program=$(box readlink "/proc/$(main_pid)/exe")
	[[ $program == */usr/bin/scx_powerpack ]] || fail "it runs $program"
}

deb=$("$TREE/scripts/lib/current-deb.sh") || true
[ -n "$deb" ] || fail "no package of this commit: scripts/build-deb makes it"
box_prepare
box_for_packages
cp "$deb" $BOX/usr/deb
"$TREE/scripts/lib/newer-deb.sh" "$deb" $BOX/usr/newer
box_boot

echo "installed: nothing runs"
box_dpkg -i /usr/deb
[ "$(box_systemctl show -P LoadState scx_powerpack)" = loaded ] || fail "systemd does not know the unit"
[ "$(cat $SCX/state)" = disabled ] || fail "the installation has loaded a scheduler"
[ -d $KEPT ] || fail "there is no directory for what mode auto finds out"
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
[ -d $KEPT ] || fail "a removal has taken what was found out"
box_dpkg --purge scx-powerpack
[ ! -e "$CONFIG" ] || fail "a purge has left the configuration"
[ ! -e $KEPT ] || fail "a purge has left what was found out"
box_stop
