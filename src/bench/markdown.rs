//! A benchmark as a page for docs/, in Markdown.

use super::cells;
use super::results::Results;
use super::table;

/// The page, without its title: what was measured where, and a section for each table.
pub fn page(results: &Results) -> String {
    let machine = &results.machine;
    let rounds = results.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let mut text = format!(
        "{}. {}, {}: {} CPUs, {} cores, {} LLCs; rounds: {rounds}. What each figure means is in\n\
         [measuring.md](measuring.md).\n",
        results.about, machine.kernel, machine.model, machine.cpus, machine.cores, machine.llcs
    );
    for table in cells::tables(results) {
        text += &format!("\n## {}\n\n", table.title);
        if !table.about.is_empty() {
            text += &format!("{}.\n\n", table.about);
        }
        text += &format!("{}\n", table::rows(&table));
        for note in &table.notes {
            text += &format!("\n{note}\n");
        }
    }
    for remark in cells::remarks(results) {
        text += &format!("\n{remark}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_section_for_each_load_and_its_figures() {
        let text = page(&cells::tests::benchmark(110.0));
        for words in ["\n## light\n\n", "| records/s", "110 +10.0 %", "\nNot measured: power"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
