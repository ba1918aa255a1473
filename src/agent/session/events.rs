//! What a session does on an event: a signal, the configuration file, the
//! desktop, a client.

use std::time::Instant;

use log::{debug, error, info};

use super::Session;
use crate::agent::events::Event;
use crate::agent::power_profile::Desktop;
use crate::agent::systemd;
use crate::control::protocol::{Reply, Request};
use crate::settings::config;
use crate::settings::policy::Choice;

impl Session<'_> {
    /// Does what `event` asks for; a client gets its answer.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Stop => {}
            Event::Reload => self.reload_unasked(),
            Event::ConfigChanged => self.note_config(),
            Event::Desktop(desktop) => self.note_desktop(desktop),
            Event::Call(call) if call.is_late(Instant::now()) => {
                debug!("too late: {:?}", call.request)
            }
            // The client may have gone; that is its own affair.
            Event::Call(call) => drop(call.reply.send(self.answer(call.request))),
        }
        self.inform_services();
    }

    /// What a client is sent.
    fn answer(&mut self, request: Request) -> Reply {
        let reply = match request {
            Request::SetPolicy { mode, policy } => self.set_policy(mode, &policy),
            Request::Reload => self.reload(),
            Request::Status => self.full_status(),
            Request::Top { tasks } => self.top(tasks),
            Request::Why { pid, end } => self.why(pid, end),
        };
        reply.unwrap_or_else(|err| Reply::Error(format!("{err:#}")))
    }

    /// Reads the configuration file again, where nobody waits for the outcome: on SIGHUP, and
    /// when it has changed.
    fn reload_unasked(&mut self) {
        systemd::reloading();
        match self.reload() {
            Ok(_) => info!("the configuration was read again"),
            Err(err) => error!("the configuration stays as it was: {err:#}"),
        }
        systemd::ready(&self.summary());
    }

    /// The configuration file has changed, and nobody asks for it to be read: one that says
    /// something else is.
    fn note_config(&mut self) {
        let now = config::text(self.cli.config.as_deref());
        if self.kept.desired.seen_config == now {
            return;
        }
        match self.kept.desired.loss(self.cli) {
            Some(loss) => {
                self.kept.desired.seen_config = now;
                self.kept.reloads.note(false);
                error!("the configuration stays as it was: {loss}");
            }
            None => self.reload_unasked(),
        }
    }

    /// The desktop's power profile has changed, or who sets the energy/performance preference.
    fn note_desktop(&mut self, desktop: Desktop) {
        self.kept.hints.set_defaults(!desktop.sets_epp);
        self.hint();
        self.set_timer();
        let news = std::mem::replace(&mut self.kept.profile, desktop.profile) != desktop.profile;
        if news && self.kept.desired.choice == Choice::Auto {
            self.choose(false);
        }
    }

    /// Latencies are measured while metrics are served: a scrape comes too seldom for a lease. And while modes are
    /// compared, which ends if they suffer.
    /// systemd shows the mode.
    pub(super) fn inform_services(&mut self) {
        let keeps = self.kept.services.serves_metrics() || self.energy.compares();
        if let Err(err) = self.keep_latency(keeps) {
            error!("{err:#}");
        }
        let summary = self.summary();
        self.kept.services.report_status(summary);
    }
}
