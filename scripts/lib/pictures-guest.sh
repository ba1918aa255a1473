#!/usr/bin/env bash
# In the VM: the screen of `scx_powerpack top` under a load, with colours, in $1/screen, $2 columns
# and $3 lines; a benchmark of the same load in $1/report.
set -euo pipefail
out=$1 columns=$2 lines=$3
export TERM=xterm-256color LC_ALL=C.UTF-8
in_tmux() { tmux -u -S /tmp/tmux.sock "$@"; }

scx_powerpack bench --suite workload/files/light.toml --against eevdf,packing,spread --out "$out/report" >&2
scx_powerpack --mode packing >/tmp/agent.log 2>&1 &
agent=$!
until grep -q attached /tmp/agent.log; do
	kill -0 $agent || { cat /tmp/agent.log && exit 1; }
	sleep 0.1
done
powerpack-load workload --seconds 30 light >/tmp/load.json &
in_tmux -f /dev/null new-session -d -x "$columns" -y "$lines" 'scx_powerpack top'
# Some rounds, so that its averages are those of the load.
for _ in $(seq 100); do
	sleep 0.2
	! in_tmux capture-pane -p | grep -q '0 █.* [1-9][0-9]* %' || break
done
sleep 8
in_tmux capture-pane -e -p >"$out/screen"
grep -q powerpack-load "$out/screen"
kill -INT $agent
wait $agent
