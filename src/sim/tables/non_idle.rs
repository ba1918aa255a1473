//! The comparison of 2013 on three Cortex-A7 ("[RFC] Comparison of power-efficient
//! scheduling patch sets", 30 May 2013): non-idle % of each CPU, and how long a page
//! took or what was scored.

use anyhow::{Context, Result};
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, off_cell, row, simulate};
use crate::published::{NonIdle, NonIdleRow, published};

/// The benchmark's own figure, if it has one.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    None,
    /// Less is better.
    RenderTime,
    /// More is better.
    Score,
}

/// What is to be said of each table: a note that begins with names of rows says why these are off.
const NOTES: [(&str, &[&str]); 4] = [
    ("audio", &[PST_V4, RUNNABLE_LOAD]),
    (
        "web-audio",
        &[
            "The pages are fitted to the rows of 3.9 alone: two chains of six threads. What the \
             threads of a browser do is richer.",
            "pas-v7: what wakes stays on the CPU of what wakes it, so that each chain stays where its first \
             thread was started and seldom has to share a CPU: a page takes as long as under 3.9, and in the mail \
             a tenth more. Threads of a browser that wake each other across chains are not in the load.",
            "pst-v3: CPU 2 and the sum of all are too low by what they are in the row of 3.9 too. \
             The mail has more work in all under pst-v3 than under 3.9, the model as much.",
            "pst-v4: a page takes longer, as both chains stay on one CPU until that is full, and the \
             average that says so needs a tenth of a second and more. The share from which on a CPU is full is \
             from memory; a lower one would shorten pages and pack less.",
            PST_V4,
        ],
    ),
    ("native8", &[PST_V4]),
    (
        "cyclictest",
        &[
            "Fitted to pas-v7: what it takes the program to start a thread. pas-v7 keeps a thread where it was started \
             (the waking CPU is asked first, and on a machine of 32 bits that test is always passed); \
             if starting them takes no time, all are started on one CPU and stay there.",
            PST_V4,
        ],
    ),
];
/// Why the table of another mail is not made again.
const RUNNABLE_LOAD: &str = "What runnable-load balance's own mail says (\"Re: [patch 0/9] sched: use runnable load avg in balance\", 9 June \
     2013) is not made again. Its one table is the duration of LTP's cgroup stress test, whose many nested \
     cgroups are not in the model, on a machine that is not named; of hackbench, oltp, netperf and a Java \
     server it has the gain alone, without their options.";
/// Of all four.
const PST_V4: &str = "From memory, and so approximations: that a CPU's load of a fifth is light to pst-v3, and when its buddy is \
     busy; how pst-v4 counts the CPUs that pack.";

/// The other policies of power-aware scheduling, of which nothing was published.
const UNMEASURED: [&str; 2] = ["pas-v7-balance", "pas-final"];
/// As long as the playback took (s).
const SECONDS: f64 = 30.0;
pub fn audio() -> Result<()> {
    print("audio")
}

pub fn web_audio() -> Result<()> {
    print("web-audio")
}

pub fn native8() -> Result<()> {
    print("native8")
}

pub fn cyclictest() -> Result<()> {
    print("cyclictest")
}

/// A workload of the comparison, and how it is run.
struct Table {
    published: &'static NonIdle,
    notes: &'static [&'static str],
    machine: Machine,
    workload: Workload,
    figure: Figure,
    /// From the benchmark's own figure, simulated, to the published one.
    scale: f64,
}

impl Table {
    fn of(name: &str) -> Result<Self> {
        let published = published().non_idle_of(name).context("nothing was published")?;
        let notes = NOTES.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, notes)| notes);
        let figure = match name {
            "web-audio" => Figure::RenderTime,
            "native8" => Figure::Score,
            _ => Figure::None,
        };
        let (machine, workload) = (Machine::find("tc2-a7")?, Workload::find(name)?);
        let mut table = Table { published, notes, machine, workload, figure, scale: 1.0 };
        let first = &published.rows[0];
        let mean = first.figures.map_or(0.0, |[one, other]| (one + other) / 2.0);
        table.scale = mean / value(&table.run(&first.system)?, figure);
        Ok(table)
    }

    fn run(&self, system: &str) -> Result<Outcome> {
        simulate(&self.machine, &self.workload, SECONDS, system)
    }

    /// The benchmark's own figure.
    fn figure(&self, outcome: &Outcome) -> f64 {
        value(outcome, self.figure) * self.scale
    }

    /// The farthest that a cell is off: points of a CPU, and percent of the benchmark's own figure.
    fn off(&self, row: &NonIdleRow, outcome: &Outcome) -> f64 {
        let own = self.figure(outcome);
        let percent = |of_mail: f64| (own / of_mail - 1.0).abs() * 100.0;
        let figure = row
            .figures
            .map_or(0.0, |of_mail| of_mail.map(percent).into_iter().fold(f64::MAX, f64::min));
        off_by(&row.runs, &outcome.non_idle_pct).max(figure)
    }

    fn print_row(&self, system: &str, published: Option<&NonIdleRow>) -> Result<()> {
        let outcome = self.run(system)?;
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let off = published.map(|row| off_cell(self.off(row, &outcome), system, self.notes));
        let mut cells = vec![
            system.to_owned(),
            or_dash(published.map(|row| row.runs.map(|pct| three(&pct)).join("; "))),
            three(&outcome.non_idle_pct),
            or_dash(off),
            format!("{:.2}", outcome.beyond_busiest_pct),
        ];
        if self.figure != Figure::None {
            cells.push(format!("{:.0}", self.figure(&outcome)));
            let of_mail = published.and_then(|row| row.figures);
            cells.push(or_dash(of_mail.map(|[one, other]| format!("{one:.0}, {other:.0}"))));
        }
        row(cells);
        Ok(())
    }
}

fn print(workload: &str) -> Result<()> {
    let table = Table::of(workload)?;
    let mut cells = vec!["system", "published, two runs", "simulated", "off by at most", "surplus"];
    match table.figure {
        Figure::None => {}
        Figure::RenderTime => cells.extend(["render time", "published"]),
        Figure::Score => cells.extend(["score", "published"]),
    }
    head(&cells);
    for row in &table.published.rows {
        table.print_row(&row.system, Some(row))?;
    }
    for system in UNMEASURED.map(str::to_owned).into_iter().chain(modes()) {
        table.print_row(&system, None)?;
    }
    notes(table.notes);
    Ok(())
}

/// How far each published row is off.
#[cfg(test)]
pub(super) fn offs(workload: &'static str) -> Result<super::Offs> {
    let table = Table::of(workload)?;
    let of = |row: &NonIdleRow| Ok((row.system.clone(), table.off(row, &table.run(&row.system)?)));
    let rows = table.published.rows.iter().map(of).collect::<Result<_>>()?;
    Ok((workload, rows, table.notes))
}

fn three(pct: &[f64]) -> String {
    pct[..3].iter().map(|pct| format!("{pct:.2}")).collect::<Vec<_>>().join(" ")
}

/// The farthest that a cell is from the nearer one of the two runs, as a whole: what is like one
/// run on one CPU and like the other on the next is like neither. Whatever the number of a CPU:
/// the first of the mail is the fullest of those that pack.
fn off_by(runs: &[[f64; 3]; 2], simulated: &[f64]) -> f64 {
    let sorted = |pct: &[f64]| {
        let mut sorted = pct[..3].to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        sorted
    };
    let simulated = sorted(simulated);
    let off = |run: &[f64; 3]| {
        let cells = sorted(run).into_iter().zip(&simulated);
        cells.map(|(published, simulated)| (published - simulated).abs()).fold(0.0, f64::max)
    };
    off(&runs[0]).min(off(&runs[1]))
}

fn value(outcome: &Outcome, figure: Figure) -> f64 {
    match figure {
        Figure::None => 1.0,
        Figure::RenderTime => outcome.tasks[0].mean_us,
        Figure::Score => outcome.throughput,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_compared_with_one_run_and_not_with_the_best_of_both() {
        let runs = [[20.44, 8.68, 7.97], [20.41, 0.78, 1.00]];
        // As the second CPU of the first run and as the third of the second: 0.97 at most
        // from what the two span, and 6.97 from either.
        let off = off_by(&runs, &[20.4, 8.0, 1.0]);
        assert!((off - 6.97).abs() < 1e-9, "{off}");
        // The order of CPUs does not matter, nor that of the runs.
        let near = off_by(&runs, &[0.8, 1.0, 20.0]);
        assert!((near - 0.41).abs() < 1e-9, "{near}");
    }
}
