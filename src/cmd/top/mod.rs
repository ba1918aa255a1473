//! `scx_powerpack top`: the running scheduler, live. This file: the terminal, and what
//! happens when.

mod ask;
mod cpu_states;
mod cpus;
mod keys;
mod model;
#[cfg(test)]
pub mod tests;
mod text;
mod view;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, after, bounded, never, select, unbounded};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::signals::hear_signals;
use ask::{Command, Update};
use keys::Action;
use model::Model;

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// From the first look to the second, which is the first with differences.
const FIRST_INTERVAL: Duration = Duration::from_millis(300);

/// Shows the running scheduler until the user has seen enough. Fails without a terminal.
pub fn run() -> Result<()> {
    if !io::stdout().is_terminal() {
        bail!("top needs a terminal: use 'scx_powerpack status'");
    }
    let (stop, stopped) = bounded(1);
    hear_signals(move |_| {
        // Once is enough.
        let _ = stop.try_send(());
    })?;
    let (commands, updates) = ask::start()?;
    // SAFETY: has no preconditions.
    let read_only = unsafe { libc::geteuid() } != 0;
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // It restores the terminal in case of a panic, too.
    let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
    let ended = hear_keys().and_then(|events| {
        let mut screen = Screen { model: Model::new(read_only, colour), commands, updates, events };
        screen.run(&mut terminal, &stopped)
    });
    ratatui::restore();
    ended
}

/// Reads the keyboard for as long as there is one.
fn hear_keys() -> Result<Receiver<Event>> {
    let (sender, events) = unbounded();
    let body = move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".into()).spawn(body).context("cannot start a thread")?;
    Ok(events)
}

/// What is shown, and where it comes from.
struct Screen {
    model: Model,
    commands: Sender<Command>,
    updates: Receiver<Update>,
    events: Receiver<Event>,
}

impl Screen {
    fn run(&mut self, terminal: &mut DefaultTerminal, stopped: &Receiver<()>) -> Result<()> {
        self.commands.send(Command::Look)?;
        let mut next_look = never();
        loop {
            terminal
                .draw(|frame| view::draw(frame, &mut self.model))
                .context("cannot write to this terminal")?;
            select! {
                recv(stopped) -> _ => return Ok(()),
                recv(next_look) -> _ => {
                    next_look = never();
                    if !self.model.paused {
                        self.commands.send(Command::Look)?;
                    }
                }
                recv(self.updates) -> updates => match updates? {
                    Update::Looked(looked) => {
                        self.model.learn(*looked);
                        next_look = self.until_next_look();
                    }
                    Update::Set(outcome) => {
                        self.model.answered(outcome);
                        self.commands.send(Command::Look)?;
                    }
                },
                recv(self.events) -> event => match self.happened(&event.context("the keyboard is gone")?) {
                    Action::Quit => return Ok(()),
                    Action::Look => self.commands.send(Command::Look)?,
                    Action::Ask(request) => self.commands.send(Command::Set(request))?,
                    Action::None => {}
                },
            }
        }
    }

    fn until_next_look(&self) -> Receiver<Instant> {
        match &self.model {
            model if model.paused => never(),
            model if model.sample.is_some() && !model.has_rates() => after(FIRST_INTERVAL),
            _ => after(INTERVAL),
        }
    }

    /// A change of the size needs no more than being drawn.
    fn happened(&mut self, event: &Event) -> Action {
        match event {
            Event::Key(key) => keys::pressed(&mut self.model, *key),
            _ => Action::None,
        }
    }
}
