#!/usr/bin/env bash
# Energies by hand for three schedules, from the machine's file (chromebook2): how long each core was in
# which state times what that takes, at the frequency that was set. The truth must agree within 1 %,
# the zone of powercap and the battery with it; and the times with the kernel's own.
# machine: chromebook2
. "$(dirname "$0")/lib.bash"

ZONE=/sys/class/powercap/intel-rapl:0/energy_uj

# Lines "unit nth nj" and "CPU state us usage", and the time. All CPUs are woken before: the kernel counts an
# idle state when it is left, which a CPU with nothing to do may do after seconds.
look() {
	local cpu
	for cpu in {0..7}; do taskset -c "$cpu" true; done
	cat $TRUTH
	echo "zone $(<$ZONE)"
	grep . $CPUS/cpu*/cpuidle/state*/{time,usage} |
		sed 's|.*/cpu\([0-9]*\)/cpuidle/state\([0-9]*\)/\([a-z]*\):|idle \1 \2 \3 |'
}

# By hand, what the cores have used between /tmp/before and /tmp/after (nJ): $1, $2 is the power (mW)
# of an A7 and an A15 at the frequencies that are set.
cores_by_hand() {
	awk -v a7="$1" -v a15="$2" '
		BEGIN { mw["a7", "WFI"] = 12; mw["a7", "off"] = 1; mw["a7", "awake"] = a7
			mw["a15", "WFI"] = 134; mw["a15", "off"] = 10; mw["a15", "awake"] = a15 }
		{ sign = FILENAME == "/tmp/before" ? -1 : 1 }
		$1 == "core" {
			kind = $2 < 4 ? "a7" : "a15"
			for (i = 5; i < NF; i += 2) {
				state = substr($i, 1, length($i) - 3)
				sum += sign * $(i + 1) / 1000 * mw[kind, state]
			}
		}
		END { printf "%.0f", sum }' /tmp/before /tmp/after
}

# The time (us) that the CPUs were in state $1, as the driver has it, and as the kernel counts it: from
# before it falls asleep to when it has woken, the exit latency $3 (us) with it; states $2 of cpuidle.
times_agree() {
	local both
	both=$(awk -v state="$1_ns" -v states=" $2 " -v exit_us="$3" '
		{ sign = FILENAME == "/tmp/before" ? -1 : 1 }
		$1 == "core" { for (i = 5; i < NF; i += 2) if ($i == state) sum += sign * $(i + 1) / 1000 }
		$1 == "idle" && index(states, " " $3 " ") {
			kernel += sign * ($4 == "time" ? $5 : -exit_us * $5)
		}
		END { printf "%.0f %.0f", sum, kernel }' /tmp/before /tmp/after)
	# shellcheck disable=SC2086 # two numbers
	set -- $1 $both
	within "$2" "$3" 3 "time in $1 (us)"
}

# What has passed between: of "nj" of all $1 (core, cluster), or "ns" of the machine, or "uj" of the zone.
passed() {
	awk -v what="$1" '
		{ sign = FILENAME == "/tmp/before" ? -1 : 1 }
		$1 == what && $3 == "nj" { sum += sign * $4 }
		what == "ns" && $1 == "machine" { sum += sign * $4 }
		what == "zone" && $1 == "zone" { sum += sign * $2 }
		END { printf "%.0f", sum }' /tmp/before /tmp/after
}

# Look before and after COMMAND..
measure() {
	nap 0.3
	look >/tmp/before
	"$@" >/dev/null
	nap 0.01
	look >/tmp/after
}

# The zone says the same of all that the truth does.
zone_agrees() {
	within "$(passed zone)" "$((($(passed core) + $(passed cluster) + $(passed package)) / 1000))" 1 "zone (uJ)"
}

load() { powerpack-load hogs --count 1 --pin "$1" --seconds "$2"; }

echo "1: one A15 computes at 1000 MHz; idle CPUs in WFI alone, so that clusters stay on"
set_mhz 0 500
set_mhz 4 1000
allow_idle 0
measure load 5 2
within "$(passed core)" "$(cores_by_hand 60 444)" 1 "cores (nJ)"
times_agree WFI 0 1
within "$(passed cluster)" $(($(passed ns) * (40 + 150) / 1000)) 1 "clusters (nJ)"
zone_agrees

echo "2: an A7 and an A15 compute at their highest; idle CPUs as the governor wants"
set_mhz 0 1300
set_mhz 4 2000
allow_idle 2
both() {
	load 2 2 &
	load 6 2
	wait $!
}
measure both
within "$(passed core)" "$(cores_by_hand 214 1202)" 1 "cores (nJ)"
times_agree off "1 2" 500
zone_agrees

echo "3: 4 ms in 20 ms on an A15 at 600 MHz, and nothing else; clusters sleep between"
set_mhz 0 500
set_mhz 4 600
periodic() { taskset -c 4 powerpack-load periodic --seconds 3 4/20; }
measure periodic
within "$(passed core)" "$(cores_by_hand 60 285)" 1 "cores (nJ)"
clusters=$(awk '{ sign = FILENAME == "/tmp/before" ? -1 : 1 }
	$1 == "cluster" { sum += sign * ($6 * ($2 ? 150 : 40) + $8 * ($2 ? 10 : 4)) / 1000 }
	END { printf "%.0f", sum }' /tmp/before /tmp/after)
within "$(passed cluster)" "$clusters" 1 "clusters (nJ)"
# The A15s' cluster is off when the only one at work has chosen so, unless another CPU's timer was too near
# at that instant: at most for that time, and a quarter of it at least.
off=$(awk '{ sign = FILENAME == "/tmp/before" ? -1 : 1 }
	$1 == "cluster" && $2 == 1 { off += sign * $8 / 1000 }
	$1 == "idle" && $2 == 4 && $3 == 2 { chosen += sign * ($4 == "time" ? $5 : -500 * $5) }
	END { printf "%.0f %.0f", off, chosen }' /tmp/before /tmp/after)
echo "the A15s' cluster is off for ${off% *} us, where the CPU at work has chosen that for ${off#* } us"
[ "${off% *}" -le "${off#* }" ] && [ $((4 * ${off% *})) -ge "${off#* }" ] ||
	fail "the A15s' cluster is off for ${off% *} us, of ${off#* } us that the CPU at work has chosen"
zone_agrees

echo "the battery discharges by it"
battery=/sys/class/power_supply/BAT0/energy_now
before=$(<$battery) begin=$(energy_nj)
load 5 2 >/dev/null
spent_uwh=$((before - $(<$battery))) spent_nj=$(($(energy_nj) - begin))
within $spent_uwh $((spent_nj / 3600000)) 3 "battery (uWh)"
