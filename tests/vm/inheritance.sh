#!/usr/bin/env bash
# A task with a lock that a real-time task waits for has that one's priority until it lets go of it, some hundred
# times a second. Beside a hog on its CPU it has its share all the same.
# also: debian-7-rt
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

shares() {
	python3 - <<'PYTHON'
import ctypes, mmap, os, signal, time

libc = ctypes.CDLL(None, use_errno=True)
shared = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))
attr = ctypes.create_string_buffer(64)
libc.pthread_mutexattr_init(attr)
libc.pthread_mutexattr_setpshared(attr, 1)   # PTHREAD_PROCESS_SHARED
assert libc.pthread_mutexattr_setprotocol(attr, 1) == 0  # PTHREAD_PRIO_INHERIT
mutex = ctypes.c_void_p(at)
assert libc.pthread_mutex_init(mutex, attr) == 0

def spin(us):
    end = time.thread_time_ns() + us * 1000
    while time.thread_time_ns() < end:
        pass

def holder():
    while True:
        libc.pthread_mutex_lock(mutex)
        spin(50)
        libc.pthread_mutex_unlock(mutex)

def hog():
    while True:
        spin(1000)

def realtime():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    while True:
        time.sleep(0.003)
        libc.pthread_mutex_lock(mutex)
        libc.pthread_mutex_unlock(mutex)

def begin(body, cpu):
    pid = os.fork()
    if not pid:
        os.sched_setaffinity(0, [cpu])
        body()
    return pid

pids = [begin(holder, 1), begin(hog, 1), begin(realtime, 0)]
ran_ms = lambda pid: int(open(f"/proc/{pid}/schedstat").read().split()[0]) / 1e6
time.sleep(1)
before = [ran_ms(pid) for pid in pids]
time.sleep(5)
ran = [ran_ms(pid) - was for pid, was in zip(pids, before)]
for pid in pids:
    os.kill(pid, signal.SIGKILL)
print("one whose lock a real-time task waits for ran %.0f ms, another %.0f, the real-time one %.0f" % tuple(ran))
assert ran[0] > 0.45 * (ran[0] + ran[1]), "it has less than its share"
assert ran[0] < 0.55 * (ran[0] + ran[1]), "it has more than its share"
PYTHON
}

start --mode packing
shares || fail "a task with a lock that a real-time task waits for, beside a hog"
stop
