//! The timer of held tasks (`src/bpf/throttle.bpf.h`) on `PREEMPT_RT` kernels, where BPF programs have none:
//! a thread that sleeps until a queue of them is due.

use std::io::{PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use crossbeam::channel::{Receiver, Sender, bounded};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder, libbpf_sys};

use super::bpf_skel::BpfSkel;

/// The thread ends when this is dropped: its end of the pipe hangs up then.
pub struct HeldTimer {
    _hangs_up: PipeWriter,
    failure: Receiver<Error>,
}

impl HeldTimer {
    /// Starts the thread for a scheduler that is loaded. Fails if it has not what it needs to serve.
    pub fn start(skel: &BpfSkel<'_>) -> Result<Self> {
        Self::begin(skel).context("cannot release throttled tasks")
    }

    fn begin(skel: &BpfSkel<'_>) -> Result<Self> {
        let program = skel.progs.release_due.as_fd().try_clone_to_owned()?;
        let ring = MapHandle::try_from(&skel.maps.held_ring)?;
        let (ended, hangs_up) = pipe()?;
        let (ready, is_ready) = bounded(1);
        let (failed, failure) = bounded(1);
        thread::Builder::new()
            .name("held-timer".into())
            .spawn(move || {
                if let Err(err) = serve(&program, &ring, &ended, ready) {
                    let _ = failed.send(err);
                }
            })
            .context("cannot start a thread")?;
        if is_ready.recv().is_err() {
            return Err(failure.recv().unwrap_or_else(|_| anyhow!("its thread has ended")));
        }
        Ok(HeldTimer { _hangs_up: hangs_up, failure })
    }

    /// Says why it has ended, should it do so: nobody releases throttled tasks then.
    pub fn failure(&self) -> Receiver<Error> {
        self.failure.clone()
    }
}

/// Releases what is due, again and again, until the other end of the pipe hangs up. `ready`: it will.
fn serve(program: &OwnedFd, ring: &MapHandle, ended: &PipeReader, ready: Sender<()>) -> Result<()> {
    let mut builder = RingBufferBuilder::new();
    // That there is news is all that counts: the program finds out what is due.
    builder.add(ring, |_| 0)?;
    let ring: RingBuffer<'_> = builder.build()?;
    ready.send(())?;
    loop {
        ring.consume()?;
        let next = release_due(program)?;
        if wait(&[ring.epoll_fd(), ended.as_raw_fd()], next) {
            return Ok(());
        }
    }
}

/// In how long to look again; `None`: when the ring says so.
fn release_due(program: &OwnedFd) -> Result<Option<Duration>> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ..Default::default()
    };
    // SAFETY: a program of ours that takes no arguments, and options of the size that they name.
    let status =
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if status != 0 {
        return Err(std::io::Error::from_raw_os_error(-status)).context("cannot release them");
    }
    Ok((options.retval != 0).then(|| Duration::from_micros(options.retval.into())))
}

/// Sleeps until the first of `fds` is readable, or for that long; true if the second one hung up.
fn wait(fds: &[RawFd; 2], limit: Option<Duration>) -> bool {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: two valid entries, and a limit that lives until the call is over. Whatever it returns,
    // the program is asked again.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, limit, std::ptr::null()) };
    polled[1].revents & libc::POLLHUP != 0
}
