//! The crates that the program is built of: each one that is named in a Cargo.toml has its reason there,
//! and all that end up in the program have licences that go with ours. docs/dependencies.md lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
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

/// Crates that name another one as a part of them of which only their build script makes use: that ends up in no
/// program. One that does not any more must go from here.
const ONLY_NAMED: [(&str, &str); 2] = [("scx_utils", "bindgen"), ("scx_utils", "libbpf-cargo")];

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
    /// Where its sources are.
    folder: PathBuf,
    is_ours: bool,
    /// It is a part of the compiler.
    is_macro: bool,
    place: Place,
    needs: Vec<Need>,
}

impl Crate {
    fn of(package: &Value, is_ours: bool) -> Self {
        let mut kinds = list(&package["targets"]).flat_map(|target| list(&target["kind"]));
        Crate {
            name: text(&package["name"]).to_owned(),
            licence: package["license"].as_str().unwrap_or("none").to_owned(),
            folder: Path::new(text(&package["manifest_path"])).with_file_name("src"),
            is_ours,
            is_macro: kinds.any(|kind| kind == "proc-macro"),
            place: Place::Build,
            needs: vec![],
        }
    }
}

/// A crate that another one names.
struct Need {
    id: String,
    /// When that one runs, not alone while it is built or tested.
    runs: bool,
}

impl Need {
    fn of(dep: &Value) -> Self {
        let runs = list(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null());
        Need { id: text(&dep["pkg"]).to_owned(), runs }
    }
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What cargo prints.
fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is compiled, as "name vVERSION". The lock file and `cargo metadata` also have optional crates that nobody wants,
/// where another one says a feature of them for the case that somebody does, as `palette?/std`.
fn compiled() -> BTreeSet<String> {
    let all = ["--workspace", "--edges", "all", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[&["tree", "--locked", "--target", TARGET], &all[..]].concat());
    let first_two = |line: &str| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
    tree.lines().map(first_two).collect()
}

/// All crates of the workspace that are compiled for x86-64, by ID.
fn crates() -> BTreeMap<String, Crate> {
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET];
    let metadata: Value = serde_json::from_str(&cargo(&args)).unwrap();
    let compiled = compiled();
    let is_compiled = |package: &&Value| {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        compiled.contains(&format!("{name} v{version}"))
    };
    let packages: Vec<&Value> = list(&metadata["packages"]).filter(is_compiled).collect();
    let ours: BTreeSet<&str> =
        list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let of_package = |package: &&Value| {
        let id = text(&package["id"]);
        (id.to_owned(), Crate::of(package, ours.contains(id)))
    };
    let mut crates: BTreeMap<String, Crate> = packages.iter().map(of_package).collect();
    for node in list(&metadata["resolve"]["nodes"]) {
        let needs = list(&node["deps"]).map(Need::of);
        let needs = needs.filter(|need| crates.contains_key(&need.id)).collect();
        if let Some(found) = crates.get_mut(text(&node["id"])) {
            found.needs = needs;
        }
    }
    for id in linked(&crates) {
        crates.get_mut(&id).unwrap().place = Place::Program;
    }
    crates
}

/// What is linked into the program: what it needs to run, without the macros, which run in the compiler, and what is
/// [`ONLY_NAMED`].
fn linked(crates: &BTreeMap<String, Crate>) -> BTreeSet<String> {
    let (program, _) = crates.iter().find(|(_, it)| it.name == "scx_powerpack").unwrap();
    let (mut found, mut open) = (BTreeSet::new(), vec![program]);
    while let Some(id) = open.pop() {
        let by = &crates[id];
        if by.is_macro || !found.insert(id.clone()) {
            continue;
        }
        let is_linked =
            |need: &&Need| need.runs && !ONLY_NAMED.contains(&(&*by.name, &*crates[&need.id].name));
        open.extend(by.needs.iter().filter(is_linked).map(|need| &need.id));
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
        ours.flat_map(|it| &it.needs).map(|need| crates[&need.id].name.as_str()).collect();
    let without = |name: &&&str| reasons.get(**name).is_none_or(|reason| reason.len() < 5);
    let missing: Vec<_> = named.iter().filter(without).collect();
    assert!(missing.is_empty(), "no comment above them in Cargo.toml: {missing:?}");
}

#[test]
fn licences_go_with_ours() {
    let crates = crates();
    let wrong =
        crates.values().filter(|it| it.place == Place::Program && !is_compatible(&it.licence));
    let wrong: Vec<_> = wrong.map(|it| (&it.name, &it.licence)).collect();
    assert!(wrong.is_empty(), "under licences that do not go with GPL-2.0-only: {wrong:?}");
}

/// Whether `word` stands in the code of the Rust files in `folder`, not in a comment alone.
fn is_in_code(folder: &Path, word: &str) -> bool {
    let in_line = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|part| part == word)
    };
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path {
        path if path.is_dir() => is_in_code(&path, word),
        path if path.extension().is_some_and(|end| end == "rs") => {
            fs::read_to_string(path).unwrap().lines().any(in_line)
        }
        _ => false,
    })
}

#[test]
fn what_is_only_named_is_not_used() {
    let crates = crates();
    for (by, named) in ONLY_NAMED {
        let by = crates.values().find(|it| it.name == by).unwrap();
        assert!(
            by.needs.iter().any(|need| need.runs && crates[&need.id].name == named),
            "{named} is not named"
        );
        assert!(!is_in_code(&by.folder, &named.replace('-', "_")), "{named} is used");
        assert!(is_in_code(&by.folder, "libbpf_rs"), "not read right");
    }
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
            open.extend(crates[&id].needs.iter().map(|need| need.id.clone()));
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
