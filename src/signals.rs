//! The signals that end a program, or have it read its settings again.

use std::fmt;
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The exit status after Ctrl-C, as a shell's.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Ctrl-C, as what ends a measurement.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Calls `heard` with each SIGINT, SIGTERM and SIGHUP from now on, in threads of its own;
/// once in a process. Fails if the kernel lets us not handle them.
///
/// Ctrl-C is what every program hears, and `ctrlc` is what hears it in programs of all kinds.
/// It knows no difference between signals: what only a service gets, SIGTERM to stop and SIGHUP
/// to reload, is `signal-hook`'s.
pub fn hear_signals(heard: impl Fn(i32) + Clone + Send + 'static) -> Result<()> {
    let heard_too = heard.clone();
    ctrlc::set_handler(move || heard_too(SIGINT)).context("cannot handle Ctrl-C")?;
    let mut signals = Signals::new([SIGTERM, SIGHUP]).context("cannot handle signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || signals.forever().for_each(heard))
        .context("cannot start a thread for signals")?;
    Ok(())
}
