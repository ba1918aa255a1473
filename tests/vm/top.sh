#!/usr/bin/env bash
# `top` in a terminal shows what goes on, switches live, and leaves the terminal as it was.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"
export TERM=xterm LC_ALL=C.UTF-8
TMUX_SOCKET=/tmp/tmux.sock

in_tmux() { tmux -u -S $TMUX_SOCKET "$@"; }
screen() { in_tmux capture-pane -p; }
key() { in_tmux send-keys "$@"; }

# Run the command until it succeeds, for 20 s; what is waited for is $1.
wait_for() {
	local what=$1 i
	shift
	for i in $(seq 100); do
		"$@" && return
		sleep 0.2
	done
	screen
	fail "$what: not within 20 s ($i tries)"
}
shows() { screen | grep -qE -- "$1"; }
wait_shows() { wait_for "the screen shows '$1'" shows "$1"; }
runs_in() { [ "$(scx_powerpack mode)" = "$1" ]; }
ceiling_is() { scx_powerpack status --json | grep -q "\"max_cores\":$1,"; }

refused 'needs a terminal' scx_powerpack top
start --mode packing
powerpack-load workload --seconds 60 light >/tmp/light.json &
light=$!
in_tmux -f /dev/null new-session -d -x 80 -y 24 "bash --norc"
key 'scx_powerpack top' Enter
wait_shows '^scx_powerpack .* packing .*up '
wait_shows '^\*.* 0 █.* [1-9][0-9]* %'
wait_shows 'wake-up p50 <= '
wait_shows '^package 0 LLC 0 .* irq/s'
wait_shows '^\*.* 0 █.* [1-9][0-9]* % +[1-9][0-9.]*'
wait_shows '\* +0 .* powerpack-load'
screen >/tmp/top-80x24
# Modes and the ceiling, live.
key s
wait_for "spread" runs_in spread
wait_shows '^scx_powerpack .* spread '
wait_shows 'CPUs: 4 of 4 active'
key p
wait_for "packing" runs_in packing
key -- -
wait_for "one core less" ceiling_is 3
wait_shows 'ceiling 3 cores'
key +
wait_for "all cores" ceiling_is 4
wait_shows 'ceiling all cores'
key '?'
wait_shows 'any key closes this'
key x
wait_shows '^q quit'
key Space
wait_shows 'PAUSED'
key Space
# Another size, at once.
in_tmux resize-window -x 132 -y 40
wait_shows 'by utilization'
# The scheduler goes, and comes again.
stop
wait_shows 'not running'
start --mode balance
wait_shows '^scx_powerpack .* balance '
key q
wait_for "the shell is back" shows '[$#] *$'
! shows 'per s: spills' || fail "the screen is not what it was before"
# Others may look, and no more.
key 'setpriv --reuid 65534 --clear-groups scx_powerpack top' Enter
wait_shows 'read-only +up'
key s
wait_shows 'run it with sudo'
runs_in balance || fail "switched by another user"
# Killed, it leaves the terminal in order.
pkill -TERM -P "$(in_tmux display-message -p '#{pane_pid}')"
wait_for "the shell is back after SIGTERM" shows '[$#] *$'
key 'stty -a | grep -o " [-]*echo " | tr -d " "; echo end' Enter
wait_shows '^end$'
shows '^echo$' || fail "the terminal does not echo: $(screen)"
in_tmux kill-server
kill $light && wait $light || true
stop
cat /tmp/top-80x24
