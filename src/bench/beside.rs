//! What the mails say of a load, beside what is measured of it.

use super::metric::Metric;
use super::results::LoadInfo;
use crate::published::{NonIdle, NonIdleRow, published};

/// What was published of a figure of the load, if anything was.
pub fn cell(load: &LoadInfo, metric: Metric) -> Option<String> {
    if load.max_cores.is_some() {
        return None;
    }
    if let Some(threads) = load.name.strip_prefix("ebizzy-") {
        let row = published().ebizzy.iter().find(|row| row.threads.to_string() == threads)?;
        let drop_pct = match metric {
            Metric::RecordsPerS => row.performance,
            Metric::PowerW => row.power,
            Metric::RecordsPerJ => row.efficiency,
            _ => return None,
        };
        return Some(format!("-{drop_pct:.0} %"));
    }
    let is_named = |run_ms: f64, period_ms: f64| load.name == format!("{run_ms}/{period_ms}");
    let mut rows = published().run_period.iter();
    let row = rows.find(|row| is_named(row.run_ms, row.period_ms))?;
    match metric {
        Metric::OverrunsPct => Some(format!("{}; {} periods", row.overruns[0], row.overruns[1])),
        Metric::OverheadPct => {
            Some(format!("{:.1}; {:.1} %", row.overhead_pct[0], row.overhead_pct[1]))
        }
        _ => None,
    }
}

/// What was published of loads that are shown in one table, a sentence each.
pub fn notes(loads: &[&LoadInfo]) -> Vec<String> {
    let has = |metric| loads.iter().any(|load| cell(load, metric).is_some());
    let mut notes = vec![];
    if has(Metric::RecordsPerS) {
        notes.push(
            "Published: the change under power-aware scheduling, on 16 cores of 4 threads (2013)."
                .to_owned(),
        );
    }
    if has(Metric::OverrunsPct) {
        notes.push(
            "Published: schedutil without; with frequency invariance, on a Chromebook (2016)."
                .to_owned(),
        );
    }
    if loads.iter().any(|load| load.max_cores.is_some() && load.name.starts_with("ebizzy-8 on")) {
        notes.push(sched_mc());
    }
    let of_2013 = loads.iter().filter_map(|load| published().non_idle_of(&load.name));
    notes.extend(of_2013.map(non_idle));
    notes
}

/// Whether the non-idle share of each CPU was published.
pub fn has_cpus(load: &LoadInfo) -> bool {
    published().non_idle_of(&load.name).is_some()
}

fn sched_mc() -> String {
    let rows: Vec<String> = published()
        .sched_mc
        .iter()
        .map(|row| format!("{} cores {:.2} and {:.2}", row.cores, row.performance, row.power))
        .collect();
    format!(
        "Published: performance and power at each level of sched_mc, on 8 cores (2009): {}.",
        rows.join(", ")
    )
}

/// The first of the two runs.
fn non_idle(table: &NonIdle) -> String {
    let said = |row: &NonIdleRow| {
        let figure = table.figure.as_deref().zip(row.figures);
        figure.map_or(String::new(), |(what, [first, _])| format!(" ({what}: {first:.0})"))
    };
    let rows: Vec<String> = table
        .rows
        .iter()
        .map(|row| {
            let [a, b, c] = row.runs[0];
            format!("{} {a:.2} {b:.2} {c:.2}{}", row.system, said(row))
        })
        .collect();
    format!("Published: non-idle % of each CPU of a phone with three (2013): {}.", rows.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::Suite;

    fn seeds() -> Vec<LoadInfo> {
        let suite = Suite::find("seeds", 4).unwrap();
        suite.loads.into_iter().map(|load| load.info).collect()
    }

    /// The loads of the suite that runs them have all that was published beside them.
    #[test]
    fn every_published_figure_stands_beside_a_load_of_the_suite() {
        let loads = seeds();
        let with = |metric| loads.iter().filter(|load| cell(load, metric).is_some()).count();
        assert_eq!(with(Metric::RecordsPerS), published().ebizzy.len());
        assert_eq!(with(Metric::OverheadPct), published().run_period.len());
        let of_2013 = loads.iter().filter(|load| has_cpus(load)).count();
        assert_eq!(of_2013, published().non_idle.len());
        let all: Vec<&LoadInfo> = loads.iter().collect();
        let notes = notes(&all).join("\n");
        for words in [
            "7 cores 0.86 and 0.97",
            "pst-v4 42.20 13.63 2.29 (render time, ms: 880)",
            "schedutil without; with",
        ] {
            assert!(notes.contains(words), "{notes}");
        }
    }

    #[test]
    fn what_was_published_stands_in_its_row() {
        let load = |name: &str| seeds().into_iter().find(|load| load.name == name).unwrap();
        assert_eq!(cell(&load("ebizzy-2"), Metric::RecordsPerS).unwrap(), "-36 %");
        assert_eq!(cell(&load("9/12"), Metric::OverrunsPct).unwrap(), "0; 56 periods");
        assert_eq!(cell(&load("9/12"), Metric::ResponseP50Us), None);
        assert_eq!(cell(&load("ebizzy-8 on 2"), Metric::RecordsPerS), None);
    }
}
