//! A benchmark as a page for docs/, in Markdown.

use super::cells;
use super::join::join;
use super::results::Results;
use super::table;

/// The page, without its title: what was measured where, and a section for each table.
pub fn page(all: Vec<Results>) -> String {
    let mut machines: Vec<String> = all.iter().map(machine).collect();
    machines.dedup();
    let results = &join(all);
    let rounds = results.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let mut text = format!(
        "{}. {}; rounds: {rounds}. What each figure means is in\n[measuring.md](measuring.md).\n",
        results.about,
        machines.join("; ")
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

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let (kernel, model) = (&machine.kernel, &machine.model);
    let (cpus, cores, llcs) = (machine.cpus, machine.cores, machine.llcs);
    format!("{kernel}, {model}: {cpus} CPUs, {cores} cores, {llcs} LLCs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_section_for_each_load_and_its_figures() {
        let text = page(vec![cells::tests::benchmark(110.0)]);
        for words in ["\n## light\n\n", "| records/s", "110 +10.0 %", "\nNot measured: power"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
