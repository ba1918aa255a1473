#!/usr/bin/env bash
# Mode auto follows the desktop's power profile, as a daemon on a real system bus reports it: at
# once, by its signal.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

# The bus of the system, on which anyone may be the daemon.
cat >/tmp/bus.conf <<-'XML'
	<busconfig>
	  <type>system</type>
	  <listen>unix:path=/run/dbus/system_bus_socket</listen>
	  <auth>EXTERNAL</auth>
	  <policy context="default">
	    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow eavesdrop="false"/>
	  </policy>
	</busconfig>
XML
mkdir -p /run/dbus

daemon() {
	python3 -m dbusmock --system --template power_profiles_daemon >/tmp/daemon.log 2>&1 &
	DAEMON=$!
	local i
	for i in $(seq 100); do
		! profile_is balanced 2>/dev/null || return 0
		sleep 0.2
	done
	fail "no daemon after 20 s ($i tries): $(cat /tmp/daemon.log)"
}

property() {
	dbus-send --system --print-reply --dest=net.hadess.PowerProfiles /net/hadess/PowerProfiles \
		"org.freedesktop.DBus.Properties.$1" string:net.hadess.PowerProfiles \
		string:ActiveProfile "${@:2}"
}
profile_is() { property Get | grep -q "\"$1\""; }

# Auto must choose `$1` because of $2, within a second or two: by its timer it would take five.
chooses() {
	local i
	for i in $(seq 20); do
		[[ $(scx_powerpack mode) != "$1 (auto: $2"* ]] || return 0
		sleep 0.1
	done
	fail "auto says $(scx_powerpack mode), not $1 by $2, after $i looks: $(tail -n 3 $LOG)"
}

# A bus, with a daemon.
bus() {
	dbus-daemon --config-file=/tmp/bus.conf --nofork &
	bus=$!
	sleep 1
	daemon
}

echo "a bus that comes with a daemon before us"
trap 'kill $bus $DAEMON' EXIT
bus
property Set variant:string:performance >/dev/null
start --mode auto
chooses spread 'power profile performance'
property Set variant:string:power-saver >/dev/null
chooses packing 'power profile power-saver'
property Set variant:string:performance >/dev/null
chooses spread 'power profile performance'
property Set variant:string:balanced >/dev/null
for _ in $(seq 60); do
	[[ $(scx_powerpack mode) == *profile* ]] || break
	sleep 0.1
done
[[ $(scx_powerpack mode) != *profile* ]] || fail "balanced: $(scx_powerpack mode)"

echo "the daemon goes, and comes back"
property Set variant:string:power-saver >/dev/null
chooses packing 'power profile power-saver'
kill $DAEMON
for _ in $(seq 60); do
	[[ $(scx_powerpack mode) == *profile* ]] || break
	sleep 0.1
done
[[ $(scx_powerpack mode) != *profile* ]] || fail "without a daemon: $(scx_powerpack mode)"
daemon
property Set variant:string:power-saver >/dev/null
chooses packing 'power profile power-saver'

echo "the bus goes, and comes back"
kill $bus $DAEMON
wait $bus || true
for _ in $(seq 60); do
	[[ $(scx_powerpack mode) == *profile* ]] || break
	sleep 0.1
done
[[ $(scx_powerpack mode) != *profile* ]] || fail "without a bus: $(scx_powerpack mode)"
rm -f /run/dbus/system_bus_socket
bus
property Set variant:string:power-saver >/dev/null
# It looks for the bus every five seconds.
for _ in $(seq 60); do
	[[ $(scx_powerpack mode) != *profile* ]] || break
	sleep 0.1
done
chooses packing 'power profile power-saver'

echo "a fixed mode stays, whatever the profile"
scx_powerpack mode balance >/dev/null
property Set variant:string:performance >/dev/null
sleep 2
[ "$(scx_powerpack mode)" = balance ] || fail "the profile has changed a fixed mode"

echo "nothing is polled: the bus sees no calls while nothing changes"
scx_powerpack mode auto >/dev/null
dbus-monitor --system >/tmp/calls 2>/dev/null &
monitor=$!
sleep 12
kill $monitor
! grep 'method call' /tmp/calls | grep -v Monitoring | grep -q PowerProfiles || fail "polled: $(grep 'method call' /tmp/calls | tail -n 3)"
stop
