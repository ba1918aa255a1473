#!/usr/bin/env bash
# In the VM: the soak. Prints a row of a table now and then. Argument: minutes.
. "$TREE/tests/vm/lib.bash"
. "$TREE/scripts/lib/complaints.sh"
minutes=$1
MODES=(packing spread balance energy auto)
config=/tmp/soak.toml
switches=0 reloads=0 hotplugs=0

kb() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$PID/status"; }
descriptors() { find "/proc/$PID/fd" -mindepth 1 | wc -l; }

row() {
	rss_kb=$(kb VmRSS)
	printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$1" "$switches" "$reloads" "$hotplugs" \
		"$rss_kb" "$(kb Threads)" "$(descriptors)" "$(cat $SCX/state)"
}

# What happens in step $1: one a second.
step() {
	local step=$1
	scx_powerpack mode "${MODES[step % ${#MODES[@]}]}" >/dev/null || fail "no switch in step $step"
	switches=$((switches + 1))
	if [ $((step % 10)) = 3 ]; then
		printf 'mode = "packing"\n[policy]\nfill_pct = %d\n' $((60 + step % 40)) >$config
		[ $((step % 20)) = 3 ] || scx_powerpack reload >/dev/null || fail "no reload in step $step"
		reloads=$((reloads + 1))
	fi
	case $((step % 14)) in
	5) echo 0 >/sys/devices/system/cpu/cpu3/online ;;
	12) echo 1 >/sys/devices/system/cpu/cpu3/online && hotplugs=$((hotplugs + 1)) ;;
	esac
	if [ $((step % 60)) = 30 ]; then
		stress-ng --cpu 2 --switch 2 --futex 2 --timeout 1 >/dev/null 2>&1 || true
		scx_powerpack why $$ --count 1 >/dev/null || fail "no answer to why in step $step"
	fi
	[ $((step % 5)) != 0 ] || scx_powerpack status --json >/dev/null || fail "no status"
}

echo 'mode = "packing"' >$config
start --config $config --metrics
loads=$(cat $SCX/enable_seq)
powerpack-load periodic --seconds $((minutes * 60 + 600)) 1/20 0.2/10 5/200 >/dev/null 2>&1 &
load=$!
echo "| minute | switches | reloads | CPUs gone and come | RSS (kB) | threads | descriptors | sched_ext |"
echo "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
begin=$SECONDS now=0 settled_kb=''
while [ $((SECONDS - begin)) -lt $((minutes * 60)) ]; do
	now=$((SECONDS - begin))
	step "$((switches + 1))"
	kill -0 $PID 2>/dev/null || fail "the agent has ended: $(tail -n 3 $LOG)"
	if [ $((now / 300)) -gt "${reported:--1}" ]; then
		reported=$((now / 300))
		row $((now / 60))
		# Everything has happened once by then.
		[ "$reported" != 1 ] || settled_kb=$rss_kb
	fi
	# What took longer is made up for: a switch a second in the mean.
	while [ $((SECONDS - begin)) -lt $switches ]; do sleep 0.1; done
done
row "$minutes"
echo 1 >/sys/devices/system/cpu/cpu3/online 2>/dev/null || true
end_kb=$rss_kb
[ "$(cat $SCX/enable_seq)" = "$loads" ] || fail "it was loaded again: enable_seq $(cat $SCX/enable_seq), not $loads"
settled_kb=${settled_kb:-$end_kb}
change=$(((end_kb - settled_kb) * 1000 / settled_kb))
[ ${change#-} -le 50 ] || fail "RSS went from $settled_kb to $end_kb kB"
kill $load
stop
complaints=$(dmesg | grep -E "$COMPLAINTS" || true)
[ -z "$complaints" ] || fail "the kernel complains: $complaints"
echo "$minutes minutes: RSS $settled_kb kB after five, $end_kb kB at the end; no stall, never loaded again"
