//! Power against performance; where power cannot be measured, non-idle time. A load that does as much as it is asked
//! for performs better if it answers sooner.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;

use crate::bench::metric::Metric;
use crate::bench::results::{LoadInfo, Results};
use crate::bench::summary::Summary;
use crate::plot::{Area, colour, draw, failed, legend, mesh};

/// What a load costs under a system, and what is done, both relative to the first system.
struct Point<'a> {
    system: usize,
    load: &'a str,
    cost: f64,
    rate: f64,
}

/// Loads that differ by less are dots without a name.
const NAMED_FROM: f64 = 0.03;

/// The picture; `None` if there is nothing to compare.
pub fn power(results: &Results) -> Result<Option<String>> {
    let has_power = results.runs.iter().any(|run| run.figures.contains_key(&Metric::PowerW));
    let (cost, what) = if has_power {
        (Metric::PowerW, "power")
    } else {
        (Metric::NonIdlePct, "non-idle time (power cannot be measured here)")
    };
    let points: Vec<Point> =
        results.loads.iter().flat_map(|load| points_of(results, load, cost)).collect();
    // A dot at 1 is no picture.
    if points.iter().all(|point| point.system == 0) {
        return Ok(None);
    }
    draw(460, |area| paint(area, results, &points, what)).map(Some)
}

fn points_of<'a>(results: &'a Results, load: &'a LoadInfo, cost: Metric) -> Vec<Point<'a>> {
    let median = |system: &str, metric| {
        Summary::of(results.values(&load.name, system, metric)).map(|summary| summary.median)
    };
    let per_response = |system: &str| {
        median(system, Metric::ResponseP99Us).filter(|us| *us > 0.0).map(|us| 1.0 / us)
    };
    let rate = |system: &str| median(system, Metric::RecordsPerS).or_else(|| per_response(system));
    let both = |system: &str| Some((median(system, cost)?, rate(system)?));
    let Some((base_cost, base_rate)) = both(&results.systems[0].name) else { return vec![] };
    let point = |(system, name): (usize, &str)| {
        let (cost, rate) = both(name)?;
        Some(Point { system, load: &load.name, cost: cost / base_cost, rate: rate / base_rate })
    };
    let names = results.systems.iter().map(|system| system.name.as_str());
    names.enumerate().filter_map(point).collect()
}

/// All of them, with some room.
fn range(points: &[Point], of: fn(&Point) -> f64) -> Range<f64> {
    let min = points.iter().map(of).fold(f64::MAX, f64::min);
    let max = points.iter().map(of).fold(0.0, f64::max);
    let room = (max - min).max(0.1) * 0.12;
    (min - room)..(max + room)
}

/// The corner with the fewest points, for the legend.
fn free_corner(points: &[Point]) -> SeriesLabelPosition {
    let middle = |of: fn(&Point) -> f64| {
        let range = range(points, of);
        (range.start + range.end) / 2.0
    };
    let (cost, rate) = (middle(|point| point.cost), middle(|point| point.rate));
    let points_in = |left: bool, upper: bool| {
        let inside = |point: &&Point| (point.cost < cost) == left && (point.rate >= rate) == upper;
        points.iter().filter(inside).count()
    };
    [
        (points_in(true, true), SeriesLabelPosition::UpperLeft),
        (points_in(false, false), SeriesLabelPosition::LowerRight),
        (points_in(false, true), SeriesLabelPosition::UpperRight),
        (points_in(true, false), SeriesLabelPosition::LowerLeft),
    ]
    .into_iter()
    .min_by_key(|(points, _)| *points)
    .map_or(SeriesLabelPosition::UpperLeft, |(_, corner)| corner)
}

fn paint(area: &Area, results: &Results, points: &[Point], what: &str) -> Result<()> {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(56)
        .y_label_area_size(84)
        .build_cartesian_2d(range(points, |point| point.cost), range(points, |point| point.rate))
        .map_err(failed)?;
    mesh(&mut chart)
        .x_desc(format!("{what}, {} = 1", results.systems[0].name))
        .y_desc(format!("records/s, or 1 / response (99 %), {} = 1", results.systems[0].name))
        .x_labels(6)
        .y_labels(6)
        .draw()
        .map_err(failed)?;
    for (nth, system) in results.systems.iter().enumerate() {
        let own: Vec<&Point> = points.iter().filter(|point| point.system == nth).collect();
        if own.is_empty() {
            continue;
        }
        // Near 1 there are many, and nothing to be said.
        let is_far =
            |point: &Point| (point.cost - 1.0).abs().max((point.rate - 1.0).abs()) >= NAMED_FROM;
        let name = |point: &Point| if is_far(point) { point.load } else { "" }.to_owned();
        let dot = |point: &Point| {
            EmptyElement::at((point.cost, point.rate))
                + Circle::new((0, 0), 6, colour(nth).filled())
                + Text::new(name(point), (9, -8), ("sans-serif", 13))
        };
        chart
            .draw_series(own.into_iter().map(dot))
            .map_err(failed)?
            .label(&system.name)
            .legend(move |(x, y)| Circle::new((x + 8, y), 6, colour(nth).filled()));
    }
    legend(&mut chart, free_corner(points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cells::tests::benchmark;

    #[test]
    fn what_does_as_much_as_it_is_asked_for_is_faster_if_it_answers_sooner() {
        let mut results = benchmark(110.0);
        for run in &mut results.runs {
            run.figures.remove(&Metric::RecordsPerS);
            let response_us = if run.system == results.systems[0].name { 3000.0 } else { 6000.0 };
            run.figures.insert(Metric::ResponseP99Us, response_us);
            run.figures.insert(Metric::PowerW, 2.0);
        }
        let points = points_of(&results, &results.loads[0], Metric::PowerW);
        let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
        assert_eq!(rates, [1.0, 0.5]);
        assert!(power(&results).unwrap().unwrap().contains("1 / response"));
    }
}
