#!/usr/bin/env bash
# Interrupts that follow the active set, on this machine's own: those that may move may come to no surplus CPU,
# and what was there is back when all CPUs are active, when it ends, and after a kill.
# only: 7
# vm: --virtual-time
. "$(dirname "$0")/lib.bash"

# Those of devices that may be moved: what the kernel spreads itself refuses to be written.
irqs=''
for dir in /proc/irq/*/*/; do
	irq=$(basename "$(dirname "$dir")")
	{ echo "$(</proc/irq/$irq/smp_affinity_list)" >/proc/irq/"$irq"/smp_affinity_list; } 2>/dev/null || continue
	irqs+="$irq "
done
affinities() { for irq in $irqs; do echo "$irq: $(</proc/irq/$irq/smp_affinity_list)"; done; }

# Interrupts that may come to CPU 2 or 3: bound to those, or free to come anywhere and there now.
strays() {
	local irq
	for irq in $irqs; do
		case $(</proc/irq/$irq/smp_affinity_list)/$(</proc/irq/$irq/effective_affinity_list) in
		[01]/* | 0-3/[01]) ;;
		*) echo "$irq" ;;
		esac
	done
}
[ -n "$(strays)" ] || skip "no interrupt that may be moved comes to CPU 2 or 3"

# All must come to CPUs 0 and 1.
are_moved() {
	local i
	for i in $(seq 300); do
		[ -n "$(strays)" ] || return 0
		nap 0.1
	done
	fail "$(strays) may come to surplus CPUs: $(affinities) ($i looks)"
}

# Each may come where it might in the beginning.
are_back() {
	local i
	for i in $(seq 300); do
		[ "$(affinities)" != "$before" ] || return 0
		nap 0.1
	done
	fail "not put back: $(affinities), not $before ($i looks)"
}

echo "one that somebody has bound stays"
bound=${irqs%% *}
irqs=${irqs#* }
echo 2 >/proc/irq/"$bound"/smp_affinity_list
before=$(affinities)

echo "on the active CPUs"
start --mode packing --irqs follow --max-cores 2
are_moved
[ "$(</proc/irq/"$bound"/smp_affinity_list)" = 2 ] || fail "the one that was bound is at $(</proc/irq/"$bound"/smp_affinity_list)"
scx_powerpack mode spread --max-cores all >/dev/null
are_back
scx_powerpack mode packing --max-cores 2 >/dev/null
are_moved
echo "after the CPU that they come to has gone and come back, as in a suspend"
# In spread they come to both CPUs.
scx_powerpack mode spread --max-cores 2 >/dev/null
for _ in $(seq 300); do
	! affinities | grep -q ': 1$' || break
	nap 0.1
done
echo 0 >/sys/devices/system/cpu/cpu1/online
echo 1 >/sys/devices/system/cpu/cpu1/online
[ -n "$(strays)" ] || fail "the kernel has left interrupts at a CPU that went"
are_moved
stop
are_back

echo "killed: the next one puts them back"
start --mode packing --irqs follow --max-cores 2
are_moved
stop KILL 137
start --mode spread --irqs follow
are_back
stop

echo "beside irqbalance"
cp "$(command -v sleep)" /tmp/irqbalance
printf 'mode = "packing"\n[policy]\nmax_cores = 99\n[hints]\nirqs = "follow"\n' >/tmp/irqs.toml
# Who is not root moves none, whatever the process is called.
setpriv --reuid 65534 --clear-groups /tmp/irqbalance 1000 &
other=$!
nap 0.2
! scx_powerpack config check --config /tmp/irqs.toml | grep 'irqbalance runs' || fail "it heeds a process of nobody's"
kill $other
wait $other || true
/tmp/irqbalance 1000 &
balancer=$!
refused 'irqbalance runs' scx_powerpack --irqs follow
scx_powerpack config check --config /tmp/irqs.toml | grep -q 'irqbalance runs' || fail "config check does not say so"
start --config /tmp/irqs.toml
for said in 'irqbalance runs' 'max_cores 99 is more than the 4 cores'; do
	grep -q "$said" $LOG || fail "not said as it starts: $said"
done
[[ $(scx_powerpack reload) == packing* ]] || fail "irqbalance is in the way of a reload"
[ "$(grep -c 'irqbalance' $LOG)" = 1 ] || fail "it is said again: $(<$LOG)"
nap 12
[ "$(affinities)" = "$before" ] || fail "moved beside irqbalance: $(affinities)"
stop
kill $balancer
