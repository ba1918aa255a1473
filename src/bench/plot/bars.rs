//! Non-idle time: a bar for each system, of the CPUs' parts.

use anyhow::Result;
use plotters::prelude::*;

use super::first_runs;
use crate::bench::results::{LoadInfo, Results, Run};
use crate::plot::{Area, colour, draw, failed, mesh};

/// A system's number and name, and its run.
type Bar<'a> = (usize, &'a str, &'a Run);

/// The picture; `None` if nothing was measured.
pub fn non_idle(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    let total = |run: &Run| run.non_idle_pct.iter().sum::<f64>();
    let max = runs.iter().map(|(.., run)| total(run)).fold(0.0, f64::max);
    if max <= 0.0 {
        return Ok(None);
    }
    draw(80 + 44 * runs.len() as u32, |area| paint(area, &runs, max)).map(Some)
}

fn paint(area: &Area, runs: &[Bar], max: f64) -> Result<()> {
    let rows = runs.len();
    let name = |row: &SegmentValue<usize>| match row {
        SegmentValue::CenterOf(row) if *row < rows => short(runs[rows - 1 - row].1),
        _ => String::new(),
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(52)
        .y_label_area_size(180)
        .build_cartesian_2d(0.0..max * 1.05, (0..rows).into_segmented())
        .map_err(failed)?;
    mesh(&mut chart)
        .disable_y_mesh()
        .x_desc("non-idle, % of a CPU; each part is a CPU")
        .y_labels(rows)
        .y_label_formatter(&name)
        .draw()
        .map_err(failed)?;
    for (at, (nth, _, run)) in runs.iter().rev().enumerate() {
        let mut begin = 0.0;
        for (cpu, share) in run.non_idle_pct.iter().enumerate() {
            let rows = [SegmentValue::Exact(at), SegmentValue::Exact(at + 1)];
            let [from, to] = rows;
            let shade = colour(*nth).mix(if cpu % 2 == 0 { 1.0 } else { 0.55 });
            let mut bar = Rectangle::new([(begin, from), (begin + share, to)], shade.filled());
            bar.set_margin(7, 7, 0, 0);
            chart.draw_series([bar]).map_err(failed)?;
            begin += share;
        }
    }
    Ok(())
}

/// "scx_lavd --powersave" is too long beside a bar.
fn short(name: &str) -> String {
    const LETTERS_MAX: usize = 18;
    if name.chars().count() <= LETTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short("scx_lavd --powersave"), "scx_lavd --powers…");
        assert_eq!(short("eevdf"), "eevdf");
    }
}
