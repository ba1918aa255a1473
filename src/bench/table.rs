//! The tables in the terminal.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement};

use super::cells::{self, Table};
use super::results::Results;

/// Narrower terminals have lines wrapped by themselves.
const WIDTH_MIN: u16 = 60;

/// All of a benchmark.
pub fn all(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "\n{}: {}\n{}, {}: {} CPUs, {} cores, {} LLCs, {} packages\n",
        results.suite,
        results.about,
        machine.kernel,
        machine.model,
        machine.cpus,
        machine.cores,
        machine.llcs,
        machine.packages
    );
    for table in cells::tables(results) {
        text += &one(&table);
    }
    if let Some(first) = results.systems.first() {
        text += &format!(
            "\nMedian (min-max); beside it the difference to {}: = is none, or within the noise.\n",
            first.name
        );
    }
    for remark in cells::remarks(results) {
        text += &format!("{remark}\n");
    }
    text
}

fn one(table: &Table) -> String {
    let mut cells = rows(table);
    // What is not shown on a terminal is not cut to one.
    if cells.width().is_some_and(|width| width >= WIDTH_MIN) {
        cells.set_content_arrangement(ContentArrangement::Dynamic);
    }
    let notes: String = table.notes.iter().map(|note| format!("{note}\n")).collect();
    let about = if table.about.is_empty() { "" } else { &format!(": {}", table.about) };
    format!("\n{}{about}\n{cells}\n{notes}", table.title)
}

/// The heading and the rows, as Markdown.
pub fn rows(table: &Table) -> comfy_table::Table {
    let mut cells = comfy_table::Table::new();
    cells.load_style(ASCII_MARKDOWN);
    cells.set_header(&table.heading);
    for row in &table.rows {
        cells.add_row(row.iter().map(cells::Cell::line));
    }
    for column in cells.column_iter_mut().skip(table.names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_figures_and_what_is_missing() {
        let text = all(&cells::tests::benchmark(110.0));
        for words in ["light: eight threads", "records/s", "110 +10.0 %", "Not measured: power"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
