#!/usr/bin/env bash
# In the VM: loads that no file of workload/files/ describes, under each of the schedulers
# $3.., with the C files of $2 to compile; lines of JSON go to $1.
set -euo pipefail
out=$1 sources=$2
shift 2
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/schedulers.bash"

emit() { printf '{"name":"%s","sched":"%s","%s":%s}\n' "$name" "$sched" "$1" "$2" >>"$out"; }
failed() { emit failed "\"$(printf '%s' "$1" | tr -d '"\134' | tr -s '[:cntrl:]' ' ')\""; }

# A root in memory: who opens a file of the host's waits for the host, of which virtual
# time knows nothing.
root=/tmp/root
mkdir -p $root/bin
cp /bin/dash /bin/true $root/bin
ldd /bin/dash /bin/true | grep -o '/[^ :]*\.so[^ ]*' | sort -u | xargs cp -L --parents -t $root

# Many short-lived tasks, one after the other.
shell_loop() {
	powerpack-load command -- chroot $root /bin/dash -c \
		'i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done'
}

# Fork-join: a parallel build.
build() {
	powerpack-load command -- sh -c "ls $sources/*.c | xargs -P 8 -I{} cc -O1 -c {} -o /dev/null"
}

# Producers and consumers.
pipeline() { powerpack-load command -- sh -c 'head -c 64M /dev/zero | tr "\0" a | gzip -1 | wc -c'; }

# From 5 to 95 % of the machine and back: the step, from its first moment.
step() {
	powerpack-load periodic --seconds 4 '2/20*4' >/dev/null &
	nap 1
	powerpack-load periodic --seconds 2 --phases even '2/20*72'
	wait $!
}

# A hog among small tasks. It sleeps now and then, as the kernel counts run time only then.
hog() { powerpack-load periodic --seconds 5 --settle 1 --phases even '0.5/20*8' 95/100; }

# Real-time tasks take most of two CPUs, the first of the ranks: the others.
real_time() {
	local first
	chrt -f 10 taskset -c 0 powerpack-load periodic --seconds 5 7/10 >/dev/null &
	first=$!
	chrt -f 10 taskset -c 1 powerpack-load periodic --seconds 5 7/10 >/dev/null &
	powerpack-load periodic --seconds 4 --settle 1 --phases even '2/20*8'
	wait $first $!
}

# Tasks pinned to the last CPUs: the free ones.
pinned() {
	taskset -c 6,7 powerpack-load periodic --seconds 5 '2/20*4' >/dev/null &
	powerpack-load periodic --seconds 4 --settle 1 --phases even '2/20*8'
	wait $!
}

sched='' name=kernel
emit result "\"$(uname -r), $(nproc) CPUs\""
for sched in "$@"; do
	name=start
	start_scheduler "$sched" || continue
	for name in shell_loop build pipeline step hog real_time pinned; do
		if result=$($name); then emit result "$result"; else failed "$name"; fi
		nap 1
	done
	stop_scheduler
done
