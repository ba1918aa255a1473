//! What our modes save on each machine, as a picture.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;

use super::draw::{BY_ENERGY, Case};
use super::ratios::Ratios;
use crate::plot::{Area, colour, draw, failed, legend, mesh};
use crate::settings::policy::Mode;

/// The kernel's own class where it does not place by energy.
const ANYWHERE: &str = "eevdf";
/// A line goes from here to here: nine tenths of the draws are between.
const QUANTILES: [f64; 2] = [0.05, 0.95];
const MODES: [Mode; 2] = [Mode::Packing, Mode::Energy];
/// In pixels.
const PLACE_HEIGHT: u32 = 22;
/// The legend's, in places.
const LEGEND_PLACES: usize = 3;

/// A machine, what the kernel's own class is called there, and energy over that of each mode.
struct Row {
    machine: String,
    kernel: &'static str,
    over: Vec<Ratios>,
}

/// Energy for the same work over the kernel's own, the mean of all loads: a dot for the mean of all draws,
/// and a line for nine tenths of them.
pub fn picture(cases: &[Case]) -> Result<String> {
    let rows = rows(cases);
    let places = rows.len() * MODES.len() + LEGEND_PLACES;
    draw(80 + PLACE_HEIGHT * places as u32, |area| paint(area, &rows))
}

fn rows(cases: &[Case]) -> Vec<Row> {
    let same = |a: &Case, b: &Case| a.machine == b.machine;
    cases.chunk_by(same).filter_map(row).collect()
}

fn row(cases: &[Case]) -> Option<Row> {
    let by_energy = cases[0].systems.iter().any(|system| system == BY_ENERGY);
    let kernel = if by_energy { BY_ENERGY } else { ANYWHERE };
    let over = |mode: Mode| {
        let of_loads: Vec<Ratios> =
            cases.iter().filter_map(|case| case.over(mode.name(), kernel)).collect();
        Ratios::mean_of(&of_loads)
    };
    let over = MODES.into_iter().map(over).collect::<Option<_>>()?;
    Some(Row { machine: cases[0].machine.clone(), kernel, over })
}

fn paint(area: &Area, rows: &[Row]) -> Result<()> {
    // A place for each mode of each machine, from the top, below those of the legend.
    let places = rows.len() * MODES.len() + LEGEND_PLACES;
    let place = |at: usize, nth: usize| places - 1 - LEGEND_PLACES - at * MODES.len() - nth;
    let name = |value: &SegmentValue<usize>| {
        let is_first =
            |at: &usize| matches!(value, SegmentValue::CenterOf(of) if *of == place(*at, 0));
        let at = (0..rows.len()).find(is_first);
        at.map_or(String::new(), |at| format!("{} ({})", rows[at].machine, rows[at].kernel))
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(56)
        .y_label_area_size(190)
        .build_cartesian_2d(range(rows), (0..places).into_segmented())
        .map_err(failed)?;
    mesh(&mut chart)
        .disable_y_mesh()
        .x_desc("energy for the same work, the kernel's scheduler (in brackets) = 1")
        .x_labels(8)
        .y_labels(places)
        .y_label_formatter(&name)
        .draw()
        .map_err(failed)?;
    let ends = [SegmentValue::Exact(0), SegmentValue::Exact(places - LEGEND_PLACES)];
    let one = PathElement::new(ends.map(|end| (1.0, end)), BLACK.stroke_width(1));
    chart.draw_series([one]).map_err(failed)?;
    for (nth, mode) in MODES.into_iter().enumerate() {
        let shade = colour(nth + 1);
        let bar = |(at, row): (usize, &Row)| {
            let [low, high] = QUANTILES.map(|quantile| row.over[nth].quantile(quantile));
            let (mean, style) = (row.over[nth].mean(), shade.filled().stroke_width(3));
            let place = SegmentValue::CenterOf(place(at, nth));
            ErrorBar::new_horizontal(place, low, mean, high, style, 9)
        };
        chart
            .draw_series(rows.iter().enumerate().map(bar))
            .map_err(failed)?
            .label(mode.name())
            .legend(move |(x, y)| Circle::new((x + 8, y), 6, shade.filled()));
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

/// All lines and 1, with some room.
fn range(rows: &[Row]) -> Range<f64> {
    const ROOM: f64 = 0.03;
    let ends = |quantile: f64| {
        rows.iter().flat_map(|row| &row.over).map(move |ratios| ratios.quantile(quantile))
    };
    let low = ends(QUANTILES[0]).fold(1.0, f64::min);
    low - ROOM..ends(QUANTILES[1]).fold(1.0, f64::max) + ROOM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::tables::draws::DRAWN;

    #[test]
    fn each_machine_is_beside_the_kernel_that_it_would_have() {
        let case = |machine: &str, load: &str| DRAWN.simulate(machine, load, 2).unwrap();
        let cases = [case("phone", "tiny"), case("phone", "audio"), case("handheld", "tiny")];
        let rows = rows(&cases);
        let names: Vec<_> = rows.iter().map(|row| (row.machine.as_str(), row.kernel)).collect();
        assert_eq!(names, [("phone", "eas"), ("handheld", "eevdf")]);
        let of_loads = [&cases[0], &cases[1]].map(|case| case.over("packing", "eas").unwrap());
        let mean = Ratios::mean_of(&of_loads).unwrap().mean();
        assert_eq!(rows[0].over[0].mean(), mean);
        let svg = picture(&cases).unwrap();
        assert!(svg.contains("phone (eas)") && svg.contains("handheld (eevdf)"), "{svg}");
    }
}
