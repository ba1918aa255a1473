//! The comparison of 2013 on three Cortex-A7 ("[RFC] Comparison of power-efficient
//! scheduling patch sets", 30 May 2013): non-idle % of each CPU, and how long a page
//! took or what was scored.

use anyhow::Result;
use powerpack_sim::{Machine, Outcome};
use powerpack_workload::Workload;

use super::{head, modes, notes, row, simulate};

/// The benchmark's own figure, if it has one.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    None,
    /// Less is better.
    RenderTime,
    /// More is better.
    Score,
}

/// A system, and its two runs: three CPUs, and the figure.
type Published = (&'static str, [[f64; 4]; 2]);

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

const AUDIO: [Published; 5] = [
    ("3.9", [[11.96, 2.86, 2.48, 0.0], [12.64, 2.81, 1.88, 0.0]]),
    ("rlb-v4", [[12.61, 2.44, 1.90, 0.0], [12.45, 2.44, 1.90, 0.0]]),
    ("pas-v7", [[16.17, 0.03, 0.24, 0.0], [16.08, 0.28, 0.07, 0.0]]),
    ("pst-v3", [[15.18, 2.76, 1.70, 0.0], [15.13, 0.80, 0.38, 0.0]]),
    ("pst-v4", [[16.14, 0.05, 0.00, 0.0], [16.34, 0.06, 0.00, 0.0]]),
];
const WEB_AUDIO: [Published; 5] = [
    ("3.9", [[25.00, 20.73, 21.22, 812.0], [24.29, 19.78, 22.34, 795.0]]),
    ("rlb-v4", [[23.84, 19.36, 22.74, 782.0], [24.07, 19.36, 22.74, 797.0]]),
    ("pas-v7", [[28.29, 17.86, 16.01, 869.0], [28.62, 18.54, 15.05, 908.0]]),
    ("pst-v3", [[29.14, 20.59, 21.72, 830.0], [27.69, 18.81, 20.06, 830.0]]),
    ("pst-v4", [[42.20, 13.63, 2.29, 880.0], [41.56, 14.40, 2.17, 935.0]]),
];
const NATIVE8: [Published; 5] = [
    ("3.9", [[99.22, 98.88, 99.61, 4139.0], [99.56, 99.31, 99.46, 4148.0]]),
    ("rlb-v4", [[99.49, 99.61, 99.53, 4153.0], [99.56, 99.61, 99.53, 4149.0]]),
    ("pas-v7", [[99.53, 99.59, 99.29, 4149.0], [99.42, 99.63, 99.48, 4150.0]]),
    ("pst-v3", [[97.89, 99.33, 99.42, 4097.0], [99.16, 99.62, 99.42, 4097.0]]),
    ("pst-v4", [[99.34, 99.01, 99.59, 4146.0], [99.49, 99.52, 99.20, 4146.0]]),
];
const CYCLICTEST: [Published; 5] = [
    ("3.9", [[9.13, 8.88, 8.41, 0.0], [10.27, 8.02, 6.30, 0.0]]),
    ("rlb-v4", [[8.88, 8.09, 8.11, 0.0], [8.49, 8.09, 8.11, 0.0]]),
    ("pas-v7", [[10.20, 0.02, 11.50, 0.0], [7.86, 14.31, 0.02, 0.0]]),
    ("pst-v3", [[20.44, 8.68, 7.97, 0.0], [20.41, 0.78, 1.00, 0.0]]),
    ("pst-v4", [[21.32, 0.21, 0.05, 0.0], [21.56, 0.21, 0.04, 0.0]]),
];

pub fn audio() -> Result<()> {
    print("audio", &AUDIO, Figure::None)
}

pub fn web_audio() -> Result<()> {
    print("web-audio", &WEB_AUDIO, Figure::RenderTime)?;
    notes(&WEB_AUDIO_NOTES);
    Ok(())
}

pub fn native8() -> Result<()> {
    print("native8", &NATIVE8, Figure::Score)
}

pub fn cyclictest() -> Result<()> {
    print("cyclictest", &CYCLICTEST, Figure::None)?;
    notes(&CYCLICTEST_NOTES);
    Ok(())
}

fn print(workload: &str, published: &[Published], figure: Figure) -> Result<()> {
    let (machine, workload) = (Machine::find("tc2-a7")?, Workload::find(workload)?);
    let run = |system: &str| simulate(&machine, &workload, SECONDS, system);
    let mut cells = vec!["system", "published, two runs", "simulated", "off by at most", "surplus"];
    match figure {
        Figure::None => {}
        Figure::RenderTime => cells.extend(["render time", "published"]),
        Figure::Score => cells.extend(["score", "published"]),
    }
    head(&cells);
    let (first, runs) = published[0];
    let scale = (runs[0][3] + runs[1][3]) / 2.0 / value(&run(first)?, figure);
    for (system, runs) in published {
        print_row(system, Some(runs), &run(system)?, figure, scale);
    }
    for mode in modes() {
        print_row(&mode, None, &run(&mode)?, figure, scale);
    }
    Ok(())
}

/// `scale`: from the benchmark's own figure, simulated, to the published one.
fn print_row(
    system: &str,
    published: Option<&[[f64; 4]; 2]>,
    outcome: &Outcome,
    figure: Figure,
    scale: f64,
) {
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let off = published.map(|runs| off_by(runs, &outcome.non_idle_pct));
    let word = |off: f64| if off <= OFF_PCT { "" } else { " (explained)" };
    let mut cells = vec![
        system.to_owned(),
        or_dash(published.map(|runs| format!("{}; {}", three(&runs[0]), three(&runs[1])))),
        three(&outcome.non_idle_pct),
        or_dash(off.map(|off| format!("{off:.1}{}", word(off)))),
        format!("{:.2}", outcome.beyond_busiest_pct),
    ];
    if figure != Figure::None {
        cells.push(format!("{:.0}", value(outcome, figure) * scale));
        cells.push(or_dash(published.map(|runs| format!("{:.0}, {:.0}", runs[0][3], runs[1][3]))));
    }
    row(cells);
}

fn three(pct: &[f64]) -> String {
    pct[..3].iter().map(|pct| format!("{pct:.2}")).collect::<Vec<_>>().join(" ")
}

/// The farthest that a cell is from the nearer one of the two runs, as a whole: what is like one
/// run on one CPU and like the other on the next is like neither. Whatever the number of a CPU:
/// the first of the mail is the fullest of those that pack.
fn off_by(runs: &[[f64; 4]; 2], simulated: &[f64]) -> f64 {
    let sorted = |pct: &[f64]| {
        let mut sorted = pct[..3].to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        sorted
    };
    let simulated = sorted(simulated);
    let off = |run: &[f64; 4]| {
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
        let runs = [[20.44, 8.68, 7.97, 0.0], [20.41, 0.78, 1.00, 0.0]];
        // As the second CPU of the first run and as the third of the second: 0.97 at most
        // from what the two span, and 6.97 from either.
        let off = off_by(&runs, &[20.4, 8.0, 1.0]);
        assert!((off - 6.97).abs() < 1e-9, "{off}");
        // The order of CPUs does not matter, nor that of the runs.
        let near = off_by(&runs, &[0.8, 1.0, 20.0]);
        assert!((near - 0.41).abs() < 1e-9, "{near}");
    }
}
