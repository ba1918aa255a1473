//! The report: one file that needs nothing else, not even scripts.

use anyhow::{Context, Result};
use serde::Serialize;
use tera::Tera;

use super::cells::{Table, remarks, tables};
use super::plot;
use super::results::{LoadInfo, Results};

const TEMPLATE: &str = include_str!("report.html");

/// What the template names.
#[derive(Serialize)]
struct Page<'a> {
    results: &'a Results,
    remarks: Vec<String>,
    power: Option<String>,
    sections: Vec<Section>,
}

/// A table with its pictures.
#[derive(Serialize)]
struct Section {
    table: Table,
    pictures: Vec<Picture>,
}

/// A picture and what it shows.
#[derive(Serialize)]
struct Picture {
    caption: String,
    svg: String,
}

/// The page. Fails only by a mistake in the program.
pub fn page(results: &Results) -> Result<String> {
    let mut sections = vec![];
    for table in tables(results) {
        let load = results.loads.iter().find(|load| load.name == table.title);
        let pictures = load.map_or(Ok(vec![]), |load| pictures(results, load))?;
        sections.push(Section { table, pictures });
    }
    let page = Page { results, remarks: remarks(results), power: plot::power(results)?, sections };
    let values = tera::Context::from_serialize(&page)?;
    // What it names is escaped, unless it says `safe`.
    let is_escaped = true;
    Tera::one_off(TEMPLATE, &values, is_escaped).context("report.html")
}

fn pictures(results: &Results, load: &LoadInfo) -> Result<Vec<Picture>> {
    let all = [
        ("Which CPUs were busy: each part is one CPU", plot::non_idle(results, load)?),
        ("When each CPU was busy, in the first round", plot::heat(results, load)?),
        ("Wake-up latency; further left is better", plot::wake_latency(results, load)?),
        ("Response; further left is better", plot::response(results, load)?),
    ];
    let picture = |(caption, svg): (&str, Option<String>)| {
        Some(Picture { caption: caption.to_owned(), svg: svg? })
    };
    Ok(all.into_iter().filter_map(picture).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cells::tests::benchmark;
    use crate::bench::results::Heat;

    #[test]
    fn the_page_has_its_tables_and_pictures_and_needs_nothing_else() {
        let mut results = benchmark(110.0);
        results.machine.model = "<b>a & b</b>".into();
        for run in &mut results.runs {
            run.non_idle_pct = vec![20.0, 5.0];
            run.wake_curve_us = (1..=12).map(f64::from).collect();
            run.heat = Some(Heat { interval_s: 1.0, non_idle_pct: vec![vec![0, 50]; 2] });
        }
        let page = page(&results).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(page.contains("+10.0 %") && page.contains("&lt;b&gt;a &amp; b"));
        for reference in ["<script", "<link", "@import", "src=\"http", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn without_runs_there_is_a_page_too() {
        let mut results = benchmark(1.0);
        results.runs.clear();
        assert!(page(&results).unwrap().contains("power: none"));
    }
}
