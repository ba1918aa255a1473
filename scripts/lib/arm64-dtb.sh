#!/usr/bin/env bash
# arm64-dtb.sh FILE CPUS CPUS-PER-CACHE DESCRIPTION OPTION..: the device tree of QEMU's machine with these
# options, and what it lacks: caches, of which CPUS-PER-CACHE CPUs each share the last one, and, where
# DESCRIPTION is that of a machine (powerlab=.., tests/powerlab/driver/config.c), its name and
# how much each CPU does at one MHz. The kernel takes capacities from that and the frequencies.
set -euo pipefail
file=$1 cpus=$2 sharing=$3 description=$4
shift 4

# A line for each CPU, how much it does at one MHz, of machine $description: its capacity by its
# highest frequency, rounded up, since the kernel rounds down. In such units that it is precise.
dmips_of_cpus() {
	awk -v RS=/ -F: -v kinds=0 '
		$1 == "k" {
			points = split($7, point, ",")
			split(point[points], highest, "+")
			dmips[kinds] = int($3 * 500000 / highest[1]) + ($3 * 500000 % highest[1] > 0)
			threads[kinds++] = $4
		}
		$1 == "l" { for (i = 0; i < $3 * threads[$2]; i++) print dmips[$2] }' <<<"$description"
}

cache() { echo "compatible = \"cache\"; cache-level = <$1>; cache-unified; cache-size = <$2>; cache-line-size = <64>; cache-sets = <$(($2 / 64 / 16))>;"; }

additions() {
	local cpu llc dmips=()
	[ -z "$description" ] || mapfile -t dmips < <(dmips_of_cpus)
	echo '/ {'
	[ -z "$description" ] || echo "model = \"$(cut -d: -f2 <<<"$description")\";"
	echo 'cpus {'
	for ((llc = 0; llc * sharing < cpus; llc++)); do
		echo "llc$llc: llc-$llc { $(cache 3 $((4 << 20))) };"
	done
	for ((cpu = 0; cpu < cpus; cpu++)); do
		echo "l2_$cpu: l2-$cpu { $(cache 2 $((256 << 10))) next-level-cache = <&llc$((cpu / sharing))>; };"
		echo "cpu@$cpu { next-level-cache = <&l2_$cpu>; ${dmips:+capacity-dmips-mhz = <${dmips[cpu]}>;} };"
	done
	echo '}; };'
}

qemu-system-aarch64 -nodefaults "$@" -M "dumpdtb=$file.qemu" -display none 2>/dev/null
{ dtc -q -I dtb -O dts "$file.qemu" && additions; } | dtc -q -I dts -O dtb -o "$file"
rm "$file.qemu"
