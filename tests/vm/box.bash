# shellcheck shell=bash
# A real systemd, booted with a copy of this machine's /etc: PID 1 of a container that is all
# the VM runs. Sourced after lib.bash.

BOX=/run/box
BOX_PROGRAMS=/run/programs
BOX_PID=''

# What this machine happens to start, and what waits for hardware.
BOX_MASKED=(apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer
	fstrim.timer man-db.timer e2scrub_reap.service systemd-timesyncd.service
	systemd-pstore.service getty.target systemd-logind.service systemd-udevd.service
	systemd-udev-trigger.service systemd-networkd.service networking.service cron.service
	systemd-update-utmp-runlevel.service systemd-update-utmp.service dev-hugepages.mount
	systemd-user-sessions.service systemd-tmpfiles-clean.timer systemd-journal-flush.service
	systemd-remount-fs.service sys-kernel-debug.mount sys-kernel-tracing.mount remote-fs.target
	dev-mqueue.mount sys-fs-fuse-connections.mount sys-kernel-config.mount tmp.mount)

# The root of the box: this machine's, with an /etc, a /run and a /var of its own.
box_prepare() {
	mkdir -p $BOX
	mount --rbind / $BOX
	mount --make-rslave $BOX
	mkdir -p /run/box-etc
	cp -a /etc/. /run/box-etc/ 2>/dev/null || true
	mount --bind /run/box-etc $BOX/etc
	local dir unit
	# Its own /tmp too: what is there at boot is thrown away.
	for dir in run tmp var/log var/lib/systemd; do
		mount -t tmpfs tmpfs $BOX/$dir
	done
	# The service has a /tmp of its own, where the tree may be.
	mkdir $BOX$BOX_PROGRAMS
	mount --bind "$PROGRAMS" $BOX$BOX_PROGRAMS
	: >$BOX/etc/fstab
	echo 0123456789abcdef0123456789abcdef >$BOX/etc/machine-id
	# No service that this machine has enabled is any business of the test, and one that fails would
	# leave the box "degraded".
	rm -rf $BOX/etc/systemd/system/*.wants
	for unit in "${BOX_MASKED[@]}"; do
		ln -sf /dev/null "$BOX/etc/systemd/system/$unit"
	done
	sed "s:@bindir@:$BOX_PROGRAMS:" "$TREE/packaging/scx_powerpack.service.in" \
		>$BOX/etc/systemd/system/scx_powerpack.service
	cp "$TREE/packaging/scx_powerpack-metrics.socket" $BOX/etc/systemd/system/
	mkdir -p $BOX/etc/scx_powerpack
	echo 'mode = "packing"' >$BOX/etc/scx_powerpack/config.toml
}

# Boot it, and wait until it is up.
box_boot() {
	mkdir -p /sys/fs/cgroup/box
	env -i PATH="$PATH" container=oci unshare --pid --fork --mount --uts --ipc --cgroup \
		bash -c "echo 0 >/sys/fs/cgroup/box/cgroup.procs
			exec unshare --cgroup bash -c '
				mount -t proc proc $BOX/proc
				mount -t cgroup2 cgroup2 $BOX/sys/fs/cgroup
				exec chroot $BOX /lib/systemd/systemd --system --unit=multi-user.target \
					--show-status=no --log-target=journal'" >/tmp/box.log 2>&1 &
	local i state=''
	for i in $(seq 240); do
		BOX_PID=$(pgrep -xo systemd) || BOX_PID=''
		if [ -n "$BOX_PID" ]; then
			# Its exit status is 0 for "running" alone; "degraded" is up too.
			state=$(box systemctl is-system-running 2>&1) || true
			[[ $state != @(running|degraded) ]] || return 0
		fi
		sleep 0.5
	done
	fail "systemd is not up after 120 s ($i tries): $state $(tail -n 5 /tmp/box.log) $(box systemctl list-jobs 2>&1 | head)"
}

# Run a command in it.
box() { nsenter --target "$BOX_PID" --pid --mount --uts --ipc --cgroup --root --wd=/ -- "$@"; }

# Ask the scheduler in it for its mode, or to change it.
box_mode() { box $BOX_PROGRAMS/scx_powerpack mode "$@"; }

# systemctl in it. Once in some hundred calls it has not got through to PID 1 ("Failed to connect
# to bus: No data available"): that says nothing of the service.
box_systemctl() {
	local status=0 try
	for try in 1 2 3 4 5; do
		status=0
		box systemctl "$@" 2>/tmp/box.err || status=$?
		grep -q 'Failed to connect to bus' /tmp/box.err || break
		sleep "$try"
	done
	[ $status = 0 ] || cat /tmp/box.err
	return $status
}

# Wait up to $1 s until the service's property $2 is $3.
box_service_is() {
	local i
	for i in $(seq $(($1 * 5))); do
		[ "$(box_systemctl show -P "$2" scx_powerpack)" != "$3" ] || return 0
		sleep 0.2
	done
	fail "$2 is $(box_systemctl show -P "$2" scx_powerpack), not $3, after $1 s ($i tries):
$(box journalctl --no-pager -n 20 -u scx_powerpack -o cat)"
}

# Shut it down as a machine is.
box_stop() {
	box_systemctl poweroff --no-block >/dev/null 2>&1 || kill -37 "$BOX_PID"
	local i
	for i in $(seq 200); do
		kill -0 "$BOX_PID" 2>/dev/null || return 0
		sleep 0.2
	done
	fail "the box is not down after 40 s ($i tries)"
}
