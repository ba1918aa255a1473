//! What is sent to systemd, if it has started us: ready, reloading, stopping, alive.

use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::time::Duration;

use log::debug;
use sd_notify::NotifyState;

/// Notifies it; without systemd nothing happens.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(err) = sd_notify::notify(states) {
        debug!("cannot notify systemd: {err}");
    }
}

/// The scheduler is attached, or a reload has ended; `status` is shown by `systemctl status`.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Something has changed that is shown.
pub fn status(status: &str) {
    notify(&[NotifyState::Status(status)]);
}

/// The configuration is being read again; [`ready`] ends it.
pub fn reloading() {
    let now = NotifyState::monotonic_usec_now();
    notify(&[Some(NotifyState::Reloading), now.ok()].into_iter().flatten().collect::<Vec<_>>());
}

/// The scheduler is about to be detached.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// The agent's loop goes round.
pub fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// The socket for metrics that it has opened for us, if the user wants that.
pub fn metrics_socket() -> Option<TcpListener> {
    let fd = sd_notify::listen_fds().ok()?.next()?;
    // SAFETY: systemd has opened it for this process, and nobody else here takes it.
    Some(unsafe { TcpListener::from_raw_fd(fd) })
}

/// How often systemd wants to hear that: at half of the time after which it gives us up, as
/// sd_watchdog_enabled(3) recommends. `None`: it does not.
pub fn heartbeat() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}
