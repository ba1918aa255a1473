//! Which CPUs were busy when: a strip for each system, a row for each CPU.

use anyhow::Result;
use plotters::prelude::*;

use super::first_runs;
use crate::bench::results::{Heat, LoadInfo, Results};
use crate::plot::{Area, FONT, SMALL, draw, failed};

/// More rows or columns than these cannot be distinguished.
const HEAT_ROWS_MAX: usize = 64;
const HEAT_COLUMNS_MAX: usize = 100;

/// The picture; `None` if nothing was measured.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_at_all_is_seen() {
        let heat = Heat { interval_s: 1.0, non_idle_pct: vec![vec![0, 1, 50, 100]; 2] };
        assert_eq!(coarse(&heat), [[0, 2, 12, 16]; 2]);
        let wide = Heat { interval_s: 1.0, non_idle_pct: vec![vec![100; 1000]; 256] };
        let cells = coarse(&wide);
        assert_eq!((cells.len(), cells[0].len()), (HEAT_ROWS_MAX, HEAT_COLUMNS_MAX));
        assert_eq!((shade(0), shade(SHADES)), (RGBColor(240, 243, 247), RGBColor(8, 48, 107)));
    }
}
