#!/usr/bin/env bash
# For check-deb.sh, in a root that is thrown away: install, upgrade while it runs, remove, purge;
# where systemd is not running, and where it seems to be. The packages are in /package-check.
set -euo pipefail

PROGRAM=/usr/bin/scx_powerpack
CONFIG=/etc/scx_powerpack/config.toml
UNIT=scx_powerpack.service

fail() {
	echo "failed: $*" >&2
	[ ! -e /tmp/dpkg ] || cat /tmp/dpkg >&2
	exit 1
}

# dpkg, quiet unless it fails.
run_dpkg() { dpkg "$@" >/tmp/dpkg 2>&1 || fail "dpkg $*"; }

# A systemctl that writes down what it is asked for, and for which the unit is active.
pretend_systemd() {
	mkdir -p /run/systemd/system
	rm -f "$(readlink -f /bin/systemctl)"
	printf '#!/bin/sh\necho "$*" >>/tmp/asked\n' >/usr/bin/systemctl
	chmod +x /usr/bin/systemctl
}

asked() { grep -q -- "$1" /tmp/asked; }

# Nothing is started, and nothing needed.
without_systemd() {
	[ ! -d /run/systemd/system ] || fail "systemd runs in the private root"
	run_dpkg -i /package-check/deb
	check_installed
	run_dpkg -i /package-check/newer
	check_installed
	run_dpkg --remove scx-powerpack
	[ ! -e "$PROGRAM" ] && [ -e "$CONFIG" ] || fail "a removal keeps the configuration, nothing else"
	run_dpkg --purge scx-powerpack
}

check_installed() {
	[ "$(dpkg-query -W -f '${Status}' scx-powerpack)" = "install ok installed" ] ||
		fail "it is not installed"
	"$PROGRAM" --version >/dev/null || fail "it does not run"
	dpkg -V scx-powerpack | grep . && fail "not as in the package"
	! find /etc/systemd -name "$UNIT" | grep -q . || fail "the unit is enabled"
}

# What the administrator changed stays; what runs is replaced, and then asked to restart.
with_systemd() {
	pretend_systemd
	run_dpkg -i /package-check/deb
	! grep -E "(^|-)(start|restart|enable).*$UNIT" /tmp/asked || fail "an installation starts it"
	echo '# mine' >>"$CONFIG"
	"$PROGRAM" sim --until 3000 >/dev/null 2>&1 &
	local running=$!
	: >/tmp/asked
	run_dpkg -i /package-check/newer
	kill -0 "$running" || fail "it did not run during the upgrade"
	kill "$running"
	asked "try-restart.*$UNIT" || fail "an upgrade does not restart it"
	! asked "stop.*$UNIT" || fail "an upgrade stops it"
	grep -q '# mine' "$CONFIG" || fail "an upgrade has undone a change of the configuration"
	: >/tmp/asked
	run_dpkg --remove scx-powerpack
	asked "stop.*$UNIT" || fail "a removal does not stop it"
	! grep -q 'still runs' /tmp/dpkg || fail "a removal says that it runs"
	run_dpkg -i /package-check/newer
	# As if scx.service had started it: it answers, whatever is asked.
	cp /bin/true "$PROGRAM"
	run_dpkg --remove scx-powerpack
	grep -q 'still runs' /tmp/dpkg || fail "a removal does not say that it still runs"
	run_dpkg --purge scx-powerpack
	[ ! -e /etc/scx_powerpack ] || fail "a purge leaves the configuration"
}

# What this machine does not want of packages or services is nothing to us.
rm -f /etc/dpkg/dpkg.cfg.d/* /usr/sbin/policy-rc.d
if dpkg-query -W scx-powerpack >/dev/null 2>&1; then
	run_dpkg --purge scx-powerpack
fi
without_systemd
with_systemd
rm /usr/bin/systemctl
