//! Lists the workloads that come with this crate: a file in `files/` is one.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=files");
    let files = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("files");
    let mut names: Vec<String> = fs::read_dir(&files)
        .expect("files/")
        .map(|entry| entry.expect("an entry of files/").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut list =
        format!("/// By name.\npub const SHIPPED: [(&str, &str); {}] = [\n", names.len());
    for name in &names {
        let path = files.join(format!("{name}.toml"));
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes it");
    }
    list += "];\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("shipped.rs"), list).expect("writing the list of workloads");
}
