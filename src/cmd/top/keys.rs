//! What the keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::Model;
use crate::control::protocol::Request;
use crate::settings::policy::{Choice, MaxCores, Mode, PolicyArgs};

/// Users who may not switch see why.
const READ_ONLY: &str = "read-only: run it with sudo to switch";

/// What is to be done beside showing the model again.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    None,
    Quit,
    /// Look now.
    Look,
    Ask(Request),
}

/// Does what the key asks for.
pub fn pressed(model: &mut Model, key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::None;
    }
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        return Action::Quit;
    }
    model.forget_message();
    if std::mem::take(&mut model.help) {
        return if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None };
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
        KeyCode::Char('?' | 'h') => model.help = true,
        KeyCode::Char('o') => model.sort = model.sort.next(),
        KeyCode::Char(' ') => {
            model.paused = !model.paused;
            return if model.paused { Action::None } else { Action::Look };
        }
        KeyCode::Char('p') => return switch(model, Choice::Fixed(Mode::Packing)),
        KeyCode::Char('b') => return switch(model, Choice::Fixed(Mode::Balance)),
        KeyCode::Char('s') => return switch(model, Choice::Fixed(Mode::Spread)),
        KeyCode::Char('e') => return switch(model, Choice::Fixed(Mode::Energy)),
        KeyCode::Char('a') => return switch(model, Choice::Auto),
        KeyCode::Char('+' | '=') => return move_ceiling(model, 1),
        KeyCode::Char('-') => return move_ceiling(model, -1),
        code => scroll(model, code),
    }
    Action::None
}

/// The screen, which knows how much fits, corrects what is too far.
fn scroll(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Up => model.first_task = model.first_task.saturating_sub(1),
        KeyCode::Down => model.first_task += 1,
        KeyCode::PageUp => model.page = model.page.saturating_sub(1),
        KeyCode::PageDown => model.page += 1,
        KeyCode::Home => (model.page, model.first_task) = (0, 0),
        _ => {}
    }
}

fn switch(model: &mut Model, choice: Choice) -> Action {
    ask(model, None, Some(choice), PolicyArgs::default())
}

/// A core more or less.
fn move_ceiling(model: &mut Model, by: isize) -> Action {
    let Some((ceiling, cores)) = model.ceiling() else { return Action::None };
    let wanted = ceiling.saturating_add_signed(by).clamp(1, cores.max(1));
    if wanted == ceiling {
        model.say(if by < 0 { "one core is the minimum" } else { "all cores may be used" }.into());
        return Action::None;
    }
    let max_cores = Some(if wanted == cores { MaxCores::All } else { MaxCores::Cores(wanted) });
    ask(model, Some(wanted), None, PolicyArgs { max_cores, ..PolicyArgs::default() })
}

fn ask(
    model: &mut Model,
    cores: Option<usize>,
    mode: Option<Choice>,
    policy: PolicyArgs,
) -> Action {
    if model.read_only {
        model.say(READ_ONLY.into());
        return Action::None;
    }
    if model.sample.is_none() {
        return Action::None;
    }
    model.requested(cores);
    Action::Ask(Request::SetPolicy { mode, policy })
}
