//! The screen. Pure: it draws a model, and corrects in it what was scrolled too far.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::cpus;
use super::model::{Model, Rates, Sample, Task, in_cpus};
use super::text::{clip, cpu_state, digits, percentile, rate, uptime, watts};
use crate::control::status::Status;
use crate::settings::policy::Pack;

/// Less than this shows nothing useful.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 10;
/// What is above the CPUs.
const HEADER: u16 = 4;
/// The height that is kept for the tasks, with their title, unless the CPUs need all.
const TASKS_MIN: u16 = 5;

const KEYS: &str = "q quit  ? help  p b s e a mode  + - ceiling  Space pause  o sort";

const HELP: &str = "\
p b s e a  mode packing, balance, spread, energy, auto  (root)
+ -        one core more or less may be used        (root)
Space      pause, go on
o          sort the tasks: utilization, CPU, PID, name
Up Down    scroll the tasks
PgUp PgDn  where not all CPUs fit: their bars, page by page
Home       back to the beginning
q Esc ^C   quit

Bars: share of the last second in which the CPU was not idle.
* active set   w3 three tasks wait   ┌└ threads of one core
3200 MHz  C6 80 %   its frequency, its time in its deepest idle state
wake/s  irq/s   how often it left an idle state; its interrupts
package 0 LLC 0  C6 70 %   the package's own idle states
per s: spills are tasks that ran on a surplus CPU because the
active ones were full; set: the active set grew +, shrank -.
wake-up: from being woken until running, for half of all, for
99 of 100, for the slowest.   -  not reported here";

/// Draws all of it.
pub fn draw(frame: &mut Frame, model: &mut Model) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!("too small: {WIDTH_MIN}x{HEIGHT_MIN} at least");
        return frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
    }
    match &model.sample {
        None => nothing_yet(frame, model),
        Some(sample) => {
            (model.page, model.first_task) = known(frame, model, sample);
        }
    }
    if model.help {
        help(frame);
    }
}

fn line(frame: &mut Frame, y: u16, text: impl Into<Line<'static>>) {
    let area = frame.area();
    if y < area.height {
        frame.render_widget(text.into(), Rect { y, height: 1, ..area });
    }
}

/// A line over all the width, to separate sections without colour.
fn title(frame: &mut Frame, y: u16, text: &str) {
    let width = usize::from(frame.area().width);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    line(frame, y, Line::styled(format!("{:<width$}", clip(text, width)), style));
}

fn nothing_yet(frame: &mut Frame, model: &Model) {
    line(frame, 0, concat!("scx_powerpack ", env!("CARGO_PKG_VERSION")));
    let area = frame.area();
    let text = match &model.lost {
        None => "asking the running scheduler".to_owned(),
        Some(why) => format!("{why}\n\ntrying again every second; q quits"),
    };
    let paragraph = Paragraph::new(text).alignment(Alignment::Center).wrap(Wrap { trim: true });
    frame.render_widget(paragraph, Rect { y: area.height / 3, height: area.height / 2, ..area });
}

/// Draws what is known; which page and which first task that was.
fn known(frame: &mut Frame, model: &Model, sample: &Sample) -> (usize, usize) {
    let area = frame.area();
    let (width, status) = (usize::from(area.width), &sample.status);
    for (y, text) in (0..).zip(header(model, sample, width)) {
        line(frame, y, text);
    }
    // But for the title of the CPUs and the last line.
    let room = area.height - HEADER - 2;
    let wanted = room - TASKS_MIN.min(room / 2);
    let layout = cpus::Layout::choose(model, status, width, wanted.into());
    let height = (layout.height(status, width, wanted.into()) as u16).min(room - 1);
    title(frame, HEADER, &layout.legend());
    let of_cpus = Rect { y: HEADER + 1, height, ..area };
    layout.draw(frame, of_cpus, model, status);
    let of_tasks = Rect { y: of_cpus.bottom(), height: room - height, ..area };
    let first_task = tasks(frame, of_tasks, model, status);
    line(frame, area.height - 1, footer(model));
    (layout.page(), first_task)
}

fn header(model: &Model, sample: &Sample, width: usize) -> [Line<'static>; 4] {
    let status = &sample.status;
    let ceiling = match model.ceiling() {
        Some((1, cores)) if cores > 1 => "1 core".to_owned(),
        Some((ceiling, cores)) if ceiling < cores => format!("{ceiling} cores"),
        _ => "all cores".to_owned(),
    };
    let rates = model.rates();
    let rate = |of: fn(&Rates) -> f64| rate(rates.as_ref().map(of));
    let cut = |text: String| Line::raw(clip(&text, width));
    [
        first_line(model, status, width),
        cut(format!(
            "CPUs: {} of {} active, demand {}  ceiling {ceiling}  fill {} %  budget {} ms",
            status.counters.active_cpus,
            status.nr_usable(),
            digits(in_cpus(status.counters.demand)),
            status.fill_pct,
            status.latency_budget_ms
        )),
        cut(format!(
            "per s: spills {}  migrations {}  queued {}  preempts {}  set +{} -{}",
            rate(|rates| rates.spills),
            rate(|rates| rates.migrations),
            rate(|rates| rates.queued),
            rate(|rates| rates.preempts),
            rate(|rates| rates.grown),
            rate(|rates| rates.shrunk)
        )),
        cut(measured(model, sample)),
    ]
}

fn first_line(model: &Model, status: &Status, width: usize) -> Line<'static> {
    let mut left = format!("scx_powerpack {}  {}", status.version, status.mode);
    match (&status.reason, status.auto) {
        (Some(reason), _) => left += &format!(" (auto: {reason})"),
        (None, true) => left += " (auto)",
        (None, false) if status.pack == Pack::Small => left += ", small tasks",
        (None, false) => {}
    }
    let states = [(model.paused, "PAUSED"), (model.read_only, "read-only")];
    let mut right: Vec<String> =
        states.iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()).collect();
    right.push(format!("up {}", uptime(status.uptime_s)));
    let right = right.join("  ");
    let room = width.saturating_sub(right.chars().count() + 2);
    let text = format!("{:<room$}  {right}", clip(&left, room));
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

/// What is measured: wake-ups, and the machine.
fn measured(model: &Model, sample: &Sample) -> String {
    let latency = model.wake_latency();
    let wake_up = |pct| percentile(latency.as_ref(), pct);
    let (frequency, idle) = cpu_state(&model.mean_state());
    format!(
        "wake-up p50 {}  p99 {}  max {}  {}  {frequency}  {idle}",
        wake_up(50.0),
        wake_up(99.0),
        wake_up(100.0),
        watts(sample.machine.power_w)
    )
}

/// The tasks from the one that was scrolled to on; which one that is.
fn tasks(frame: &mut Frame, area: Rect, model: &Model, status: &Status) -> usize {
    let tasks = model.tasks();
    let room = usize::from(area.height).saturating_sub(1);
    let first = model.first_task.min(tasks.len().saturating_sub(room));
    let text = format!(
        "    PID  PROCESS   CPU    UTIL  NAME               busiest tasks, by {}",
        model.sort.title()
    );
    title(frame, area.y, &text);
    let is_active = |number| status.cpus.iter().any(|cpu| cpu.cpu == number && cpu.active);
    for (y, task) in (area.y + 1..area.bottom()).zip(&tasks[first..]) {
        line(frame, y, task_line(task, is_active(task.cpu)));
    }
    first
}

fn task_line(task: &Task, on_active: bool) -> String {
    format!(
        "{:>7}  {:>7}  {}{:>4}  {:>4.0} %  {}",
        task.pid,
        task.tgid,
        if on_active { '*' } else { ' ' },
        task.cpu,
        in_cpus(task.util.into()) * 100.0,
        task.name
    )
}

fn footer(model: &Model) -> Line<'static> {
    match model.message() {
        Some(text) if model.colour => Line::styled(text.to_owned(), Style::new().fg(Color::Cyan)),
        Some(text) => Line::raw(text.to_owned()),
        None => Line::raw(KEYS),
    }
}

fn help(frame: &mut Frame) {
    let text = Text::raw(HELP);
    let area = frame.area();
    let (width, height) = (text.width() as u16 + 4, text.height() as u16 + 2);
    let (width, height) = (width.min(area.width), height.min(area.height));
    let (x, y) = ((area.width - width) / 2, (area.height - height) / 2);
    let window = Rect { x, y, width, height };
    frame.render_widget(Clear, window);
    let block = Block::bordered().title(" any key closes this ");
    frame.render_widget(Paragraph::new(text).block(block), window);
}
