//! Who is at the other end of the control socket.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use anyhow::{Result, ensure};

use super::protocol::SOCKET;

/// The process that listens on the control socket, if one does.
pub fn holder() -> Option<i32> {
    let stream = UnixStream::connect(SOCKET).ok()?;
    peer(&stream).ok().map(|peer| peer.pid)
}

/// The error of a start where the agent `pid` runs.
pub fn runs_already(pid: i32) -> String {
    format!(
        "scx_powerpack runs already, process {pid}: stop it first, or switch it with 'scx_powerpack mode'"
    )
}

/// The process at the other end and its user. Fails if the kernel does not know.
pub fn peer(stream: &UnixStream) -> Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: a valid descriptor, and a buffer of that size.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    ensure!(status == 0, "cannot find out who is asking: {}", std::io::Error::last_os_error());
    Ok(peer)
}
