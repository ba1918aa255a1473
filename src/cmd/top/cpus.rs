//! The CPUs in rank order: a bar each, in as many columns as fit, or, where there are too
//! many, a character each.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::cpu_states::CpuState;
use super::model::Model;
use super::text::{UNKNOWN, clip, cpu_state, rate};
use crate::control::status::{CpuStatus, Status};

/// Below this a column has no room for a bar.
const COLUMN_MIN: usize = 24;
/// A longer bar shows no more.
const COLUMN_MAX: usize = 80;
/// Between columns.
const GAP: usize = 2;
/// Less than this is as good as idle (%).
const IDLE_PCT: f64 = 0.5;
/// What is not a bar in its column: mark, core, number; share; waiting tasks.
const AROUND_BAR: usize = 7 + 6 + 5;
/// A bar that is shorter makes no room for what its CPU reports of itself.
const BAR_MIN: usize = 20;
/// Widths of columns beside the bars.
const FREQUENCY: usize = 10;
const DEEPEST_IDLE: usize = 14;
const RATE: usize = 8;
const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// How the CPUs are shown in a given room.
pub enum Layout {
    /// All of them with bars.
    Bars,
    /// This page of the bars, and the number of pages.
    Page(usize, usize),
    /// A character each, in this many lines.
    Map(usize),
}

impl Layout {
    /// What fits into `width` by `height`, of the page that is wanted or the last one.
    pub fn choose(model: &Model, status: &Status, width: usize, height: usize) -> Self {
        let lines = rows(status).len();
        let capacity = (columns_max(width) * height).max(1);
        let pages = lines.div_ceil(capacity);
        match model.page.min(pages) {
            _ if pages <= 1 => Layout::Bars,
            0 => Layout::Map(map(model, status, width, height).len()),
            page => Layout::Page(page, pages),
        }
    }

    /// Which one it is.
    pub fn page(&self) -> usize {
        if let Layout::Page(page, _) = self { *page } else { 0 }
    }

    /// How many lines it takes, of `height`.
    pub fn height(&self, status: &Status, width: usize, height: usize) -> usize {
        match self {
            Layout::Bars => {
                // As few columns as do.
                let lines = rows(status).len();
                let columns = lines.div_ceil(height.max(1)).clamp(1, columns_max(width));
                lines.div_ceil(columns)
            }
            Layout::Page(..) => height,
            Layout::Map(lines) => *lines,
        }
    }

    /// What the signs mean.
    pub fn legend(&self) -> String {
        match self {
            Layout::Bars => {
                "CPUs in the order in which they are filled   * active  i isolated  w waiting"
                    .into()
            }
            Layout::Page(page, pages) => {
                format!(
                    "CPUs, page {page} of {pages}   * active  i isolated  w waiting   PgUp PgDn"
                )
            }
            Layout::Map(_) => {
                "CPUs ▁█ active  · surplus, o O busy  i isolated  x offline  w waiting  PgDn bars"
                    .into()
            }
        }
    }

    pub fn draw(&self, frame: &mut Frame, area: Rect, model: &Model, status: &Status) {
        let (width, height) = (usize::from(area.width), usize::from(area.height).max(1));
        let rows = match self {
            Layout::Map(_) => return draw_lines(frame, area, map(model, status, width, height)),
            Layout::Bars => rows(status),
            Layout::Page(page, _) => {
                let capacity = columns_max(width) * height;
                rows(status).into_iter().skip((page - 1) * capacity).take(capacity).collect()
            }
        };
        let columns = match self {
            Layout::Bars => rows.len().div_ceil(height).max(1),
            _ => columns_max(width),
        };
        let each = ((width + GAP) / columns).saturating_sub(GAP).min(COLUMN_MAX);
        for (nr, column) in rows.chunks(height).enumerate() {
            let lines = column.iter().map(|row| row.line(model, each)).collect();
            let x = area.x + (nr * (each + GAP)) as u16;
            draw_lines(frame, Rect { x, width: each as u16, ..area }, lines);
        }
    }
}

fn columns_max(width: usize) -> usize {
    ((width + GAP) / (COLUMN_MIN + GAP)).max(1)
}

fn draw_lines(frame: &mut Frame, area: Rect, lines: Vec<Line>) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

/// A line of the bars.
enum Row<'a> {
    /// The last-level cache whose CPUs follow.
    Group(&'a CpuStatus, u32),
    /// A CPU, and the sign of its place in its core.
    Cpu(&'a CpuStatus, char),
}

/// The CPUs by package and last-level cache.
fn groups(status: &Status) -> impl Iterator<Item = &[CpuStatus]> {
    status.cpus.chunk_by(|one, other| (one.package, one.llc) == (other.package, other.llc))
}

/// Tasks that wait for the active CPUs of a last-level cache.
fn waiting(status: &Status, group: &[CpuStatus]) -> u32 {
    status.waiting.get(group[0].llc).copied().unwrap_or(0)
}

fn rows(status: &Status) -> Vec<Row<'_>> {
    let mut rows = vec![];
    for group in groups(status) {
        rows.push(Row::Group(&group[0], waiting(status, group)));
        for core in group.chunk_by(|one, other| one.core == other.core) {
            let last = core.len() - 1;
            rows.extend(core.iter().enumerate().map(|(nr, cpu)| {
                let sign = match nr {
                    _ if last == 0 => ' ',
                    0 => '┌',
                    nr if nr == last => '└',
                    _ => '│',
                };
                Row::Cpu(cpu, sign)
            }));
        }
    }
    rows
}

impl Row<'_> {
    fn line(&self, model: &Model, width: usize) -> Line<'static> {
        match self {
            Row::Group(first, waiting) => {
                let columns = Columns::choose(model, width).titles();
                let room = width.saturating_sub(5 + columns.chars().count());
                let title = format!("package {} LLC {}{}", first.package, first.llc, asleep(model));
                let title = clip(&title, room);
                let title = format!("{title:<room$}{columns}{:>5}", queue(*waiting));
                Line::styled(title, Style::new().add_modifier(Modifier::BOLD))
            }
            Row::Cpu(cpu, sign) => cpu_line(model, cpu, *sign, width),
        }
    }
}

fn cpu_line(model: &Model, cpu: &CpuStatus, sign: char, width: usize) -> Line<'static> {
    let mark = match cpu {
        CpuStatus { isolated: true, .. } => 'i',
        CpuStatus { active: true, .. } => '*',
        _ => ' ',
    };
    let name = format!("{mark}{sign}{:>4} ", cpu.cpu);
    if !cpu.online {
        return Line::raw(name + "offline");
    }
    let room = width.saturating_sub(AROUND_BAR);
    let pct = model.non_idle_pct(cpu.rank);
    let state = Columns::choose(model, width).text(model, cpu.rank);
    let room = room - state.chars().count();
    let halves = (pct.unwrap_or(0.0) / 100.0 * 2.0 * room as f64).round() as usize;
    let bar = "█".repeat(halves / 2) + if halves % 2 == 1 { "▌" } else { "" };
    let share = pct.map_or_else(|| UNKNOWN.into(), |pct| format!("{pct:.0} %"));
    let queue = queue(cpu.waiting);
    Line::from(vec![
        Span::raw(name),
        Span::styled(format!("{bar:<room$}"), busy_style(model, cpu)),
        Span::raw(format!("{share:>6}{state}{queue:>5}")),
    ])
}

/// What the package reports of its own idle states, if there is one package: those that lasted.
fn asleep(model: &Model) -> String {
    let states = model.sample.iter().flat_map(|sample| &sample.machine.package_states);
    let lasted = states.filter(|(_, pct)| *pct >= IDLE_PCT);
    lasted.map(|(name, pct)| format!("  {name} {pct:.0} %")).collect()
}

/// Which columns there are beside the bars: those of which some CPU reports anything, as far as
/// there is room.
struct Columns {
    states: bool,
    wake_ups: bool,
    interrupts: bool,
}

impl Columns {
    fn choose(model: &Model, width: usize) -> Self {
        let cpus = || model.sample.iter().flat_map(|sample| sample.machine.cpus.values());
        let mut room = width.saturating_sub(AROUND_BAR + BAR_MIN);
        let mut take = |is_reported: bool, width: usize| {
            let taken = is_reported && width <= room;
            room -= if taken { width } else { 0 };
            taken
        };
        let has_state = |cpu: &CpuState| cpu.frequency_mhz.is_some() || cpu.deepest_idle.is_some();
        Columns {
            states: take(cpus().any(has_state), FREQUENCY + DEEPEST_IDLE),
            wake_ups: take(cpus().any(|cpu| cpu.wake_ups_per_s.is_some()), RATE),
            interrupts: take(cpus().any(|cpu| cpu.interrupts_per_s.is_some()), RATE),
        }
    }

    fn text(&self, model: &Model, rank: usize) -> String {
        let state = model.cpu_state(rank).unwrap_or_default();
        let (frequency, idle) = cpu_state(&state);
        self.line(
            &format!("{frequency:>FREQUENCY$}{idle:>DEEPEST_IDLE$}"),
            &rate(state.wake_ups_per_s),
            &rate(state.interrupts_per_s),
        )
    }

    fn titles(&self) -> String {
        // Those of the states have their units.
        self.line(&" ".repeat(FREQUENCY + DEEPEST_IDLE), "wake/s", "irq/s")
    }

    fn line(&self, states: &str, wake_ups: &str, interrupts: &str) -> String {
        let mut line = if self.states { states.to_owned() } else { String::new() };
        for (is_there, text) in [(self.wake_ups, wake_ups), (self.interrupts, interrupts)] {
            if is_there {
                line += &format!("{text:>RATE$}");
            }
        }
        line
    }
}

/// Nothing, if no task waits.
fn queue(waiting: u32) -> String {
    if waiting == 0 { String::new() } else { format!("w{waiting}") }
}

/// What surplus CPUs do is what one looks for. Isolated ones are neither.
fn busy_style(model: &Model, cpu: &CpuStatus) -> Style {
    match (model.colour && !cpu.isolated, cpu.active) {
        (false, _) => Style::new(),
        (true, true) => Style::new().fg(Color::Green),
        (true, false) => Style::new().fg(Color::Yellow),
    }
}

/// A character for each CPU. The roomiest form that fits: a block for each last-level cache
/// with a gap between cores; the same without gaps; without anything around.
fn map(model: &Model, status: &Status, width: usize, height: usize) -> Vec<Line<'static>> {
    let spaced = map_of(model, status, width, true);
    let is_wrapped = spaced.len() > groups(status).count();
    if spaced.len() <= height && !is_wrapped {
        return spaced;
    }
    let together = map_of(model, status, width, false);
    if together.len() <= height { together } else { dense_map(model, status, width) }
}

fn dense_map(model: &Model, status: &Status, width: usize) -> Vec<Line<'static>> {
    let mut all: Vec<Span> = vec![];
    for group in groups(status) {
        if !all.is_empty() {
            all.push(Span::raw("|"));
        }
        all.extend(cells(model, group, false));
    }
    all.chunks(width).map(|cells| cells.to_vec().into()).collect()
}

fn map_of(model: &Model, status: &Status, width: usize, spaced: bool) -> Vec<Line<'static>> {
    let title = |group: &[CpuStatus]| format!("p{} L{}", group[0].package, group[0].llc);
    let titles = groups(status).map(|group| title(group).len()).max().unwrap_or(0);
    let all_cells: Vec<Vec<Span>> =
        groups(status).map(|group| cells(model, group, spaced)).collect();
    let largest = all_cells.iter().map(Vec::len).max().unwrap_or(1);
    // The title, what waits, and a space.
    let room = largest.min(width.saturating_sub(titles + 6)).max(1);
    let side_by_side = ((width + GAP) / (titles + 6 + room + GAP)).max(1);
    let blocks: Vec<_> = groups(status).zip(&all_cells).collect();
    let mut lines: Vec<Line> = vec![];
    for blocks in blocks.chunks(side_by_side) {
        for nr in 0..largest.div_ceil(room) {
            let mut parts = vec![];
            for (group, cells) in blocks {
                let waits = waiting(status, group);
                let waits = waits + group.iter().map(|cpu| cpu.waiting).sum::<u32>();
                let (head, queue) =
                    if nr == 0 { (title(group), queue(waits)) } else { Default::default() };
                parts.push(Span::raw(format!("{head:<titles$}{queue:>5} ")));
                parts.extend(cells.iter().skip(nr * room).take(room).cloned());
                let taken = cells.len().saturating_sub(nr * room).min(room);
                parts.push(Span::raw(" ".repeat(room - taken + GAP)));
            }
            lines.push(parts.into());
        }
    }
    lines
}

/// Those of a last-level cache.
fn cells(model: &Model, group: &[CpuStatus], spaced: bool) -> Vec<Span<'static>> {
    let mut cells = vec![];
    for core in group.chunk_by(|one, other| one.core == other.core) {
        if spaced && !cells.is_empty() {
            cells.push(Span::raw(" "));
        }
        cells.extend(core.iter().map(|cpu| cell(model, cpu)));
    }
    cells
}

fn cell(model: &Model, cpu: &CpuStatus) -> Span<'static> {
    let pct = model.non_idle_pct(cpu.rank).unwrap_or(0.0);
    let sign = match (cpu.online, cpu.active) {
        (false, _) => "x",
        _ if cpu.isolated => "i",
        (true, true) => LEVELS[((pct / 100.0 * 8.0) as usize).min(7)],
        (true, false) if pct < IDLE_PCT => "·",
        (true, false) if pct < 50.0 => "o",
        (true, false) => "O",
    };
    Span::styled(sign, if sign == "·" { Style::new() } else { busy_style(model, cpu) })
}
