#!/bin/sh
# Runs scx_powerpack in a container, with the arguments that it is given. Kubernetes starts a container again
# however it ended; but after SysRq-S, or as a task had not run for 20 s (exit status 4), nobody is to load the
# scheduler again. Then this goes on without one, also as the container is started again, until the pod is deleted.
# scx_powerpack-run --is-alive: for the liveness probe.
set -u
# In a volume of the pod, as containers do not keep files.
marker=${MARKER:-/run/scx_powerpack.ended}

stay_away() {
	sleep infinity &
	trap 'kill $!; exit 0' TERM INT
	echo "scx_powerpack is not loaded again, as the kernel had to end it: delete this pod to have it loaded again" >&2
	wait $!
}

if [ "${1-}" = --is-alive ]; then
	# Who stays away is well.
	[ -e "$marker" ] || exec scx_powerpack status >/dev/null
	exit 0
fi
[ ! -e "$marker" ] || stay_away

scx_powerpack "$@" &
child=$!
trap 'kill -TERM $child; signalled=yes' TERM INT
trap 'kill -HUP $child; signalled=yes' HUP
# A signal ends wait, not the child. 127: its status is known already.
status=0 signalled=yes
while [ -n "$signalled" ]; do
	signalled=''
	wait $child
	waited=$?
	[ $waited = 127 ] || status=$waited
done
[ $status = 4 ] || exit $status
: >"$marker"
stay_away
