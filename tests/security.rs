//! docs/security.md speaks of all that there is: each line of the units, and each function of the kernel
//! that the BPF programs call.

use std::collections::BTreeSet;
use std::fs;

fn page() -> String {
    fs::read_to_string("docs/security.md").unwrap()
}

/// What of `wanted` the page does not have in backquotes.
fn missing(wanted: impl IntoIterator<Item = String>) -> Vec<String> {
    let page = page();
    wanted.into_iter().filter(|word| !page.contains(&format!("`{word}`"))).collect()
}

/// The settings of a unit: all but comments, headings and what is for readers.
fn settings(unit: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("packaging/{unit}")).unwrap();
    let is_setting =
        |line: &&str| line.contains('=') && !line.starts_with('#') && !line.starts_with("D");
    text.lines().filter(is_setting).map(str::to_owned).collect()
}

#[test]
fn each_line_of_the_units_is_explained() {
    for (unit, nr) in [("scx_powerpack.service.in", 40), ("scx_powerpack-metrics.socket", 4)] {
        let settings = settings(unit);
        assert!(settings.len() >= nr, "{unit} is not read right: {settings:?}");
        assert_eq!(missing(settings), Vec::<String>::new(), "{unit}");
    }
}

/// The functions of the kernel that are called in a file, but for macros of libbpf.
fn called(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = |word: &str| word.starts_with("scx_bpf_") || word.starts_with("bpf_");
    let words = text.split_inclusive(|c| !is_part(c)).filter_map(|word| word.strip_suffix('('));
    let is_macro = |word: &str| word.starts_with("bpf_core_") || word == "bpf_for";
    words.filter(|word| begins(word) && !is_macro(word)).map(str::to_owned).collect()
}

#[test]
fn what_bpf_calls_is_listed() {
    let files = ["src/bpf", "src/wakes"].map(|dir| fs::read_dir(dir).unwrap());
    let files = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_bpf = |path: &std::path::PathBuf| path.to_string_lossy().contains(".bpf.");
    let texts = files.filter(is_bpf).map(|path| fs::read_to_string(path).unwrap());
    let called: BTreeSet<String> = texts.flat_map(|text| called(&text)).collect();
    assert!(called.len() > 40 && called.contains("scx_bpf_dsq_move"), "not read right: {called:?}");
    assert_eq!(missing(called), Vec::<String>::new());
}

/// A test that the page names is there.
#[test]
fn tests_that_are_named_are_there() {
    let page = page();
    let words = page.split('`').skip(1).step_by(2);
    let files = ["tests/", "src/", "scripts/", "packaging/"];
    let named: Vec<&str> =
        words.filter(|word| files.iter().any(|dir| word.starts_with(dir))).collect();
    assert!(named.len() > 20, "not read right: {named:?}");
    let missing: Vec<_> = named.iter().filter(|path| !fs::exists(path).unwrap()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let tests = fs::read_to_string("src/agent/server/tests.rs").unwrap();
    // What is no path and no function of the kernel's.
    let is_test = |word: &&str| {
        let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name && word.matches('_').count() > 2 && !word.contains("bpf_")
    };
    let names: Vec<&str> = page.split('`').filter(is_test).collect();
    assert!(names.len() > 4, "not read right: {names:?}");
    let missing: Vec<_> =
        names.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}
