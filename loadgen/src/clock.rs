//! Time: the wall's, a thread's own, and sleeping on the former.

use std::fs::File;
use std::io::{self, Read};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Result, bail};

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: f64 = 1e6;
/// Nanoseconds in a second.
pub const NS_PER_S: f64 = 1e9;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * NS_PER_S as u64 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC (ns).
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// For how long the machine was suspended since boot (ns), to some microseconds.
pub fn suspended_ns() -> i64 {
    read(libc::CLOCK_BOOTTIME) as i64 - now_ns() as i64
}

/// CPU time of the calling thread (ns).
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Where the laboratory kernel (tests/powerlab/) counts work.
static WORK: LazyLock<Option<File>> = LazyLock::new(|| File::open("/dev/powerlab").ok());

/// Work that the calling thread has done (ns): its CPU time, but where CPUs are only made slow
/// what it would have been on the fastest.
fn thread_work_ns() -> u64 {
    let mut work = [0; 8];
    match WORK.as_ref().map(|mut file| file.read_exact(&mut work)) {
        Some(Ok(())) => u64::from_ne_bytes(work),
        _ => thread_cpu_ns(),
    }
}

/// CPU time of all children that have ended, user and system (s).
pub fn children_cpu_s() -> f64 {
    // SAFETY: plain numbers, and a valid pointer to them; cannot fail for these arguments.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Sleeps until `when_ns` on CLOCK_MONOTONIC.
pub fn sleep_until(when_ns: u64) {
    let time = libc::timespec {
        tv_sec: (when_ns / NS_PER_S as u64) as libc::time_t,
        tv_nsec: (when_ns % NS_PER_S as u64) as libc::c_long,
    };
    // SAFETY: a valid pointer. An interrupted sleep is resumed.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// Pauses the calling thread, so that the kernel counts what it has run: /proc/schedstat is
/// updated when a task stops, and the thread that joins it may go on before it has.
pub fn end_run() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Runs until the calling thread has used `cpu_ns` more of CPU time, on a fast CPU.
pub fn burn(cpu_ns: u64) {
    let end = thread_work_ns() + cpu_ns;
    while thread_work_ns() < end {
        std::hint::spin_loop();
    }
}

/// So much work, always the same: additions that no compiler leaves out.
pub fn work(additions: u64) {
    let mut sum = 0u64;
    for i in 0..additions {
        sum = std::hint::black_box(sum.wrapping_add(i));
    }
}

/// Additions that a CPU of this machine does in a second at its best; two digits of it, so
/// that it is the same the next time. Takes a fifth of a second.
pub fn additions_per_s() -> u64 {
    const ADDITIONS: u64 = 1_000_000;
    let start = now_ns();
    let tries = std::iter::repeat_with(|| {
        let begin = thread_cpu_ns();
        work(ADDITIONS);
        thread_cpu_ns() - begin
    });
    let best_ns = tries.take_while(|_| now_ns() - start < NS_PER_S as u64 / 5).min();
    let per_s = (ADDITIONS as f64 * NS_PER_S / best_ns.unwrap_or(ADDITIONS) as f64) as u64;
    let scale = 10u64.pow(per_s.max(10).ilog10() - 1);
    per_s / scale * scale
}

/// Lets the calling thread's timers fire when they are due: the default slack
/// of 50 us would be measured as latency.
pub fn exact_timers() {
    // SAFETY: sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Keeps the program in memory: a page that has to be read from a file would be measured as
/// latency. Without the permission to lock that much nothing happens.
pub fn lock_memory() {
    // SAFETY: changes what is in memory, not what it holds.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
}

/// Binds the calling thread to `cpus`. Fails when it may run on none of them.
pub fn pin(cpus: &[usize]) -> Result<()> {
    // SAFETY: cpu_set_t is plain bits; CPU_SET checks its range.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if result != 0 {
        bail!("cannot bind to CPUs {cpus:?}: {}", io::Error::last_os_error());
    }
    Ok(())
}

/// Sets the nice value of the calling thread. Fails when root would be needed.
pub fn set_nice(nice: i32) -> Result<()> {
    // SAFETY: changes a number of the calling thread, which is what 0 means.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
        bail!("cannot set the nice value {nice}: {}", io::Error::last_os_error());
    }
    Ok(())
}

/// Makes the calling thread a real-time task (SCHED_FIFO). Fails when root would be needed.
pub fn set_fifo(priority: i32) -> Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: a valid pointer; 0 means the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) } != 0 {
        bail!("cannot be a real-time task: {}", io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loads stand and fall with this: what is requested is burnt, of the
    /// thread's own time, whatever else the machine does.
    #[test]
    fn burning_uses_what_is_asked_for() {
        let begin = thread_cpu_ns();
        burn(50_000_000);
        let used = thread_cpu_ns() - begin;
        assert!((50_000_000..51_000_000).contains(&used), "{used}");
    }
}
