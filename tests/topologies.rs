//! The ranks of real machines: their sysfs, as the last part of `scx_powerpack report` has it, is laid
//! out in a directory and read through SCX_SYSFS_PREFIX by the program itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recorded machine, laid out as a tree.
struct Tree(PathBuf);

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

impl Tree {
    /// The recording `name`, with more files on top: `PATH=VALUE`.
    fn of(name: &str, more: &[&str]) -> Self {
        let text = fs::read_to_string(format!("tests/topologies/{name}.tsv")).unwrap();
        // Tests run at the same time: each has its own.
        let id = format!("{name}-{}-{:?}", std::process::id(), std::thread::current().id());
        let root = std::env::temp_dir().join(format!("powerpack-{id}"));
        let mut columns: Vec<&str> = Vec::new();
        for line in text.lines().chain(more.iter().copied()) {
            if let Some((path, value)) = line.split_once('=') {
                put(&root, path, value);
            } else if columns.is_empty() {
                columns = line.split('\t').collect();
            } else {
                Self::put_cpu(&root, &columns, &line.split('\t').collect::<Vec<_>>());
            }
        }
        Tree(root)
    }

    fn put_cpu(root: &Path, columns: &[&str], cells: &[&str]) {
        let node = if cells[1] == "-" { "0" } else { cells[1] };
        let node = format!("sys/devices/system/node/node{node}");
        put(root, &format!("{node}/distance"), "10");
        fs::create_dir_all(root.join(node).join(cells[0])).unwrap();
        for (column, cell) in columns.iter().zip(cells).skip(2).filter(|(_, cell)| **cell != "-") {
            put(root, &format!("sys/devices/system/cpu/{}/{column}", cells[0]), cell);
        }
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_scx_powerpack"))
            .args(args)
            .env("SCX_SYSFS_PREFIX", &self.0)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {err}");
        text
    }

    /// A column of `scx_powerpack topology`, by rank.
    fn column(&self, name: &str) -> Vec<usize> {
        let text = self.run(&["topology"]);
        let mut lines = text.lines().skip_while(|line| !line.starts_with("rank"));
        let nth = lines.next().unwrap().split_whitespace().position(|word| word == name).unwrap();
        lines.map(|line| line.split_whitespace().nth(nth).unwrap().parse().unwrap()).collect()
    }
}

/// How often neighbours differ, that is in how many pieces the ranks hold a thing.
fn pieces(values: &[usize]) -> usize {
    1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn distinct(values: &[usize]) -> usize {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// Recordings of machines that were whole and switched on.
const MACHINES: [(&str, usize); 10] = [
    ("arm-128", 128),
    ("arm-a510-x3", 8),
    ("epyc-7451", 96),
    ("lakefield", 5),
    ("laptop-2010", 8),
    ("laptop-2023", 8),
    ("opteron-48", 48),
    ("pioneer", 64),
    ("s390-drawer", 141),
    ("visionfive2", 4),
];

#[test]
fn every_cpu_has_a_rank_and_what_belongs_together_is_together() {
    for (name, cpus) in MACHINES {
        let tree = Tree::of(name, &[]);
        let mut numbers = tree.column("cpu");
        numbers.sort_unstable();
        assert_eq!(numbers, (0..cpus).collect::<Vec<_>>(), "{name}");
        for column in ["core", "LLC", "package", "node"] {
            let values = tree.column(column);
            assert_eq!(pieces(&values), distinct(&values), "{name}: {column} {values:?}");
        }
    }
}

#[test]
fn small_cores_are_filled_first() {
    // One large core, four small ones.
    assert_eq!(Tree::of("lakefield", &[]).column("cpu"), [0, 1, 2, 3, 4]);
    let tree = Tree::of("arm-a510-x3", &[]);
    let capacities = tree.column("capacity");
    assert!(capacities.is_sorted() && capacities[0] < 300, "{capacities:?}");
}

#[test]
fn siblings_are_neighbours() {
    let tree = Tree::of("epyc-7451", &[]);
    let cpus = tree.column("cpu");
    // The kernel numbers the second threads after all first ones.
    assert_eq!(cpus[..4], [0, 48, 1, 49]);
    assert_eq!(pieces(&tree.column("LLC")), 16);
    assert_eq!(pieces(&tree.column("node")), 8);
}

#[test]
fn offline_cpus_come_after_the_online_ones() {
    let tree = Tree::of("s390-drawer", &[]);
    assert_eq!(tree.column("cpu")[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(tree.run(&["topology"]).matches("offline").count(), 133);
    let tree = Tree::of("epyc-7451", &["sys/devices/system/cpu/online=1,3-94"]);
    let cpus = tree.column("cpu");
    assert_eq!((cpus[0], &cpus[93..]), (1, &[0, 2, 95][..]));
}

#[test]
fn cpu_numbers_may_have_holes() {
    let there = "0-15,48-63";
    let lists = ["possible", "online"].map(|list| format!("sys/devices/system/cpu/{list}={there}"));
    let tree = Tree::of("epyc-7451", &lists.each_ref().map(String::as_str));
    for cpu in (16..48).chain(64..96) {
        fs::remove_dir_all(tree.0.join(format!("sys/devices/system/cpu/cpu{cpu}"))).unwrap();
        for node in fs::read_dir(tree.0.join("sys/devices/system/node")).unwrap() {
            let _ = fs::remove_dir_all(node.unwrap().path().join(format!("cpu{cpu}")));
        }
    }
    let mut numbers = tree.column("cpu");
    assert_eq!(numbers[..4], [0, 48, 1, 49]);
    numbers.sort_unstable();
    assert_eq!(numbers, (0..16).chain(48..64).collect::<Vec<_>>());
    let text = tree.run(&["sim", "--machine", "here", "--until", "1", "--policy", "packing"]);
    assert!(text.contains("packing"), "{text}");
}

#[test]
fn isolated_cpus_come_last_and_are_no_cores_to_pack_on() {
    let isolated = "sys/devices/system/cpu/isolated=0-1,48-49";
    let tree = Tree::of("epyc-7451", &[isolated, "sys/devices/system/cpu/nohz_full=2,50"]);
    let mut last = tree.column("cpu")[90..].to_vec();
    last.sort_unstable();
    assert_eq!(last, [0, 1, 2, 48, 49, 50]);
    let text = tree.run(&["topology"]);
    assert_eq!(text.matches("isolated").count(), 6);
    assert!(text.starts_with("96 CPUs, 45 cores"), "{text}");
}

/// Cores that the firmware prefers reach the highest frequency: one busy CPU is that one.
#[test]
fn preferred_cores_are_the_first_of_their_kind() {
    let ranking = |cpu, value| {
        format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/amd_pstate_prefcore_ranking={value}")
    };
    let mut files: Vec<String> = (0..96).map(|cpu| ranking(cpu, 200 - cpu % 48)).collect();
    files[7] = ranking(7, 210);
    files[55] = ranking(55, 210);
    let tree = Tree::of("epyc-7451", &files.iter().map(String::as_str).collect::<Vec<_>>());
    let cpus = tree.column("cpu");
    assert_eq!(cpus[..2], [7, 55], "the best core first, its LLC with it");
    assert_eq!(pieces(&tree.column("LLC")), 16, "and no LLC is torn apart");
}

/// What a perf domain needs for its work, by the kernel's energy model, goes before size.
#[test]
fn the_energy_model_has_the_last_word() {
    let domain = |nr: usize, cpus: &str, states: [(u32, u32); 2]| {
        let dir = format!("sys/kernel/debug/energy_model/cpu{nr}");
        let mut files = vec![format!("{dir}/cpus={cpus}")];
        for (performance, power) in states {
            let state = format!("{dir}/ps:{performance}");
            for (file, value) in [
                ("performance", performance),
                ("power", power),
                ("frequency", performance * 1000),
                ("cost", power * 10),
                ("inefficient", 0),
            ] {
                files.push(format!("{state}/{file}={value}"));
            }
        }
        files
    };
    // The middle cores do most for their power.
    let mut files = domain(0, "0-2", [(150, 60), (280, 150)]);
    files.extend(domain(3, "3-6", [(400, 90), (855, 300)]));
    files.extend(domain(7, "7", [(500, 300), (1024, 900)]));
    let order = |files: &[String]| {
        Tree::of("arm-a510-x3", &files.iter().map(String::as_str).collect::<Vec<_>>()).column("cpu")
    };
    assert_eq!(order(&files), [3, 4, 5, 6, 0, 1, 2, 7]);
    // A driver that knows no powers says so; then the smaller ones come first.
    files.extend([0, 3, 7].map(|nr| format!("sys/kernel/debug/energy_model/cpu{nr}/flags=0x4")));
    assert_eq!(order(&files), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// What a user sends is the recording that made the tree.
#[test]
fn a_report_has_the_recording_of_the_machine() {
    for name in ["arm-a510-x3", "laptop-2023", "s390-drawer"] {
        let text = fs::read_to_string(format!("tests/topologies/{name}.tsv")).unwrap();
        // Where no node was recorded the tree has node 0.
        let with_node = |line: &str| match line.split_once("\t-\t") {
            Some((cpu, rest)) if !cpu.contains('\t') => format!("{cpu}\t0\t{rest}\n"),
            _ => format!("{line}\n"),
        };
        let recording: String = text.lines().map(with_node).collect();
        let report = Tree::of(name, &[]).run(&["report", "-"]);
        assert!(report.contains(&recording), "{name}: {report}");
    }
}

#[test]
fn every_machine_can_be_simulated() {
    for (name, _) in MACHINES {
        let tree = Tree::of(name, &[]);
        let text = tree.run(&["sim", "--machine", "here", "--until", "2", "--policy", "packing"]);
        let row = text.lines().find(|line| line.starts_with("packing")).unwrap();
        let work: f64 = row.split_whitespace().nth(4).unwrap().parse().unwrap();
        assert!(work > 0.275, "{name}: the light load is 28 % of a CPU: {text}");
    }
}
