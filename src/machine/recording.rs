//! This machine's CPUs as text: what the ranks are made of. Lines PATH=VALUE for the whole machine, then a table with a
//! row for each CPU and a column for each file below cpuN; `-` where there is none. A recording is a test in
//! `tests/topologies/`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use powerpack_workload::parse_cpu_list;

use super::sensors::{cpu_dirs, entries, name};

/// Of the whole machine.
const GLOBAL: [&str; 5] = ["possible", "online", "isolated", "nohz_full", "smt/active"];
/// Of each CPU.
const COLUMNS: [&str; 11] = [
    "topology/physical_package_id",
    "topology/core_id",
    CLUSTER,
    "cache/index2/id",
    "cache/index2/shared_cpu_list",
    "cache/index3/id",
    "cache/index3/shared_cpu_list",
    "cpu_capacity",
    "acpi_cppc/highest_perf",
    "cpufreq/amd_pstate_prefcore_ranking",
    "cpufreq/cpuinfo_max_freq",
];
/// Kernels before 5.16 do not report clusters; those that can run us do, as this if there are none.
const CLUSTER: &str = "topology/cluster_id";
const NO_CLUSTER: &str = "65535";
const MISSING: &str = "-";
/// These columns are there whether or not any CPU has them: the CPU, its node, package, core and cluster.
const ALWAYS: usize = 5;

/// The recording of the machine below `root`.
pub fn text(root: &Path) -> String {
    let mut text = String::new();
    for file in GLOBAL.map(|file| format!("sys/devices/system/cpu/{file}")) {
        if let Some(value) = value(&root.join(&file)) {
            let _ = writeln!(text, "{file}={value}");
        }
    }
    let nodes = nodes(root);
    let mut rows = vec![["cpu", "node"].iter().chain(&COLUMNS).map(|&s| s.to_owned()).collect()];
    let mut cpus = cpu_dirs(root);
    cpus.sort_by_key(|cpu| number_of(cpu, "cpu"));
    rows.extend(cpus.iter().map(|cpu| row(cpu, &nodes)));
    let is_used = |&column: &usize| {
        column < ALWAYS || rows[1..].iter().any(|row: &Vec<String>| row[column] != MISSING)
    };
    let used: Vec<usize> = (0..COLUMNS.len() + 2).filter(is_used).collect();
    for row in &rows {
        let cells: Vec<&str> = used.iter().map(|&column| row[column].as_str()).collect();
        let _ = writeln!(text, "{}", cells.join("\t"));
    }
    text
}

fn row(cpu: &Path, nodes: &BTreeMap<usize, usize>) -> Vec<String> {
    let node = number_of(cpu, "cpu").and_then(|nr| nodes.get(&nr));
    let mut cells = vec![name(cpu).to_owned(), node.map_or(MISSING.to_owned(), usize::to_string)];
    let found = COLUMNS.map(|column| value(&cpu.join(column)));
    // Of a CPU that is offline nothing is known.
    let is_known = found[0].is_some();
    cells.extend(COLUMNS.iter().zip(found).map(|(&column, cell)| match cell {
        Some(cell) => cell,
        None if is_known && column == CLUSTER => NO_CLUSTER.to_owned(),
        None => MISSING.to_owned(),
    }));
    cells
}

/// The memory node of each CPU.
fn nodes(root: &Path) -> BTreeMap<usize, usize> {
    let dirs = entries(&root.join("sys/devices/system/node"));
    let numbered = dirs.iter().filter_map(|dir| Some((number_of(dir, "node")?, dir)));
    numbered.flat_map(|(nr, dir)| cpus_of(dir).into_iter().map(move |cpu| (cpu, nr))).collect()
}

fn cpus_of(node: &Path) -> Vec<usize> {
    let linked: Vec<usize> =
        entries(node).iter().filter_map(|path| number_of(path, "cpu")).collect();
    let listed = || value(&node.join("cpulist")).and_then(|list| parse_cpu_list(&list).ok());
    if linked.is_empty() { listed().unwrap_or_default() } else { linked }
}

/// N of a path that ends with `PREFIXN`.
fn number_of(path: &Path, prefix: &str) -> Option<usize> {
    name(path).strip_prefix(prefix)?.parse().ok()
}

/// What is in the file; `None` if nothing is.
fn value(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.replace('\0', "").trim().to_owned();
    (!text.is_empty()).then_some(text)
}
