//! The comparison of 2013 on three Cortex-A7 ("[RFC] Comparison of power-efficient
//! scheduling patch sets", 30 May 2013): non-idle % of each CPU, and how long a page
//! took or what was scored.

use anyhow::{Context, Result};
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, row, simulate};
use crate::published::{NonIdleRow, published};

/// The benchmark's own figure, if it has one.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    None,
    /// Less is better.
    RenderTime,
    /// More is better.
    Score,
}

/// What does not agree in the web-audio table, and why.
const WEB_AUDIO_NOTES: [&str; 3] = [
    "The pages are fitted to the rows of 3.9 alone: two chains of six threads. What the \
     threads of a browser do is richer.",
    "pas-v7 and pst-v4 are written from descriptions. From which activity on pst-v4 takes a CPU \
     to be full is not in them; with four fifths it keeps both chains on one CPU for longer than \
     it did: a page takes 29 % more, not 8 to 15, and CPU 1 has more of the work.",
    "The sum of the mail's rows falls from 67 to 58 % where tasks are packed: the CPUs ran \
     faster. The model of the governor shows 62 to 60.",
];

/// The same of the cyclictest table.
const CYCLICTEST_NOTES: [&str; 1] =
    ["The two runs of pst-v3 differ: beside the fullest CPU both others worked in the first, and \
     neither in the second. The model has one of them at work, and is as far from the one as \
     from the other: what decided between them is not in the mail."];

/// As long as the playback took (s).
const SECONDS: f64 = 30.0;
/// What a cell may be off by without a word.
const OFF_PCT: f64 = 3.0;

pub fn audio() -> Result<()> {
    print("audio", Figure::None)
}

pub fn web_audio() -> Result<()> {
    print("web-audio", Figure::RenderTime)?;
    notes(&WEB_AUDIO_NOTES);
    Ok(())
}

pub fn native8() -> Result<()> {
    print("native8", Figure::Score)
}

pub fn cyclictest() -> Result<()> {
    print("cyclictest", Figure::None)?;
    notes(&CYCLICTEST_NOTES);
    Ok(())
}

fn print(workload: &str, figure: Figure) -> Result<()> {
    let published = published().non_idle_of(workload).context("nothing was published")?;
    let (machine, workload) = (Machine::find("tc2-a7")?, Workload::find(workload)?);
    let run = |system: &str| simulate(&machine, &workload, SECONDS, system);
    let mut cells = vec!["system", "published, two runs", "simulated", "off by at most", "surplus"];
    match figure {
        Figure::None => {}
        Figure::RenderTime => cells.extend(["render time", "published"]),
        Figure::Score => cells.extend(["score", "published"]),
    }
    head(&cells);
    let first = &published.rows[0];
    let mean = first.figures.map_or(0.0, |[one, other]| (one + other) / 2.0);
    let scale = mean / value(&run(&first.system)?, figure);
    for row in &published.rows {
        print_row(&row.system, Some(row), &run(&row.system)?, figure, scale);
    }
    for mode in modes() {
        print_row(&mode, None, &run(&mode)?, figure, scale);
    }
    Ok(())
}

/// `scale`: from the benchmark's own figure, simulated, to the published one.
fn print_row(
    system: &str,
    published: Option<&NonIdleRow>,
    outcome: &Outcome,
    figure: Figure,
    scale: f64,
) {
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let off = published.map(|row| off_by(&row.runs, &outcome.non_idle_pct));
    let word = |off: f64| if off <= OFF_PCT { "" } else { " (explained)" };
    let mut cells = vec![
        system.to_owned(),
        or_dash(published.map(|row| row.runs.map(|pct| three(&pct)).join("; "))),
        three(&outcome.non_idle_pct),
        or_dash(off.map(|off| format!("{off:.1}{}", word(off)))),
        format!("{:.2}", outcome.beyond_busiest_pct),
    ];
    if figure != Figure::None {
        cells.push(format!("{:.0}", value(outcome, figure) * scale));
        let of_mail = published.and_then(|row| row.figures);
        cells.push(or_dash(of_mail.map(|[one, other]| format!("{one:.0}, {other:.0}"))));
    }
    row(cells);
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
