//! Interrupts on a made-up machine: four CPUs, two in each node, each interrupt on a CPU of its own.

use std::fs;
use std::mem;
use std::path::PathBuf;

use super::*;
use crate::settings::hints::Irqs as Choice;

struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let tree = Tree(std::env::temp_dir().join(format!("follow-{name}-{}", std::process::id())));
        tree.put("sys/devices/system/cpu/online", "0-3");
        tree.put("sys/devices/system/node/node0/cpulist", "0-1");
        tree.put("sys/devices/system/node/node1/cpulist", "2-3");
        tree.put("proc/irq/default_smp_affinity", "f");
        for nr in 20..24 {
            tree.put(&affinity(nr), "0-3");
            tree.put(&format!("proc/irq/{nr}/node"), "-1");
            tree.put(&format!("proc/irq/{nr}/effective_affinity_list"), &(nr - 20).to_string());
            fs::create_dir(tree.0.join(format!("proc/irq/{nr}/disk"))).unwrap();
        }
        tree
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn affinities(&self) -> [String; 4] {
        std::array::from_fn(|nr| record::read(&self.0.join(affinity(20 + nr))).unwrap())
    }

    fn record(&self) -> PathBuf {
        self.0.join("run/hints.json")
    }

    fn hints(&self) -> InForce {
        let hints = Hints { irqs: Some(Choice::Follow), ..Hints::default() };
        InForce::new(hints, &self.0, &self.record()).unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn affinity(nr: usize) -> String {
    format!("proc/irq/{nr}/{AFFINITY_FILE}")
}

#[test]
fn those_that_are_all_moved_may_be_moved_again() {
    let tree = Tree::new("all-moved");
    let mut killed = tree.hints();
    // Where none comes by itself.
    tree.put("sys/devices/system/cpu/online", "0-4");
    for nr in 20..24 {
        tree.put(&affinity(nr), "0-4");
    }
    tree.put("proc/irq/default_smp_affinity", "1f");
    for _ in 0..2 {
        killed.set_active(&[(4, 1)]);
        killed.apply(Mode::Packing, &[4]).unwrap();
    }
    assert_eq!(tree.affinities(), ["4"; 4]);
    // While it runs, and by the next one.
    killed.set(Hints { irqs: Some(Choice::Follow), ..Hints::default() }).unwrap();
    mem::forget(killed);
    tree.hints();
}

const ALL: [Active; 4] = [(0, 0), (1, 0), (2, 1), (3, 1)];
const FREE: [&str; 4] = ["0-3"; 4];

/// A look at which these CPUs are active.
fn look(hints: &mut InForce, active: &[Active]) {
    hints.set_active(active);
    hints.apply(Mode::Packing, &[]).unwrap();
}

#[test]
fn surplus_cpus_are_left_at_once_and_active_ones_come_back_later() {
    let tree = Tree::new("active");
    let mut hints = tree.hints();
    look(&mut hints, &ALL);
    assert_eq!(tree.affinities(), FREE, "nothing is known of the look before");
    look(&mut hints, &ALL);
    assert_eq!(tree.affinities(), FREE, "each is on an active CPU");
    look(&mut hints, &ALL[..2]);
    // 22 and 23 come to what is left, in turn.
    assert_eq!(tree.affinities(), ["0-3", "0-3", "0", "1"]);
    look(&mut hints, &ALL[..3]);
    assert_eq!(tree.affinities(), ["0-3", "0-3", "0", "1"], "CPU 2 may not stay");
    look(&mut hints, &ALL[..3]);
    // 22 is back where it was, 23 on one of three.
    assert_eq!(tree.affinities(), ["0-3", "0-3", "0-3", "2"]);
    drop(hints);
    assert_eq!(tree.affinities(), FREE);
    assert!(!tree.record().exists());
}

#[test]
fn an_interrupt_stays_near_to_its_device() {
    let tree = Tree::new("node");
    tree.put("proc/irq/20/node", "1");
    tree.put(&affinity(20), "2-3");
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &[(1, 0), (3, 1)]);
    }
    // 22 is without a node: the first of the two.
    assert_eq!(tree.affinities(), ["3", "0-3", "1", "0-3"]);
    for _ in 0..2 {
        look(&mut hints, &[(1, 0)]);
    }
    assert_eq!(tree.affinities()[0], "1", "there is none near to it");
    hints.restore();
    assert_eq!(tree.affinities(), ["2-3", "0-3", "0-3", "0-3"]);
}

#[test]
fn after_a_kill_all_is_put_back_by_way_of_where_it_was() {
    let tree = Tree::new("killed");
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    assert_eq!(tree.affinities(), ["0-3", "0", "0", "0"]);
    mem::forget(hints);
    let text = fs::read_to_string(tree.record()).unwrap();
    assert!(text.contains(r#""by_way_of":"3""#), "{text}");
    assert_eq!(recover(&tree.record()).restored, 3);
    assert_eq!(tree.affinities(), FREE);
}

#[test]
fn what_somebody_else_moves_is_theirs() {
    let tree = Tree::new("foreign");
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    tree.put(&affinity(22), "1,3");
    for _ in 0..2 {
        look(&mut hints, &ALL[..2]);
    }
    assert_eq!(tree.affinities(), ["0-3", "0-3", "1,3", "1"]);
    look(&mut hints, &ALL[1..2]);
    drop(hints);
    assert_eq!(tree.affinities(), ["0-3", "0-3", "1,3", "0-3"]);
}

#[test]
fn another_balancer_has_them_all() {
    let tree = Tree::new("balancer");
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    tree.put("proc/77/comm", "irqbalance");
    for _ in 0..2 {
        look(&mut hints, &ALL[..2]);
    }
    assert_eq!(tree.affinities(), FREE);
    // One that was there before has them until it ends.
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    assert_eq!(tree.affinities(), FREE);
    fs::remove_dir_all(tree.0.join("proc/77")).unwrap();
    for _ in 0..12 {
        look(&mut hints, &ALL[..1]);
    }
    assert_eq!(tree.affinities(), ["0-3", "0", "0", "0"]);
}

#[test]
fn new_interrupts_are_found_in_time() {
    let tree = Tree::new("new");
    fs::remove_dir_all(tree.0.join("proc/irq/23")).unwrap();
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    tree.put(&affinity(23), "0-3");
    tree.put("proc/irq/23/effective_affinity_list", "3");
    fs::create_dir(tree.0.join("proc/irq/23/disk")).unwrap();
    look(&mut hints, &ALL[..1]);
    assert_eq!(tree.affinities()[3], "0-3", "not yet");
    for _ in 0..12 {
        look(&mut hints, &ALL[..1]);
    }
    assert_eq!(tree.affinities(), ["0-3", "0", "0", "0"]);
}

#[test]
fn it_ends_when_it_is_switched_off() {
    let tree = Tree::new("off");
    let mut hints = tree.hints();
    for _ in 0..2 {
        look(&mut hints, &ALL[..1]);
    }
    hints.set(Hints::default()).unwrap();
    look(&mut hints, &ALL[..1]);
    assert_eq!(tree.affinities(), FREE);
    assert!(!hints.is_in_use());
}

/// The kernel moves them from a CPU that goes, and lets them be when it is back.
#[test]
fn those_that_hotplug_has_moved_are_moved_again_and_put_back() {
    let tree = Tree::new("hotplug");
    let seq = |nr: u32| tree.put("sys/kernel/sched_ext/hotplug_seq", &nr.to_string());
    seq(7);
    let mut hints = tree.hints();
    let look = |hints: &mut InForce| {
        for _ in 0..2 {
            hints.set_active(&[(1, 0)]);
            hints.apply(Mode::Packing, &[1]).unwrap();
        }
    };
    look(&mut hints);
    assert_eq!(tree.affinities(), ["1", "0-3", "1", "1"]);
    // One is somebody else's before the CPU goes.
    tree.put(&affinity(23), "0,2-3");
    look(&mut hints);
    for nr in [20, 22] {
        tree.put(&affinity(nr), "0,2-3");
    }
    seq(9);
    look(&mut hints);
    assert_eq!(tree.affinities(), ["1", "0-3", "1", "0,2-3"]);
    // Or to all CPUs, as it was before.
    tree.put(&affinity(20), "0-3");
    // The one that came to the active CPU comes elsewhere now.
    tree.put("proc/irq/21/effective_affinity_list", "2");
    seq(10);
    look(&mut hints);
    assert_eq!(tree.affinities(), ["1", "1", "1", "0,2-3"]);
    // Once more, and the end comes before the next look.
    for nr in 20..24 {
        tree.put(&affinity(nr), "0,2-3");
    }
    seq(11);
    drop(hints);
    assert_eq!(tree.affinities(), ["0-3", "0-3", "0-3", "0,2-3"]);
}
