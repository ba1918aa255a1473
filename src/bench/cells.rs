//! What the tables say, in the terminal and in the report: a load on its own, and groups of loads.

use powerpack_workload::has_percentile;
use serde::Serialize;

use super::beside;
use super::limit;
use super::metric::Metric;
use super::results::{LoadInfo, Results, Run, TaskFigures, of_metric};
use super::summary::{self, Difference, Summary};

/// What stands where nothing was measured.
pub const NOTHING: &str = "-";

/// A table: cells of text.
#[derive(Debug, Serialize)]
pub struct Table {
    pub title: String,
    pub about: String,
    /// How many columns are names.
    pub names: usize,
    pub heading: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// What else is to be known: what was published, why something is not in it.
    pub notes: Vec<String>,
}

/// A figure or a name.
#[derive(Debug, Default, Serialize)]
pub struct Cell {
    pub text: String,
    /// From the minimum to the maximum, if runs differ.
    pub range: String,
    /// How it compares with the first system: better, worse, same, or nothing to be said.
    pub verdict: &'static str,
    /// "+12 %".
    pub change: String,
}

impl Cell {
    /// A name, or a figure that is compared with none.
    pub fn of(text: impl Into<String>) -> Self {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// One line.
    pub fn line(&self) -> String {
        let range = if self.range.is_empty() { "" } else { &format!(" ({})", self.range) };
        let beside = if self.verdict == "same" { "=" } else { &self.change };
        format!("{}{range} {beside}", self.text).trim_end().to_owned()
    }
}

/// A figure of a run, if it has that.
trait Figure: Fn(&Run) -> Option<f64> {}
impl<F: Fn(&Run) -> Option<f64>> Figure for F {}

/// What `system` showed of a figure of `load`, beside what the first system did.
fn cell(results: &Results, load: &str, system: &str, metric: Metric, figure: impl Figure) -> Cell {
    let values = |system| Summary::of(results.of(load, system).filter_map(&figure).collect());
    let Some(summary) = values(system) else {
        return Cell::of(NOTHING);
    };
    let (text, range) = summary.parts(metric);
    let cell = Cell { text, range, ..Cell::default() };
    let first = &results.systems[0].name;
    if let Some(ratios) = results.paired_ratios(load, system, first, &figure) {
        return Cell { verdict: "unknown", change: summary::of_ratios(ratios), ..cell };
    }
    let base = values(first).filter(|_| first != system);
    let Some(base) = base else { return cell };
    let change = change(base.median, summary.median);
    match summary.differs(&base, metric) {
        Difference::Noise => Cell { verdict: "same", ..cell },
        Difference::Unknown => Cell { verdict: "unknown", change, ..cell },
        Difference::Clear => {
            let verdict = match metric.is_better(summary.median, base.median) {
                Some(true) => "better",
                Some(false) => "worse",
                None => "differs",
            };
            Cell { verdict, change, ..cell }
        }
    }
}

/// "+12 %", "x 7.0", or nothing where that makes no sense.
fn change(base: f64, value: f64) -> String {
    if base <= 0.0 || value < 0.0 {
        return String::new();
    }
    let ratio = value / base;
    // Beyond that the figures themselves say it better.
    if !(0.01..=100.0).contains(&ratio) {
        return String::new();
    }
    if (0.5..2.0).contains(&ratio) {
        format!("{:+.1} %", (ratio - 1.0) * 100.0)
    } else if ratio >= 2.0 {
        format!("x {ratio:.1}")
    } else {
        format!("1/{:.1}", 1.0 / ratio)
    }
}

/// All tables: what must hold, then the loads in the order of the suite.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut tables: Vec<Table> = limit::table(results).into_iter().collect();
    let mut groups: Vec<&str> = vec![];
    for load in &results.loads {
        match load.group.as_deref() {
            None => tables.push(of_load(results, load)),
            Some(group) if !groups.contains(&group) => {
                groups.push(group);
                tables.push(of_group(results, group));
            }
            Some(_) => {}
        }
    }
    tables
}

/// The systems that have figures of any of these loads.
fn systems<'a>(results: &'a Results, loads: &[&LoadInfo]) -> Vec<&'a str> {
    let has =
        |system: &&str| loads.iter().any(|load| results.of(&load.name, system).next().is_some());
    results.systems.iter().map(|system| system.name.as_str()).filter(has).collect()
}

/// A row for each figure, a column for each system.
fn of_load(results: &Results, load: &LoadInfo) -> Table {
    let systems = systems(results, &[load]);
    let row = |metric: Metric| {
        let names = vec![Cell::of(metric.title())];
        row(results, &load.name, &systems, names, metric, of_metric(metric))
    };
    let rows = Metric::ALL.into_iter().filter_map(row);
    let heading = [""].iter().chain(&systems).map(|&name| name.to_owned()).collect();
    Table {
        title: load.name.clone(),
        about: load.about.clone(),
        names: 1,
        heading,
        rows: cpus_row(results, load, &systems)
            .into_iter()
            .chain(task_rows(results, load, &systems))
            .chain(rows)
            .collect(),
        notes: notes(results, &[load]),
    }
}

/// The non-idle share of each CPU in the first round, where that was published of others.
fn cpus_row(results: &Results, load: &LoadInfo, systems: &[&str]) -> Option<Vec<Cell>> {
    let of = |system: &&str| {
        let run = results.of(&load.name, system).next();
        let pct = run.map(|run| run.non_idle_pct.iter().map(|pct| format!("{pct:.2}")));
        Cell::of(pct.map_or(NOTHING.to_owned(), |pct| pct.collect::<Vec<_>>().join(" ")))
    };
    let name = Cell::of("non-idle of each CPU, %");
    beside::has_cpus(load).then(|| [name].into_iter().chain(systems.iter().map(of)).collect())
}

/// The names, then a cell for each system; `None` if none of them has a figure.
fn row(
    results: &Results,
    load: &str,
    systems: &[&str],
    names: Vec<Cell>,
    metric: Metric,
    figure: impl Figure,
) -> Option<Vec<Cell>> {
    let cell = |system: &&str| cell(results, load, system, metric, &figure);
    let cells: Vec<Cell> = systems.iter().map(cell).collect();
    let any = cells.iter().any(|cell| cell.text != NOTHING);
    any.then(|| names.into_iter().chain(cells).collect())
}

/// A figure of one kind of task.
type OfTask = fn(&TaskFigures) -> Option<f64>;

/// The responses of each kind of task, where there are several: a page is not a sound.
fn task_rows(results: &Results, load: &LoadInfo, systems: &[&str]) -> Vec<Vec<Cell>> {
    let figures: [(Metric, OfTask); 2] = [
        (Metric::ResponseP50Us, |task| Some(task.response_p50_us)),
        (Metric::ResponseP99Us, |task| {
            has_percentile(task.activations, 99.0).then_some(task.response_p99_us)
        }),
    ];
    let mut names: Vec<&str> = vec![];
    for run in results.runs.iter().filter(|run| run.load == load.name) {
        // What computes without a pause answers nothing.
        let timed = run.tasks.iter().filter(|task| task.activations > 0);
        names.extend(timed.map(|task| task.task.as_str()));
    }
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return vec![];
    }
    let of_task = |name: &str, metric: Metric, figure: OfTask| {
        let title = vec![Cell::of(format!("{name}: {}", metric.title()))];
        let of_run = |run: &Run| run.tasks.iter().find(|task| task.task == name).and_then(figure);
        row(results, &load.name, systems, title, metric, of_run)
    };
    let rows = names.iter().flat_map(|name| figures.map(|(metric, of)| of_task(name, metric, of)));
    rows.flatten().collect()
}

/// A row for each load and figure of it, a column for each system.
fn of_group(results: &Results, group: &str) -> Table {
    let in_group = |load: &&LoadInfo| load.group.as_deref() == Some(group);
    let loads: Vec<&LoadInfo> = results.loads.iter().filter(in_group).collect();
    let systems = systems(results, &loads);
    let has_published =
        |load: &&LoadInfo| load.figures.iter().any(|&m| beside::cell(load, m).is_some());
    let published = loads.iter().any(has_published).then_some("published");
    let mut rows = vec![];
    for load in &loads {
        for &metric in &load.figures {
            let mut names = vec![Cell::of(&load.name), Cell::of(metric.title())];
            if published.is_some() {
                names.push(Cell::of(beside::cell(load, metric).unwrap_or_default()));
            }
            rows.extend(row(results, &load.name, &systems, names, metric, of_metric(metric)));
        }
    }
    let names: Vec<&str> = ["", ""].into_iter().chain(published).collect();
    let heading = names.iter().chain(&systems).map(|&name| name.to_owned()).collect();
    // What each of them is, if that is the same.
    let about = loads[0].about.clone();
    let about = if loads.iter().all(|load| load.about == about) { about } else { String::new() };
    let (title, notes) = (group.to_owned(), notes(results, &loads));
    Table { title, about, names: names.len(), heading, rows, notes }
}

/// What was published of these loads, and the runs that failed, each reason once.
fn notes(results: &Results, loads: &[&LoadInfo]) -> Vec<String> {
    let mut notes = beside::notes(loads);
    for run in &results.runs {
        if let Some(why) = &run.failed
            && loads.iter().any(|load| load.name == run.load)
        {
            let note = format!("{} under {} failed: {why}", run.load, run.system);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// What has to be said of the whole, a sentence each.
pub fn remarks(results: &Results) -> Vec<String> {
    let mut remarks = vec![];
    if !results.complete {
        remarks.push("It was stopped before its end: what was measured until then.".to_owned());
    }
    if results.runs_wanted == 1 {
        let text = "One round: how much figures differ by chance is not known; use --runs 3.";
        remarks.push(text.to_owned());
    }
    if let Some(name) = &results.machine.virtual_machine {
        remarks.push(format!(
            "This is a virtual machine, {name}: when and where tasks run is measured, what it \
             costs on hardware is not."
        ));
    }
    for system in &results.systems {
        if let Some(why) = &system.failed {
            remarks.push(format!("{}: {why}", system.name));
        }
    }
    remarks
        .extend(results.power_meter.iter().map(|meter| format!("Power is measured by {meter}.")));
    remarks.extend(results.missing.iter().map(|what| format!("Not measured: {what}.")));
    let cost = |run: &Run| Some((*run.figures.get(&Metric::MeasuringPct)?, run.load.clone()));
    let costs = results.runs.iter().filter_map(cost);
    if let Some((most, load)) = costs.max_by(|a, b| a.0.total_cmp(&b.0)) {
        remarks.push(format!("Measuring took {most:.2} % of a load's CPU time at most: {load}."));
    }
    remarks
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::bench::results::{FORMAT, Machine, SystemInfo};

    /// A small benchmark: the system `packing` has `value` where `eevdf` has 100.
    pub fn benchmark(value: f64) -> Results {
        let run = |system: &str, round: usize, value: f64| Run {
            load: "light".into(),
            system: system.into(),
            round,
            figures: [(Metric::RecordsPerS, value + round as f64 * 0.1)].into(),
            ..Run::default()
        };
        let system = |name: &str| SystemInfo { name: name.into(), command: None, failed: None };
        Results {
            format: FORMAT,
            version: "0".into(),
            started: "2026-01-01T00:00:00+00:00".into(),
            machine: Machine::default(),
            suite: "test".into(),
            about: "a test".into(),
            runs_wanted: 2,
            pairs: false,
            complete: true,
            additions_per_s: 1,
            systems: vec![system("eevdf"), system("packing")],
            loads: vec![LoadInfo {
                name: "light".into(),
                about: "eight threads".into(),
                group: None,
                figures: vec![],
                limits: vec![],
                seconds: Some(1.0),
                max_cores: None,
            }],
            runs: vec![
                run("eevdf", 0, 100.0),
                run("packing", 0, value),
                run("eevdf", 1, 100.0),
                run("packing", 1, value),
            ],
            missing: vec!["power: none".into()],
            power_meter: None,
        }
    }

    #[test]
    fn a_difference_is_shown_and_noise_is_called_noise() {
        let line = |value| tables(&benchmark(value))[0].rows[0][2].line();
        assert_eq!(line(110.0), "110 +10.0 %");
        assert_eq!(line(100.0), "100 =");
        assert_eq!(tables(&benchmark(90.0))[0].rows[0][2].verdict, "worse");
        assert_eq!(line(10.0), "10.1 (10.0-10.1) 1/10.0");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut results = benchmark(100.0);
        results.runs[1].failed = Some("it broke".into());
        results.complete = false;
        assert_eq!(tables(&results)[0].notes, ["light under packing failed: it broke"]);
        let remarks = remarks(&results);
        assert!(remarks.iter().any(|remark| remark.contains("stopped before its end")));
        assert!(remarks.iter().any(|remark| remark == "Not measured: power: none."));
    }

    #[test]
    fn kinds_of_tasks_have_rows_of_their_own() {
        let mut results = benchmark(100.0);
        for (nth, run) in results.runs.iter_mut().enumerate() {
            let task = |name: &str, activations, us| TaskFigures {
                task: name.into(),
                activations,
                response_p50_us: us,
                response_p99_us: 2.0 * us,
                ..TaskFigures::default()
            };
            let page = task("page", 99, 7e5 + nth as f64);
            run.tasks = vec![page, task("sound", 100, 300.0), task("a hog", 0, 0.0)];
        }
        let table = &tables(&results)[0];
        let rows: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(rows[0], "page: response, median, us", "of too few no other percentile");
        assert_eq!(rows[1..3], ["sound: response, median, us", "sound: response, 99 %, us"]);
        let of_sound = (table.rows[1][1].text.as_str(), table.rows[2][1].text.as_str());
        assert_eq!(of_sound, ("300", "600"));
        assert!(!rows.iter().any(|row| row.contains("hog")), "it answers nothing");
    }

    #[test]
    fn what_must_hold_comes_first() {
        let mut results = benchmark(90.0);
        let limit = "figure = 'records_per_s'\nof = ['packing']\nat_least = 0.99\ntimes = 'eevdf'";
        results.loads[0].limits = vec![toml::from_str(limit).unwrap()];
        let table = &tables(&results)[0];
        let cells: Vec<String> = table.rows[0].iter().map(Cell::line).collect();
        let limit = "packing at least 0.99 x eevdf";
        assert_eq!(cells, ["light", "records/s", limit, "**missed**: packing 0.90 x"]);
    }

    #[test]
    fn pairs_are_shown_as_ratios() {
        let results = Results { pairs: true, ..benchmark(90.0) };
        assert_eq!(tables(&results)[0].rows[0][2].line(), "90.0 (90.0-90.1) x 0.900");
    }

    #[test]
    fn a_group_is_one_table() {
        let mut results = benchmark(110.0);
        results.loads[0].group = Some("all".into());
        results.loads[0].figures = vec![Metric::RecordsPerS, Metric::PowerW];
        let tables = tables(&results);
        assert_eq!(tables.len(), 1);
        // Power was not measured.
        assert_eq!((tables[0].title.as_str(), tables[0].rows.len()), ("all", 1));
    }
}
