//! The pictures of the report, as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use powerpack_load::samples::CURVE_PCT;

use super::metric::Metric;
use super::results::{Heat, LoadInfo, Results, Run};
use super::summary::Summary;

/// Wide enough for a page, and with letters that can be read on a phone.
const WIDTH: u32 = 760;
const FONT: (&str, i32) = ("sans-serif", 20);
const SMALL: (&str, i32) = ("sans-serif", 17);
/// Okabe and Ito's, which the colour-blind can tell apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(90, 90, 90),
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(240, 228, 66),
];
/// More rows or columns than these cannot be told apart.
const HEAT_ROWS_MAX: usize = 64;
const HEAT_COLUMNS_MAX: usize = 100;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws on a white area of `height`.
fn draw(height: u32, paint: impl FnOnce(&Area) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        paint(&area)?;
        area.present().map_err(failed)?;
    }
    // As wide as the page, whatever that is.
    let size = format!("width=\"{WIDTH}\" height=\"{height}\" ");
    Ok(svg.replacen(&size, "", 1))
}

fn failed(err: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {err}")
}

fn colour(nth: usize) -> RGBColor {
    COLOURS[nth % COLOURS.len()]
}

/// The systems that have runs of `load`, with their numbers and the first run.
fn first_runs<'a>(results: &'a Results, load: &str) -> Vec<(usize, &'a str, &'a Run)> {
    let run = |(nth, name): (usize, &'a str)| Some((nth, name, results.of(load, name).next()?));
    let names = results.systems.iter().map(|system| system.name.as_str());
    names.enumerate().filter_map(run).collect()
}

/// Non-idle time of each CPU: a bar for each system, of the CPUs' parts.
pub fn non_idle(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    let total = |run: &Run| run.non_idle_pct.iter().sum::<f64>();
    let most = runs.iter().map(|(.., run)| total(run)).fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(None);
    }
    let rows = runs.len();
    draw(80 + 44 * rows as u32, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(52)
            .y_label_area_size(180)
            .build_cartesian_2d(0.0..most * 1.05, (0..rows).into_segmented())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(SMALL)
            .axis_desc_style(SMALL)
            .x_desc("non-idle, % of a CPU; each part is a CPU")
            .y_labels(rows)
            .y_label_formatter(&|row| match row {
                SegmentValue::CenterOf(row) if *row < rows => short(runs[rows - 1 - row].1),
                _ => String::new(),
            })
            .draw()
            .map_err(failed)?;
        for (at, (nth, _, run)) in runs.iter().rev().enumerate() {
            let mut begin = 0.0;
            for (cpu, share) in run.non_idle_pct.iter().enumerate() {
                let corners = [
                    (begin, SegmentValue::Exact(at)),
                    (begin + share, SegmentValue::Exact(at + 1)),
                ];
                let shade = if cpu % 2 == 0 { 1.0 } else { 0.55 };
                let mut bar = Rectangle::new(corners, colour(*nth).mix(shade).filled());
                bar.set_margin(7, 7, 0, 0);
                chart.draw_series([bar]).map_err(failed)?;
                begin += share;
            }
        }
        Ok(())
    })
    .map(Some)
}

/// "scx_lavd --powersave" is too long beside a bar.
fn short(name: &str) -> String {
    const LETTERS_MAX: usize = 18;
    if name.chars().count() <= LETTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}

/// Who was busy when: a strip for each system, a row for each CPU.
pub fn heat(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let runs = first_runs(results, &load.name);
    let heats: Vec<_> =
        runs.iter().filter_map(|(_, name, run)| Some((*name, run.heat.as_ref()?))).collect();
    let Some((_, first)) = heats.first() else { return Ok(None) };
    let rows = first.non_idle_pct.len().clamp(1, HEAT_ROWS_MAX) as u32;
    let strip = 46 + (rows * 22).min(240);
    draw(strip * heats.len() as u32 + 44, |area| {
        let (strips, axis) = area.split_vertically(strip * heats.len() as u32);
        for ((name, heat), strip) in heats.iter().zip(strips.split_evenly((heats.len(), 1))) {
            paint_heat(&strip, name, heat)?;
        }
        let seconds = first.interval_s * first.non_idle_pct[0].len() as f64;
        let words = format!("{seconds:.0} s; a row is a CPU, CPU 0 on top; dark is busy");
        axis.draw(&Text::new(words, (12, 10), SMALL)).map_err(failed)
    })
    .map(Some)
}

fn paint_heat(area: &Area, name: &str, heat: &Heat) -> Result<()> {
    let cells = coarse(heat);
    let (rows, columns) = (cells.len() as i32, cells[0].len() as i32);
    area.draw(&Text::new(name.to_owned(), (12, 8), FONT)).map_err(failed)?;
    let (width, height) = area.dim_in_pixel();
    let (left, top) = (12, 34);
    let (width, height) = (width as i32 - 2 * left, height as i32 - top - 6);
    for (row, shares) in cells.iter().enumerate() {
        let [y, below] = [row as i32, row as i32 + 1].map(|row| top + height * row / rows);
        // Runs of one shade are one rectangle: a tenth of the file.
        let mut from = 0;
        for to in 1..=shares.len() {
            if to < shares.len() && shares[to] == shares[from] {
                continue;
            }
            let [x, right] = [from, to].map(|column| left + width * column as i32 / columns);
            let shade = shade(shares[from]);
            let cell = Rectangle::new([(x, y), (right, below - 1)], shade.filled());
            area.draw(&cell).map_err(failed)?;
            from = to;
        }
    }
    Ok(())
}

/// Steps of shade, 0 = idle.
const SHADES: u32 = 16;

/// From nearly white to dark blue.
fn shade(step: u32) -> RGBColor {
    let part = |light: u32, dark: u32| (light - (light - dark) * step / SHADES) as u8;
    RGBColor(part(240, 8), part(243, 48), part(247, 107))
}

/// Of neighbours the mean, so that there are not too many to see; in steps of shade.
fn coarse(heat: &Heat) -> Vec<Vec<u32>> {
    let by_row = heat.non_idle_pct.len().div_ceil(HEAT_ROWS_MAX).max(1);
    let by_column = heat.non_idle_pct[0].len().div_ceil(HEAT_COLUMNS_MAX).max(1);
    let mean = |rows: &[Vec<u8>], from: usize| {
        let cells = rows.iter().flat_map(|row| row.iter().skip(from).take(by_column));
        let (sum, nr) = cells.fold((0, 0), |(sum, nr), &pct| (sum + u32::from(pct), nr + 1));
        // What ran at all is to be seen, and light loads are to have contrast: the root.
        let share = f64::from(sum) / f64::from(100 * nr.max(1));
        (share.sqrt() * f64::from(SHADES)).ceil().min(f64::from(SHADES)) as u32
    };
    let columns = heat.non_idle_pct[0].len();
    let row = |rows: &[Vec<u8>]| (0..columns).step_by(by_column).map(|at| mean(rows, at)).collect();
    heat.non_idle_pct.chunks(by_row).map(row).collect()
}

/// Where a share of the times lies on the axis: each nine more takes as much room.
fn nines(pct: f64) -> f64 {
    -(1.0 - pct.min(99.99) / 100.0).log10()
}

/// Latencies: how long, and how many are shorter.
pub fn latency(results: &Results, load: &LoadInfo) -> Result<Option<String>> {
    let curve = |run: &Run| {
        let of_wake = &run.wake_curve_us;
        if of_wake.is_empty() { run.response_curve_us.clone() } else { of_wake.clone() }
    };
    let runs = first_runs(results, &load.name);
    let curves: Vec<_> = runs.iter().map(|(nth, name, run)| (*nth, *name, curve(run))).collect();
    let all = || curves.iter().flat_map(|(.., curve)| curve.iter().copied());
    let most = all().fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(None);
    }
    let least = all().fold(f64::MAX, f64::min).max(0.1);
    let is_wake = runs.iter().any(|(.., run)| !run.wake_curve_us.is_empty());
    let what = if is_wake { "wake-up latency" } else { "response" };
    draw(420, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(56)
            .y_label_area_size(80)
            .build_cartesian_2d((least..most * 1.1).log_scale(), 0.0..nines(99.99))
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(SMALL)
            .axis_desc_style(SMALL)
            .x_desc(format!("{what}, us"))
            .y_desc("% that are shorter")
            .y_labels(5)
            .y_label_formatter(&|at| format!("{}", 100.0 - 100.0 * 10f64.powf(-at)))
            .draw()
            .map_err(failed)?;
        for (nth, name, curve) in &curves {
            let points = CURVE_PCT.iter().zip(curve).map(|(&pct, &us)| (us.max(least), nines(pct)));
            let style = colour(*nth).stroke_width(3);
            chart
                .draw_series(LineSeries::new(points, style))
                .map_err(failed)?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(SMALL)
            .draw()
            .map_err(failed)
    })
    .map(Some)
}

/// Power against performance: where there is no power, non-idle time.
pub fn power(results: &Results) -> Result<Option<String>> {
    let has_power = results.runs.iter().any(|run| run.figures.contains_key(&Metric::PowerW));
    let cost = if has_power { Metric::PowerW } else { Metric::NonIdlePct };
    let median = |load: &LoadInfo, system: &str, metric| {
        Summary::of(results.values(&load.name, system, metric)).map(|summary| summary.median)
    };
    let mut points = vec![];
    for load in &results.loads {
        let base = &results.systems[0].name;
        let all = |system: &str| {
            Some((median(load, system, cost)?, median(load, system, Metric::RecordsPerS)?))
        };
        let Some((base_cost, base_rate)) = all(base) else { continue };
        for (nth, system) in results.systems.iter().enumerate() {
            if let Some((cost, rate)) = all(&system.name) {
                points.push((nth, load.name.as_str(), cost / base_cost, rate / base_rate));
            }
        }
    }
    if points.len() < 2 {
        return Ok(None);
    }
    let range = |of: fn(&(usize, &str, f64, f64)) -> f64| {
        let least = points.iter().map(of).fold(f64::MAX, f64::min);
        let most = points.iter().map(of).fold(0.0, f64::max);
        let room = (most - least).max(0.1) * 0.12;
        (least - room)..(most + room)
    };
    let what = if has_power { "power" } else { "non-idle time (power cannot be measured here)" };
    draw(460, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(56)
            .y_label_area_size(84)
            .build_cartesian_2d(range(|point| point.2), range(|point| point.3))
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(SMALL)
            .axis_desc_style(SMALL)
            .x_desc(format!("{what}, {} = 1", results.systems[0].name))
            .y_desc("records/s, likewise")
            .x_labels(6)
            .y_labels(6)
            .draw()
            .map_err(failed)?;
        for (nth, system) in results.systems.iter().enumerate() {
            let own: Vec<_> = points.iter().filter(|point| point.0 == nth).collect();
            if own.is_empty() {
                continue;
            }
            let dot = |&(_, load, x, y): &(usize, &str, f64, f64)| {
                EmptyElement::at((x, y))
                    + Circle::new((0, 0), 6, colour(nth).filled())
                    + Text::new(
                        if nth > 0 { load.to_owned() } else { String::new() },
                        (9, -8),
                        ("sans-serif", 13),
                    )
            };
            chart
                .draw_series(own.into_iter().map(dot))
                .map_err(failed)?
                .label(&system.name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 6, colour(nth).filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(SMALL)
            .draw()
            .map_err(failed)
    })
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_at_all_is_seen_in_the_heat() {
        let heat = Heat { interval_s: 1.0, non_idle_pct: vec![vec![0, 1, 50, 100]; 2] };
        assert_eq!(coarse(&heat), [[0, 2, 12, 16]; 2]);
        let wide = Heat { interval_s: 1.0, non_idle_pct: vec![vec![100; 1000]; 256] };
        let cells = coarse(&wide);
        assert_eq!((cells.len(), cells[0].len()), (HEAT_ROWS_MAX, HEAT_COLUMNS_MAX));
    }

    #[test]
    fn the_shades_differ() {
        assert_eq!((shade(0), shade(SHADES)), (RGBColor(240, 243, 247), RGBColor(8, 48, 107)));
        assert!((nines(99.0) - 2.0).abs() < 1e-9 && nines(100.0) < 5.0);
        assert_eq!(short("scx_lavd --powersave"), "scx_lavd --powers…");
    }
}
