//! Latencies: how long, and how many are shorter.

use anyhow::Result;
use plotters::prelude::*;
use powerpack_load::samples::CURVE_PCT;

use super::{Area, SMALL, colour, draw, failed, first_runs, legend};
use crate::bench::results::{LoadInfo, Results};

/// A system's number and name, and its latencies (us) at [`CURVE_PCT`].
type Curve<'a> = (usize, &'a str, &'a [f64]);

/// The shares that the axis goes to: the longest is beyond.
const MAX_PCT: f64 = 99.99;
/// A logarithm needs a beginning (us).
const MIN_US: f64 = 0.1;

/// The picture of the wake-ups or, if none were measured, of the responses; `None` if there
/// are none either.
pub fn latency(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    let is_wake = runs.iter().any(|(.., run)| !run.wake_curve_us.is_empty());
    let curves: Vec<Curve> = runs
        .iter()
        .map(|(nth, name, run)| {
            let curve = if is_wake { &run.wake_curve_us } else { &run.response_curve_us };
            (*nth, *name, curve.as_slice())
        })
        .collect();
    if curves.iter().all(|(.., curve)| curve.is_empty()) {
        return Ok(None);
    }
    let what = if is_wake { "wake-up latency, us" } else { "response, us" };
    draw(420, |area| paint(area, &curves, what)).map(Some)
}

/// Where a share of the times lies on the axis: each nine more takes as much room.
fn nines(pct: f64) -> f64 {
    -(1.0 - pct.min(MAX_PCT) / 100.0).log10()
}

/// A time (us) below its line: of each power of ten once, twice and five times it, for the
/// lines between these are too close to each other for a number each.
fn time_label(&us: &f64) -> String {
    let power = 10f64.powf(us.log10().floor());
    let is = |times: f64| (us / power - times).abs() < 0.01;
    if is(1.0) || is(2.0) || is(5.0) || is(10.0) { format!("{us}") } else { String::new() }
}

fn paint(area: &Area, curves: &[Curve], what: &str) -> Result<()> {
    let all = || curves.iter().flat_map(|(.., curve)| curve.iter().copied());
    let max = all().fold(MIN_US * 10.0, f64::max);
    let min = all().fold(f64::MAX, f64::min).max(MIN_US);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(56)
        .y_label_area_size(80)
        .build_cartesian_2d((min..max * 1.1).log_scale(), 0.0..nines(MAX_PCT))
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(SMALL)
        .axis_desc_style(SMALL)
        .x_desc(what)
        .y_desc("% that are shorter")
        .x_label_formatter(&time_label)
        .y_labels(5)
        .y_label_formatter(&|at| format!("{}", 100.0 - 100.0 * 10f64.powf(-at)))
        .draw()
        .map_err(failed)?;
    for (nth, name, curve) in curves {
        let points = CURVE_PCT.iter().zip(*curve).map(|(&pct, &us)| (us.max(min), nines(pct)));
        let style = colour(*nth).stroke_width(3);
        chart
            .draw_series(LineSeries::new(points, style))
            .map_err(failed)?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
    }
    legend(&mut chart, SeriesLabelPosition::LowerRight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_run_into_each_other() {
        let labels = |times: &[f64]| times.iter().map(time_label).collect::<Vec<_>>();
        assert_eq!(
            labels(&[0.2, 1.0, 10.0, 20.0, 50.0, 1000.0]),
            ["0.2", "1", "10", "20", "50", "1000"]
        );
        assert_eq!(labels(&[30.0, 60.0, 70.0, 80.0, 90.0, 400.0]), [""; 6]);
    }

    #[test]
    fn each_nine_takes_as_much_room() {
        assert!((nines(90.0) - 1.0).abs() < 1e-9 && (nines(99.9) - 3.0).abs() < 1e-9);
        assert!(nines(100.0).is_finite());
    }
}
