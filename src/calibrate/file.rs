//! The machine file of what was measured: as the simulator reads it, with the error of each figure
//! beside it.

use std::fmt::Write;

use super::fit::Estimate;
use super::model::{Figure, Model, Seen};
use super::plan::Block;
use super::subject::{IdleState, Kind, Subject};
use crate::machine::layout;
use crate::sim::here;

/// Below this share of what the shallowest state takes a state takes no more than the deepest.
const NO_MORE_SHARE: f64 = 0.02;
/// The frequency of a kind without cpufreq (MHz): nobody says it.
const MHZ_UNKNOWN: f64 = 1000.0;

/// What the file says beside figures.
pub struct About<'a> {
    /// When, how and with what it was measured, a line each.
    pub lines: Vec<String>,
    pub seen: &'a [(Block, Seen)],
}

/// The file.
pub fn text(subject: &Subject, model: &Model, about: &About<'_>) -> String {
    let mut text: String = about.lines.iter().map(|line| format!("# {line}\n")).collect();
    text += &general(subject);
    for nr in 0..subject.kinds.len() {
        text += &Writer { subject, model, nr }.kind(about.seen);
    }
    let around = Around { subject, model };
    text += &around.package_text();
    (0..subject.groups.len()).fold(text, |text, nth| text + &around.llc_text(nth))
}

/// What the kernel says of governors and clocks; what the simulator does not know is left to it.
fn general(subject: &Subject) -> String {
    let mut text =
        "\nname = \"calibrated\"\nabout = \"this machine, as scx_powerpack calibrate has \
                    measured it\"\n"
            .to_owned();
    let governor = subject.clock_setting("scaling_governor").unwrap_or_default();
    if ["performance", "powersave", "ondemand", "schedutil"].contains(&governor.as_str())
        && subject.clock_setting("scaling_driver").is_none_or(|driver| !driver.contains("pstate"))
    {
        let _ = writeln!(text, "governor = \"{governor}\"");
    }
    let idle_governor = subject.idle_governor();
    if ["menu", "teo"].contains(&idle_governor.as_str()) {
        let _ = writeln!(text, "idle_governor = \"{idle_governor}\"");
    }
    let _ = writeln!(text, "clock = \"{}\"", subject.clock());
    let limit_us = subject.clock_setting("schedutil/rate_limit_us");
    if let Some(us) = limit_us.and_then(|us| us.parse::<u32>().ok()) {
        let _ = writeln!(text, "freq_rate_limit_us = {us}");
    }
    format!("{text}\n# Not measured: assumed as for any machine.\n{}", here::costs())
}

/// What a figure says; nothing where it is not there.
fn of(model: &Model, figure: Figure) -> Estimate {
    model.figures.get(&figure).copied().unwrap_or_default()
}

/// Not below 0, which noise may say.
fn mw(estimate: Estimate) -> f64 {
    estimate.value.max(0.0)
}

/// Writes a kind of core.
struct Writer<'a> {
    subject: &'a Subject,
    model: &'a Model,
    nr: usize,
}

impl Writer<'_> {
    fn kind(&self, seen: &[(Block, Seen)]) -> String {
        let kind = &self.subject.kinds[self.nr];
        let mut text = format!("\n[core.kind{}]\ncapacity = {}\n", self.nr, kind.capacity);
        if kind.threads > 1 {
            let highest = kind.khz.len().max(1) - 1;
            let work = of(self.model, Figure::Work { kind: self.nr, khz: highest });
            let sibling = of(self.model, Figure::Sibling { kind: self.nr });
            let share = |value: f64| value / mw(work).max(f64::MIN_POSITIVE) * 100.0;
            let _ = write!(
                text,
                "threads = {}\n# Not measured: assumed as for any machine.\nsmt_speed_pct = [{}]\n\
                 smt_power_pct = {:.1}    # +- {:.1}\n",
                kind.threads,
                here::smt_speed_pct(kind.threads),
                share(mw(sibling)),
                share(sibling.error)
            );
        }
        text + &self.opps(kind, seen) + &self.idle(kind) + &self.wake(kind)
    }

    fn opps(&self, kind: &Kind, seen: &[(Block, Seen)]) -> String {
        let mut text = String::new();
        if kind.khz.is_empty() {
            text += "# No cpufreq: one frequency, and nobody says which.\n";
        }
        text += "opps = [\n";
        let mut points: Vec<(u32, Estimate)> = vec![];
        for khz in 0..kind.khz.len().max(1) {
            let mhz = self.mhz(khz, seen).round() as u32;
            // A clock that did not obey is where it was.
            if points.last().is_none_or(|(last, _)| *last < mhz) {
                points.push((mhz, of(self.model, Figure::Work { kind: self.nr, khz })));
            }
        }
        for (mhz, power) in points {
            let (mw, error) = (mw(power), power.error);
            let _ = writeln!(text, "    {{ mhz = {mhz}, mw = {mw:.2} }},    # +- {error:.2}");
        }
        text + "]\n"
    }

    /// At which frequency its CPUs were while they worked.
    fn mhz(&self, khz: usize, seen: &[(Block, Seen)]) -> f64 {
        let of_kind = |block: &Block| {
            let groups = self.subject.groups.iter().filter(|group| group.kind == self.nr);
            let cpus: Vec<usize> = groups.flat_map(layout::Group::cpus).collect();
            !block.busy.is_empty()
                && block.khz[self.nr] == khz
                && block.busy.iter().all(|cpu| cpus.contains(cpu))
        };
        let blocks = seen.iter().filter(|(block, _)| of_kind(block));
        let all: Vec<f64> = blocks.filter_map(|(_, seen)| seen.mhz).collect();
        let planned = || self.subject.kinds[self.nr].khz.get(khz).map(|khz| *khz as f64 / 1e3);
        crate::machine::sensors::mean(&all).or_else(planned).unwrap_or(MHZ_UNKNOWN)
    }

    fn idle(&self, kind: &Kind) -> String {
        let mut text = String::new();
        if kind.idle.is_empty() {
            return text
                + "# No cpuidle: one idle state, of no latency.\nidle = [{ name = \"idle\", \
                           residency_us = 0, exit_us = 0, mw = 0 }]\n";
        }
        text += "idle = [\n";
        let states = &kind.idle[..=deepest_of_core(self.model, self.nr, kind)];
        let of_state = |state| match state {
            state if state + 1 == states.len() => Estimate::default(),
            state => of(self.model, Figure::Idle { kind: self.nr, state }),
        };
        for (nth, state) in states.iter().enumerate() {
            // A deeper state takes no more; of the deepest all is in [package].
            let most = (nth..states.len()).map(|deeper| mw(of_state(deeper))).fold(0.0, f64::max);
            let error = match of_state(nth).error {
                0.0 => String::new(),
                error => format!("    # +- {error:.2}"),
            };
            let _ = writeln!(text, "    {},{error}", state_line(state, most));
        }
        text + "]\n"
    }

    fn wake(&self, kind: &Kind) -> String {
        let Some(wake) = self.model.figures.get(&Figure::Wake { kind: self.nr }) else {
            return String::new();
        };
        let state = kind.idle.last().map_or("idle", |state| state.name.as_str());
        let at = kind.khz.first().map(|khz| format!(" at {} MHz", khz / 1000)).unwrap_or_default();
        let beside = self.model.figures.get(&Figure::WakeBeside { kind: self.nr });
        let beside = beside.map_or_else(String::new, |beside| {
            format!("; beside others, {:.1} uJ +- {:.1}", beside.value, beside.error)
        });
        format!(
            "# A wake-up out of {state}{at}, with all that wakes with it: {:.1} uJ +- {:.1}{beside}\n",
            wake.value, wake.error
        )
    }
}

fn state_line(state: &IdleState, mw: f64) -> String {
    let IdleState { name, residency_us, exit_us, .. } = state;
    format!(
        "{{ name = \"{name}\", residency_us = {residency_us}, exit_us = {exit_us}, mw = {mw:.2} }}"
    )
}

/// The number of a core's own deepest state: the last one is of what is around the core if the one
/// before takes no more.
fn deepest_of_core(model: &Model, nr: usize, kind: &Kind) -> usize {
    let last = kind.idle.len() - 1;
    if last == 0 {
        return 0;
    }
    let shallowest = mw(of(model, Figure::Idle { kind: nr, state: 0 }));
    let before = of(model, Figure::Idle { kind: nr, state: last - 1 });
    let is_none = before.value <= shallowest * NO_MORE_SHARE + 2.0 * before.error;
    if last > 1 && is_none { last - 1 } else { last }
}

/// What an LLC, its groups and its package are, as far as the file has them.
struct Around<'a> {
    subject: &'a Subject,
    model: &'a Model,
}

impl Around<'_> {
    fn group(&self, nth: usize) -> Estimate {
        of(self.model, Figure::Group { class: self.subject.class_of_group()[nth] })
    }

    fn llc(&self, llc: usize) -> Estimate {
        of(self.model, Figure::Llc { class: self.subject.class_of_llc()[llc] })
    }

    /// Whether the groups of an LLC sleep each for itself: in the file each is an LLC then, as a machine
    /// file knows nothing else that sleeps.
    fn is_apart(&self, llc: usize) -> bool {
        let groups = &self.subject.groups_of_llc()[llc];
        let own: f64 = groups.iter().map(|&nth| mw(self.group(nth))).sum();
        groups.len() > 1 && own > mw(self.llc(llc))
    }

    /// What the package takes more: with what an LLC does that is not in the file, and has it alone.
    fn package(&self) -> Estimate {
        let llcs = self.subject.llcs_of_package(0);
        match llcs[..] {
            [llc] if self.is_apart(llc) => self.llc(llc),
            _ => of(self.model, Figure::Package),
        }
    }

    /// The state in which what is around a group's cores sleeps: the deepest, or one before it that lets it
    /// sleep too.
    fn state(&self, nth: usize) -> Option<&IdleState> {
        let kind = self.subject.groups[nth].kind;
        let states = &self.subject.kinds[kind].idle;
        let llc = self.subject.llcs()[nth];
        let awake = mw(self.group(nth)) + mw(self.llc(llc)) + mw(self.package());
        let sleeps = |state: &usize| {
            let less = of(self.model, Figure::Sleeps { kind, state: *state });
            less.value > awake / 2.0 && awake > 0.0
        };
        (1..states.len()).find(sleeps).map_or(states.last(), |state| states.get(state))
    }

    fn package_text(&self) -> String {
        let floor = of(self.model, Figure::Floor);
        let nr = layout::nr_packages(&self.subject.groups) as f64;
        let more = self.package();
        let mut text = format!(
            "\n# What the idle machine takes, for each package: +- {:.2}. No meter says which part of \
             the machine takes it;\n# all other figures are beyond it.\n[package]\n",
            floor.error / nr
        );
        // Within its error it is none.
        let is_none = more.value <= 2.0 * more.error;
        if more != Estimate::default() {
            let _ =
                writeln!(text, "# Awake it takes {:.2} more, +- {:.2}.", more.value, more.error);
        }
        let awake = floor.value / nr + if is_none { 0.0 } else { more.value };
        let _ = writeln!(text, "active_mw = {awake:.2}");
        if is_none { text } else { text + &asleep(self.state(0), floor.value / nr) }
    }

    fn llc_text(&self, nth: usize) -> String {
        let group = &self.subject.groups[nth];
        let mut text = format!(
            "\n[[llc]]\ncore = \"kind{}\"\ncores = {}\npackage = {}\nnode = {}\n",
            group.kind,
            group.cores.len(),
            group.package,
            group.node
        );
        let llc = self.subject.llcs()[nth];
        let is_whole = self.subject.groups_of_llc()[llc].len() > 1 && !self.is_apart(llc);
        if is_whole && layout::is_joined(&self.subject.groups, nth) {
            return text + "joined = true\n";
        }
        let awake = if is_whole { self.llc(llc) } else { self.group(nth) };
        let _ = writeln!(text, "active_mw = {:.2}    # +- {:.2}", mw(awake), awake.error);
        text + &asleep(self.state(nth), 0.0)
    }
}

/// A table `idle` of one state in which it takes `mw`.
fn asleep(state: Option<&IdleState>, mw: f64) -> String {
    let line = state.map_or_else(
        || format!("{{ name = \"idle\", residency_us = 0, exit_us = 0, mw = {mw:.2} }}"),
        |state| state_line(state, mw),
    );
    format!("idle = [{line}]\n")
}

/// The figures, for the terminal: name, value and error with the unit.
pub fn rows(subject: &Subject, model: &Model) -> Vec<[String; 3]> {
    let kind = |nr: usize| format!("core of capacity {}", subject.kinds[nr].capacity);
    let row = |(figure, estimate): (&Figure, &Estimate)| {
        let (name, unit) = match *figure {
            Figure::Floor => ("the idle machine".to_owned(), "mW"),
            Figure::Work { kind: nr, khz } => {
                let khz = subject.kinds[nr].khz.get(khz);
                let at = khz.map(|khz| format!(" at {} MHz", khz / 1000)).unwrap_or_default();
                (format!("{}, busy{at}", kind(nr)), "mW")
            }
            Figure::Sibling { kind: nr } => (format!("{}, another thread", kind(nr)), "mW"),
            Figure::Idle { kind: nr, state } => {
                (format!("{}, in {}", kind(nr), subject.kinds[nr].idle[state].name), "mW")
            }
            Figure::Wake { kind: nr } => (format!("{}, a wake-up", kind(nr)), "uJ"),
            Figure::WakeBeside { kind: nr } => {
                (format!("{}, a wake-up beside others", kind(nr)), "uJ")
            }
            Figure::Group { class } => {
                let classes = subject.class_of_group();
                let nth = classes.iter().position(|other| *other == class).unwrap_or(0);
                let group = &subject.groups[nth];
                let (nr, capacity) = (group.cores.len(), group.capacity);
                (format!("{nr} cores of capacity {capacity}, any awake"), "mW")
            }
            Figure::Llc { .. } => ("cache that these share, awake".to_owned(), "mW"),
            Figure::Sleeps { kind: nr, state } => {
                let state = &subject.kinds[nr].idle[state].name;
                (format!("saved around a {} in {state}", kind(nr)), "mW")
            }
            Figure::Package => ("package, awake".to_owned(), "mW"),
        };
        [name, format!("{:.1} {unit}", estimate.value), format!("{:.1}", estimate.error)]
    };
    model.figures.iter().map(row).collect()
}
