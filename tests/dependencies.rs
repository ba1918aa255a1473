//! The crates that the program is built of: each one that is named in a Cargo.toml has its reason there,
//! and all that end up in the program have licences that go with ours. docs/dependencies.md lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

const PAGE: &str = "docs/dependencies.md";
/// Set to have the lists written again, not compared.
const UPDATE: &str = "UPDATE_DEPENDENCIES";
const BEGIN: &str = "<!-- Made from Cargo.toml: UPDATE_DEPENDENCIES=1 cargo test the_page_of -->\n";
const END: &str = "<!-- End of what is made. -->\n";

/// What may be a part of a program under GPL-2.0-only.
const COMPATIBLE: [&str; 15] = [
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "ISC",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// What the program names that is under a licence that does not: docs/dependencies.md says what is to be
/// done about each. One that is not needed any more must go from here.
const NOT_COMPATIBLE: [&str; 5] = ["approx", "clang-sys", "minijinja", "nalgebra", "simba"];

/// Where a crate is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Linked into the program.
    Program,
    /// Runs while it is built or tested.
    Build,
}

struct Crate {
    name: String,
    licence: String,
    is_ours: bool,
    place: Place,
    /// The crates that it names, by ID.
    needs: Vec<String>,
}

/// All crates of the workspace for x86-64, by ID.
fn crates() -> BTreeMap<String, Crate> {
    let target = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", target[0], target[1]])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours: BTreeSet<&str> =
        list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let of_package = |package: &Value| {
        let id = text(&package["id"]);
        let needs = list(&nodes[id]["deps"]).map(|need| text(&need["pkg"]).to_owned()).collect();
        let found = Crate {
            name: text(&package["name"]).to_owned(),
            licence: package["license"].as_str().unwrap_or("none").to_owned(),
            is_ours: ours.contains(id),
            place: Place::Build,
            needs,
        };
        (id.to_owned(), found)
    };
    let mut crates: BTreeMap<String, Crate> = list(&metadata["packages"]).map(of_package).collect();
    for id in linked(&metadata, &nodes) {
        crates.get_mut(&id).unwrap().place = Place::Program;
    }
    crates
}

/// What is linked into the program: what it needs to run, without the macros, which run in the compiler.
fn linked(metadata: &Value, nodes: &BTreeMap<&str, &Value>) -> BTreeSet<String> {
    let is_macro = |package: &&Value| {
        list(&package["targets"])
            .flat_map(|target| list(&target["kind"]))
            .any(|kind| kind == "proc-macro")
    };
    let packages = list(&metadata["packages"]);
    let macros: BTreeSet<&str> =
        packages.clone().filter(is_macro).map(|it| text(&it["id"])).collect();
    let program = packages.clone().find(|package| package["name"] == "scx_powerpack").unwrap();
    let (mut found, mut open) = (BTreeSet::new(), vec![text(&program["id"])]);
    while let Some(id) = open.pop() {
        if macros.contains(id) || !found.insert(id.to_owned()) {
            continue;
        }
        let runs = |need: &&Value| list(&need["dep_kinds"]).any(|kind| kind["kind"].is_null());
        open.extend(list(&nodes[id]["deps"]).filter(runs).map(|need| text(&need["pkg"])));
    }
    found
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or([].iter(), |list| list.iter())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The crates that the program's Cargo.toml names, with the comment above each.
fn reasons() -> BTreeMap<String, String> {
    let manifest = fs::read_to_string("Cargo.toml").unwrap();
    let (mut found, mut is_dependency, mut above) = (BTreeMap::new(), false, "");
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            is_dependency = table.ends_with("dependencies]") && !table.starts_with("workspace");
        } else if is_dependency && let Some((name, _)) = line.split_once([' ', '.', '=']) {
            let reason = above.strip_prefix("# ").unwrap_or_default().trim_end_matches('.');
            if !name.starts_with('#') {
                found.insert(name.to_owned(), reason.to_owned());
            }
        }
        above = line;
    }
    found
}

/// Whether one of the choices that an SPDX expression gives is all of compatible licences.
fn is_compatible(licence: &str) -> bool {
    let licence = licence.replace('/', " OR ");
    let choices = parts(&licence, " OR ");
    if choices.len() > 1 {
        return choices.into_iter().any(is_compatible);
    }
    let all = parts(&licence, " AND ");
    if all.len() > 1 {
        return all.into_iter().all(is_compatible);
    }
    let bare = licence.trim();
    match bare.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) {
        Some(inside) => is_compatible(inside),
        None => COMPATIBLE.contains(&bare),
    }
}

/// The parts of an expression around `word`, where that is in no parentheses.
fn parts<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut found, mut depth, mut begin) = (vec![], 0, 0);
    for (at, c) in expression.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= begin && expression[at..].starts_with(word) => {
                found.push(&expression[begin..at]);
                begin = at + word.len();
            }
            _ => {}
        }
    }
    found.push(&expression[begin..]);
    found
}

#[test]
fn expressions_of_licences_are_understood() {
    for (licence, compatible) in [
        ("MIT", true),
        ("Apache-2.0", false),
        ("MIT OR Apache-2.0", true),
        ("Apache-2.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND Apache-2.0", false),
        ("Apache-2.0 AND (MIT OR ISC)", false),
        ("GPL-3.0-only", false),
        ("none", false),
    ] {
        assert_eq!(is_compatible(licence), compatible, "{licence}");
    }
}

#[test]
fn each_dependency_has_a_reason() {
    let (crates, reasons) = (crates(), reasons());
    assert!(reasons.len() > 30 && reasons.contains_key("libc"), "not read right: {reasons:?}");
    let ours = crates.values().filter(|it| it.is_ours);
    let named: BTreeSet<&str> =
        ours.flat_map(|it| &it.needs).map(|id| crates[id].name.as_str()).collect();
    let without = |name: &&&str| reasons.get(**name).is_none_or(|reason| reason.len() < 5);
    let missing: Vec<_> = named.iter().filter(without).collect();
    assert!(missing.is_empty(), "no comment above them in Cargo.toml: {missing:?}");
}

#[test]
fn licences_go_with_ours() {
    let crates = crates();
    let wrong =
        crates.values().filter(|it| it.place == Place::Program && !is_compatible(&it.licence));
    let wrong: BTreeSet<&str> = wrong.map(|it| it.name.as_str()).collect();
    assert_eq!(wrong, NOT_COMPATIBLE.into(), "under licences that do not go with GPL-2.0-only");
}

/// The list of what the program's Cargo.toml names.
fn direct(crates: &BTreeMap<String, Crate>) -> String {
    let mut table =
        "| crate | licence | what it is for | brings |\n| --- | --- | --- | --- |\n".to_owned();
    for (name, reason) in reasons() {
        let (id, found) = crates.iter().find(|(_, it)| it.name == name).unwrap();
        let brings = closure(crates, id).len() - 1;
        let tool = if found.place == Place::Build { " (build)" } else { "" };
        let reason = reason.replace('|', "\\|");
        table += &format!("| {name}{tool} | {} | {reason} | {brings} |\n", found.licence);
    }
    table
}

fn closure(crates: &BTreeMap<String, Crate>, id: &str) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![id.to_owned()]);
    while let Some(id) = open.pop() {
        if found.insert(id.clone()) {
            open.extend(crates[&id].needs.iter().cloned());
        }
    }
    found
}

/// All others by licence, those of the program first.
fn others(crates: &BTreeMap<String, Crate>) -> String {
    let named = reasons();
    let mut by_licence = BTreeMap::<(Place, &str), BTreeSet<&str>>::new();
    for it in crates.values().filter(|it| !named.contains_key(&it.name) && !it.is_ours) {
        by_licence.entry((it.place, &it.licence)).or_default().insert(&it.name);
    }
    let mut list = String::new();
    for (place, title) in [(Place::Program, "In the program"), (Place::Build, "While it is built")]
    {
        list += &format!("\n{title}:\n\n");
        for ((_, licence), names) in by_licence.iter().filter(|((of, _), _)| *of == place) {
            let names = names.iter().copied().collect::<Vec<_>>().join(", ");
            list += &format!("- {licence}: {names}\n");
        }
    }
    list
}

#[test]
fn the_page_of_dependencies_is_up_to_date() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("where it begins");
    let (found, after) = rest.split_once(END).expect("where it ends");
    let crates = crates();
    let made = format!("{}{}", direct(&crates), others(&crates));
    if std::env::var_os(UPDATE).is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
    } else {
        assert!(found == made, "run UPDATE_DEPENDENCIES=1 cargo test the_page_of");
    }
}
