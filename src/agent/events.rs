//! What wakes the agent from services: signals, the configuration file, the desktop's power
//! profile, clients.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam::channel::{Receiver, Sender, bounded};
use signal_hook::consts::SIGHUP;

use crate::agent::power_profile::Desktop;
use crate::control::protocol::{Reply, Request, TIMEOUT};
use crate::signals::hear_signals;

/// Less than the [`TIMEOUT`] after which the client has been sent an error, so that what takes a while is in time.
const CALL_TIMEOUT: Duration = TIMEOUT.saturating_sub(Duration::from_secs(1));

/// A request on its way to the agent, with where the reply goes.
pub struct Call {
    pub request: Request,
    pub reply: Sender<Reply>,
    /// From then on it is too late: nothing may change after the client has been sent an error.
    until: Instant,
}

impl Call {
    /// A request that has come just now, and where its reply will be.
    pub fn new(request: Request) -> (Self, Receiver<Reply>) {
        let (reply, receiver) = bounded(1);
        (Call { request, reply, until: Instant::now() + CALL_TIMEOUT }, receiver)
    }

    /// Whether nobody waits for it any more at `now`.
    pub fn is_late(&self, now: Instant) -> bool {
        now >= self.until
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_late_before_its_client_has_given_up() {
        let now = Instant::now();
        let (call, _) = Call::new(Request::Status);
        assert!(!call.is_late(now + TIMEOUT / 2));
        assert!(call.is_late(Instant::now() + CALL_TIMEOUT) && CALL_TIMEOUT < TIMEOUT);
    }
}
