//! What all pictures share: their size, letters, colours and axes, as SVG.

use anyhow::{Result, anyhow};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

/// Wide enough for a page, and with letters that can be read on a phone.
pub const WIDTH: u32 = 760;
pub const FONT: (&str, i32) = ("sans-serif", 20);
pub const SMALL: (&str, i32) = ("sans-serif", 17);
/// Okabe and Ito's, which the colour-blind can distinguish.
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

/// Where a picture is painted.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws on a white area of `height`.
pub fn draw(height: u32, paint: impl FnOnce(&Area) -> Result<()>) -> Result<String> {
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

pub fn failed(err: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {err}")
}

pub fn colour(nth: usize) -> RGBColor {
    COLOURS[nth % COLOURS.len()]
}

/// The axes of a picture: letters of one size, and no lines but those with a label.
pub fn mesh<'a, 'b, X, Y>(
    chart: &'b mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
) -> MeshStyle<'a, 'b, X, Y, SVGBackend<'a>>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).label_style(SMALL).axis_desc_style(SMALL);
    mesh
}

/// The legend, in a corner.
pub fn legend<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    corner: SeriesLabelPosition,
) -> Result<()>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    chart
        .configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font(SMALL)
        .draw()
        .map_err(failed)
}
