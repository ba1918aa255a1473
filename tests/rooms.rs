//! The rooms of `src/`: the modules that `main.rs` names. None needs one that needs it in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files of a room, but those for tests alone.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let is_code = |path: &PathBuf| {
        let name = path.file_stem().unwrap();
        name != "tests" && (path.is_dir() || path.extension().is_some_and(|end| end == "rs"))
    };
    entries.filter(is_code).flat_map(|path| files(&path)).collect()
}

/// The rooms that `text` names as `crate::ROOM`, before its tests begin.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let end = |rest: &str| rest.find(|c: char| c != '_' && !c.is_alphanumeric());
    code.split("crate::").skip(1).map(|rest| rest[..end(rest).unwrap()].to_owned()).collect()
}

/// Which rooms each room names.
fn needs() -> BTreeMap<String, BTreeSet<String>> {
    let main = fs::read_to_string(source().join("main.rs")).unwrap();
    let rooms = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    rooms
        .map(|room| {
            let file = source().join(format!("{room}.rs"));
            let path = if file.exists() { file } else { source().join(room) };
            let texts = files(&path).into_iter().map(|file| fs::read_to_string(file).unwrap());
            let mut named: BTreeSet<_> = texts.flat_map(|text| named(&text)).collect();
            named.remove(room);
            (room.to_owned(), named)
        })
        .collect()
}

/// The rooms that are left when those are removed, again and again, that need none of the
/// rest.
fn in_circles(mut needs: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let before = needs.len();
        let left: BTreeSet<_> = needs.keys().cloned().collect();
        needs.retain(|_, named| !named.is_disjoint(&left));
        if needs.len() == before {
            return needs.into_keys().collect();
        }
    }
}

#[test]
fn no_rooms_need_each_other() {
    let needs = needs();
    assert!(needs.len() > 8 && needs["agent"].contains("scheduler"), "not read right: {needs:?}");
    assert_eq!(in_circles(needs.clone()), Vec::<String>::new(), "{needs:#?}");
}

#[test]
fn a_circle_is_found() {
    let room = |name: &str, named: &[&str]| {
        (name.to_owned(), named.iter().map(|&name| name.to_owned()).collect())
    };
    let needs = [room("a", &["b"]), room("b", &["c"]), room("c", &["b"]), room("d", &[])];
    // What needs a circle is left with it.
    assert_eq!(in_circles(needs.into()), ["a", "b", "c"]);
}
