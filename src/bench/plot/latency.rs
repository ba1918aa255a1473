//! Latencies: how long, and how many are shorter.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;
use powerpack_load::samples::CURVE_PCT;

use super::first_runs;
use crate::bench::results::{LoadInfo, Results, Run};
use crate::plot::{Area, WIDTH, colour, draw, failed, legend, mesh};

/// A system's number and name, and its latencies (us) at [`CURVE_PCT`].
type Curve<'a> = (usize, &'a str, &'a [f64]);

/// The shares that the axis goes to: the longest is beyond.
const MAX_PCT: f64 = 99.99;
/// A logarithm needs a beginning (us).
const MIN_US: f64 = 0.1;
const MARGIN: u32 = 12;
/// Room for the labels of the shares.
const Y_LABELS_PX: u32 = 80;
const AXIS_PX: f64 = (WIDTH - 2 * MARGIN - Y_LABELS_PX) as f64;
/// How wide a digit of a label is.
const DIGIT_PX: f64 = 10.0;
/// Lines of a power of ten, and their smallest distance in powers of ten.
const STEPS: [(&[f64], f64); 4] = [
    (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 0.045),
    (&[1.0, 2.0, 5.0], 0.3),
    (&[1.0, 3.0], 0.47),
    (&[1.0], 1.0),
];

/// The picture of the wake-up latencies; `None` if none were measured.
pub fn wake_latency(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    picture(results, load, "wake-up latency, us", |run| &run.wake_curve_us)
}

/// The picture of the responses, of a load whose wake-ups were not measured; `None` if there
/// are no responses either.
pub fn response(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    if runs.iter().any(|(.., run)| !run.wake_curve_us.is_empty()) {
        return Ok(None);
    }
    picture(results, load, "response, us", |run| &run.response_curve_us)
}

fn picture(
    results: &Results,
    load: &LoadInfo,
    what: &str,
    curve: fn(&Run) -> &Vec<f64>,
) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    let curves: Vec<Curve> =
        runs.iter().map(|(nth, name, run)| (*nth, *name, curve(run).as_slice())).collect();
    if curves.iter().all(|(.., curve)| curve.is_empty()) {
        return Ok(None);
    }
    draw(420, |area| paint(area, &curves, what)).map(Some)
}

/// Where a share of the times lies on the axis: each nine more takes as much room.
fn nines(pct: f64) -> f64 {
    -(1.0 - pct.min(MAX_PCT) / 100.0).log10()
}

/// The lines of an axis of times: of each power of ten as many as have room for their labels.
fn ticks(range: &Range<f64>) -> Vec<f64> {
    let decade_px = AXIS_PX / (range.end / range.start).log10();
    let digits = time_label(&range.end).len().max(3);
    let label_decades = (digits as f64 + 1.5) * DIGIT_PX / decade_px;
    let (steps, _) = STEPS.into_iter().find(|(_, gap)| *gap >= label_decades).unwrap_or(STEPS[3]);
    let stride = label_decades.ceil().max(1.0) as usize;
    let (first, last) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let powers = (first..=last).step_by(stride).map(|power| 10f64.powi(power));
    let ticks: Vec<f64> = powers
        .flat_map(|power| steps.iter().map(move |step| step * power))
        .filter(|us| range.contains(us))
        .collect();
    // Between two lines.
    if ticks.len() < 2 { vec![range.start, range.end] } else { ticks }
}

fn time_label(us: &f64) -> String {
    let digits = if *us < 10.0 { 10.0 } else { 1.0 };
    format!("{}", (us * digits).round() / digits)
}

fn paint(area: &Area, curves: &[Curve], what: &str) -> Result<()> {
    let all = || curves.iter().flat_map(|(.., curve)| curve.iter().copied());
    let max = all().fold(MIN_US * 10.0, f64::max);
    let min = all().fold(f64::MAX, f64::min).max(MIN_US);
    let range = min..max * 1.1;
    let ticks = ticks(&range);
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(56)
        .y_label_area_size(Y_LABELS_PX)
        .build_cartesian_2d(range.log_scale().with_key_points(ticks), 0.0..nines(MAX_PCT))
        .map_err(failed)?;
    mesh(&mut chart)
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
        let labels = |range| ticks(&range).iter().map(time_label).collect::<Vec<_>>();
        assert_eq!(labels(0.1..20.0), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(
            labels(100.0..200_000.0),
            ["100", "300", "1000", "3000", "10000", "30000", "100000"]
        );
        assert_eq!(labels(0.1..30_000_000.0), ["0.1", "10", "1000", "100000", "10000000"]);
    }

    #[test]
    fn an_axis_without_a_power_of_ten_has_labels() {
        let labels = |range| ticks(&range).iter().map(time_label).collect::<Vec<_>>();
        assert_eq!(labels(20.0..99.0), ["20", "50"]);
        assert_eq!(labels(3.3..3.6), ["3.3", "3.6"]);
    }

    #[test]
    fn each_nine_takes_as_much_room() {
        assert!((nines(90.0) - 1.0).abs() < 1e-9 && (nines(99.9) - 3.0).abs() < 1e-9);
        assert!(nines(100.0).is_finite());
    }
}
