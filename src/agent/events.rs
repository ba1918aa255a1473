//! What wakes the agent from services: signals, the configuration file, the desktop's power
//! profile, clients.

use std::io::{self, IsTerminal};

use anyhow::Result;
use crossbeam::channel::Sender;
use signal_hook::consts::SIGHUP;

use crate::agent::power_profile::Desktop;
use crate::control::protocol::{Reply, Request};
use crate::signals::hear_signals;

/// A request on its way to the agent, with where the reply goes.
pub type Call = (Request, Sender<Reply>);

/// News for the agent.
pub enum Event {
    /// SIGINT or SIGTERM: the user wants the kernel's scheduler back.
    Stop,
    /// SIGHUP.
    Reload,
    /// The configuration file says something else now.
    ConfigChanged,
    /// The desktop has changed its power profile, or a service of it comes or goes.
    Desktop(Desktop),
    /// A client asks.
    Call(Call),
}

/// Sends what signals say. Fails if the kernel lets us not handle them.
pub fn watch_signals(events: Sender<Event>) -> Result<()> {
    let had_terminal = io::stdin().is_terminal();
    hear_signals(move |signal| {
        // A terminal that closes sends SIGHUP too: nobody is left to stop us.
        let hung_up = had_terminal && !io::stdin().is_terminal();
        let event = match signal {
            SIGHUP if !hung_up => Event::Reload,
            _ => Event::Stop,
        };
        // An agent that has ended needs no signals.
        let _ = events.send(event);
    })
}
