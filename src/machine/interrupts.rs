//! The interrupts of devices, as `/proc/irq` has them: which of them may be moved, and where they are.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use powerpack_workload::parse_cpu_list;

use super::record;
use super::sensors::{entries, number};

/// The CPUs that an interrupt may come to; below `/proc/irq/N`.
pub const AFFINITY_FILE: &str = "smp_affinity_list";
/// Its owner may write it: not that of an interrupt of one CPU. Of those that their driver spreads (managed
/// ones) some seem to be writable and refuse it.
const OWNER_WRITES: u32 = 0o200;

/// The program that moves interrupts too.
const BALANCER: &str = "irqbalance";

/// An interrupt that may be moved, and that nobody has bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movable {
    pub nr: usize,
    /// Its directory.
    pub dir: PathBuf,
    /// The memory node of its device.
    pub node: Option<usize>,
    /// The CPU that it comes to now, where the kernel says so.
    pub home: Option<usize>,
}

impl Movable {
    /// The file that says where it may come.
    pub fn affinity(&self) -> PathBuf {
        self.dir.join(AFFINITY_FILE)
    }
}

/// All of them below `root`, by number. One that may come to fewer CPUs than the kernel's default
/// was bound by somebody.
pub fn movable(root: &Path) -> Vec<Movable> {
    let online = cpus(&root.join("sys/devices/system/cpu/online"));
    let mut found: Vec<_> = handled(root).filter_map(|dir| of(root, dir, &online)).collect();
    found.sort_by_key(|interrupt| interrupt.nr);
    found
}

fn of(root: &Path, dir: PathBuf, online: &BTreeSet<usize>) -> Option<Movable> {
    let nr = dir.file_name()?.to_str()?.parse().ok()?;
    let node = number(&dir.join("node")).map(|node| node as usize);
    let home = cpus(&dir.join("effective_affinity_list"));
    let interrupt =
        Movable { nr, node, home: home.first().copied().filter(|_| home.len() == 1), dir };
    let mut default = default_cpus(root);
    default.retain(|cpu| online.contains(cpu));
    // As the kernel does, where the node has any.
    let near =
        node.map(|node| cpus(&root.join(format!("sys/devices/system/node/node{node}/cpulist"))));
    if let Some(near) = near.filter(|near| !near.is_disjoint(&default)) {
        default.retain(|cpu| near.contains(cpu));
    }
    let is_free = cpus(&interrupt.affinity()).is_superset(&default) && !default.is_empty();
    is_free.then_some(interrupt)
}

/// The directories of interrupts that have a handler and may be moved.
fn handled(root: &Path) -> impl Iterator<Item = PathBuf> {
    let has_handler = |dir: &PathBuf| entries(dir).iter().any(|entry| entry.is_dir());
    let may_move = |dir: &PathBuf| {
        let affinity = fs::metadata(dir.join(AFFINITY_FILE));
        affinity.is_ok_and(|file| file.permissions().mode() & OWNER_WRITES != 0)
    };
    let dirs = entries(&root.join("proc/irq")).into_iter();
    dirs.filter(move |dir| may_move(dir) && has_handler(dir))
}

/// The CPUs of a list; those of none if there is none.
fn cpus(list: &Path) -> BTreeSet<usize> {
    let text = fs::read_to_string(list).unwrap_or_default();
    parse_cpu_list(text.trim()).unwrap_or_default().into_iter().collect()
}

/// Where new interrupts may come.
fn default_cpus(root: &Path) -> BTreeSet<usize> {
    let mask = fs::read_to_string(root.join("proc/irq/default_smp_affinity"));
    parse_mask(mask.unwrap_or_default().trim())
}

/// The CPUs of a mask, as `00000001,0000000f`.
fn parse_mask(mask: &str) -> BTreeSet<usize> {
    let digits = mask.chars().rev().filter_map(|digit| digit.to_digit(16));
    let bits = digits.enumerate().flat_map(|(at, digit)| {
        (0..4).filter(move |bit| digit & (1 << bit) != 0).map(move |bit| at * 4 + bit)
    });
    bits.collect()
}

/// The process that moves interrupts too, if one runs: root's, as others may not, and may call a process as they like.
pub fn balancer(root: &Path) -> Option<u32> {
    let proc = root.join("proc");
    // Root's, of whom /proc is.
    let owner = fs::metadata(&proc).ok()?.uid();
    let processes = entries(&proc).into_iter();
    let mut ids = processes.filter_map(|dir| {
        let pid = dir.file_name()?.to_str()?.parse().ok()?;
        let name = fs::read_to_string(dir.join("comm")).ok()?;
        let is_roots = fs::metadata(&dir).is_ok_and(|meta| meta.uid() == owner);
        (name.trim() == BALANCER && is_roots).then_some(pid)
    });
    ids.next()
}

/// Fails with a sentence where interrupts below `root` cannot be moved, or another program does. Those that the
/// record at `record` names look as if somebody had bound them, until they are put back.
pub fn check(root: &Path, record: &Path) -> Result<()> {
    if let Some(pid) = balancer(root) {
        bail!(
            "{BALANCER} runs, process {pid}, which moves interrupts too: stop it, or leave irqs out"
        );
    }
    if record::names(record, AFFINITY_FILE) {
        return Ok(());
    }
    let interrupts = movable(root);
    let Some(first) = interrupts.first() else {
        bail!("this machine has no interrupt that may be moved (/proc/irq): leave irqs out");
    };
    let opened = OpenOptions::new().write(true).open(first.affinity());
    let is_readonly = opened.is_err_and(|err| err.kind() == ErrorKind::ReadOnlyFilesystem);
    ensure!(
        !is_readonly,
        "/proc/irq is read-only here, so that interrupts cannot be moved: set \
         ProtectKernelTunables=no for the service, or leave irqs out"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of four CPUs, two in each node, with interrupts: gone at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let tree =
                Tree(std::env::temp_dir().join(format!("irqs-{name}-{}", std::process::id())));
            tree.put("sys/devices/system/cpu/online", "0-3");
            tree.put("sys/devices/system/node/node0/cpulist", "0-1");
            tree.put("sys/devices/system/node/node1/cpulist", "2-3");
            tree.put("proc/irq/default_smp_affinity", "ff");
            tree
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn interrupt(&self, nr: usize, affinity: &str, node: &str) {
            self.put(&format!("proc/irq/{nr}/{AFFINITY_FILE}"), affinity);
            self.put(&format!("proc/irq/{nr}/node"), node);
            self.put(&format!("proc/irq/{nr}/effective_affinity_list"), "1");
            fs::create_dir(self.0.join(format!("proc/irq/{nr}/eth0"))).unwrap();
        }

        fn movable(&self) -> Vec<usize> {
            movable(&self.0).iter().map(|interrupt| interrupt.nr).collect()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_mask_has_its_first_cpu_last() {
        assert_eq!(parse_mask("f"), (0..4).collect());
        assert_eq!(parse_mask("00000001,80000000"), [31, 32].into());
        assert_eq!(parse_mask(""), [].into());
    }

    #[test]
    fn what_somebody_has_bound_is_not_movable() {
        let tree = Tree::new("bound");
        tree.interrupt(10, "0-3", "-1");
        tree.interrupt(9, "0-7", "-1");
        tree.interrupt(11, "0-2", "-1");
        // As the kernel sets up those of a device on a node.
        tree.interrupt(12, "2-3", "1");
        tree.interrupt(13, "2", "1");
        tree.interrupt(14, "2-3", "0");
        assert_eq!(tree.movable(), [9, 10, 12]);
        let last = movable(&tree.0).pop().unwrap();
        assert_eq!((last.node, last.home), (Some(1), Some(1)));
    }

    #[test]
    fn what_cannot_move_or_has_no_handler_is_not_movable() {
        let tree = Tree::new("fixed");
        tree.interrupt(10, "0-3", "-1");
        tree.interrupt(11, "0-3", "-1");
        let path = tree.0.join(format!("proc/irq/11/{AFFINITY_FILE}"));
        fs::set_permissions(path, PermissionsExt::from_mode(0o444)).unwrap();
        tree.put(&format!("proc/irq/12/{AFFINITY_FILE}"), "0-3");
        assert_eq!(tree.movable(), [10]);
    }

    #[test]
    fn it_is_refused_beside_another_and_where_there_is_nothing() {
        let tree = Tree::new("check");
        let record = tree.0.join("record");
        let said = |tree: &Tree| check(&tree.0, &record).unwrap_err().to_string();
        assert!(said(&tree).ends_with("leave irqs out"), "{}", said(&tree));
        tree.interrupt(10, "0-3", "-1");
        check(&tree.0, &record).unwrap();
        tree.put("proc/77/comm", "irqbalance");
        assert!(said(&tree).starts_with("irqbalance runs, process 77"), "{}", said(&tree));
    }
}
