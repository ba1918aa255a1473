//! Starting a thread.

use std::thread::{Builder, JoinHandle};

use anyhow::{Context, Result};

/// Starts a thread that does `work`. Fails with what to raise where the kernel allows no more of them.
pub fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).context(
        "no thread can be started any more: ask for fewer tasks, or allow more (kernel.threads-max, pids.max of the \
         cgroup, ulimit -u and -v)",
    )
}
