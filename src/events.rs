//! What wakes the agent from outside: signals, the configuration file, the desktop's power
//! profile, clients.

use std::io::{self, IsTerminal};
use std::thread;

use anyhow::{Context, Result};
use crossbeam::channel::Sender;
use scx_utils::autopower::PowerProfile;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::Call;

/// News for the agent.
pub enum Event {
    /// SIGINT or SIGTERM: the user wants the kernel's scheduler back.
    Stop,
    /// SIGHUP.
    Reload,
    /// The configuration file says something else now.
    ConfigChanged,
    /// The desktop's power profile is another one now; `Unknown`: nobody tells it any more.
    Profile(PowerProfile),
    /// A client asks.
    Call(Call),
}

/// Sends what signals say. Fails if the kernel lets us not handle them.
pub fn watch_signals(events: Sender<Event>) -> Result<()> {
    let had_terminal = io::stdin().is_terminal();
    hear_signals(move |signal| {
        // The terminal's own end is told by SIGHUP too: nobody is left to stop us.
        let hung_up = had_terminal && !io::stdin().is_terminal();
        let event = match signal {
            SIGHUP if !hung_up => Event::Reload,
            _ => Event::Stop,
        };
        events.send(event).is_ok()
    })
}

/// Calls `heard` with each SIGINT, SIGTERM and SIGHUP from now on, in a thread of its own,
/// until it has heard enough. Fails if the kernel lets us not handle them.
pub fn hear_signals(mut heard: impl FnMut(i32) -> bool + Send + 'static) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || signals.forever().all(&mut heard))
        .context("cannot start a thread for signals")?;
    Ok(())
}
