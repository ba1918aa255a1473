//! What is different between NUMA nodes (SD_NUMA): a small imbalance is allowed there, so that few
//! tasks stay near the memory that they share. adjust_numa_imbalance() and
//! sched_balance_find_dst_group() of 6.12 (kernel/sched/fair.c; the latter was find_idlest_group()
//! before 6.10), imb_numa_nr of build_sched_domains() (kernel/sched/topology.c). The same up to 7.x.

use std::cmp::Reverse;

use super::domains::Level;
use super::imbalance::{Fill, Group};

/// NUMA_IMBALANCE_MIN: a pair of tasks may be on the same node.
const IMBALANCE_MIN: usize = 2;

/// imb_numa_nr: up to so many tasks on a node an imbalance is allowed. One for each LLC, or an
/// eighth of the CPUs where there is a single LLC. The kernel's factor, the span of the level over
/// that of the lowest one with nodes, is 1 here: there is one such level.
pub fn allowed(cpus_of_node: usize, cpus_of_llc: usize) -> usize {
    match cpus_of_node / cpus_of_llc {
        0 | 1 => (cpus_of_node / 8).max(1),
        llcs => llcs,
    }
}

/// adjust_numa_imbalance(): what is left of an imbalance (of tasks, or idle CPUs) towards a node
/// where that many tasks would run.
pub fn adjust(imbalance: usize, running: usize, allowed: usize) -> usize {
    if running <= allowed && imbalance <= IMBALANCE_MIN { 0 } else { imbalance }
}

/// update_pick_idlest(): whether a new task goes to node `a` rather than to `b`.
fn is_idler(level: &Level, a: &Group, b: &Group) -> bool {
    let (fill, other) = (a.fill(level.imbalance), b.fill(level.imbalance));
    if fill != other {
        return fill < other;
    }
    match fill {
        Fill::HasSpare => {
            let most_idle = |group: &Group| (Reverse(group.nr_idle), group.util as u64);
            most_idle(a) < most_idle(b)
        }
        _ => a.density() < b.density(),
    }
}

/// Whether a new task leaves node `local` for `idlest`.
fn leaves(level: &Level, local: &Group, idlest: &Group, allowed: usize) -> bool {
    let (fill, other) = (local.fill(level.imbalance), idlest.fill(level.imbalance));
    if fill != other {
        return fill > other;
    }
    if fill == Fill::HasSpare {
        let more = idlest.nr_idle.abs_diff(local.nr_idle);
        return local.nr_idle < idlest.nr_idle && adjust(more, local.nr_running + 1, allowed) > 0;
    }
    // By a share of one CPU, and of the other node's load.
    let (of_local, of_idlest) = (local.density(), idlest.density());
    of_local > of_idlest + (level.imbalance - 1.0) && of_local > of_idlest * level.imbalance
}

/// sched_balance_find_dst_group() at a level of nodes: where a new task goes, by the place in
/// `nodes` (the local one is the first; `None`: it may not run on any CPU there). `None`: it stays.
pub fn destination(level: &Level, nodes: &[Option<Group>], allowed: usize) -> Option<usize> {
    let others = nodes.iter().enumerate().skip(1);
    let others = others.filter_map(|(nth, node)| node.as_ref().map(|node| (nth, node)));
    // The first of those that are equal.
    let (nth, idlest) = others.reduce(|a, b| if is_idler(level, b.1, a.1) { b } else { a })?;
    let stays = nodes[0].as_ref().is_some_and(|local| !leaves(level, local, idlest, allowed));
    (!stays).then_some(nth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eevdf::domains::levels;
    use crate::ext::CpuMask;
    use crate::kernel::{Kernel, Scheduler, System};
    use crate::machine::Machine;
    use crate::task::{Context, Program, Step, TaskSpec};

    const CPUS: usize = 32;

    /// Two sockets, a node and a cache each, so that four tasks may be on one.
    fn two_node_machine() -> Machine {
        let text = format!(
            "name = 'two-nodes'\nabout = ''\ngovernor = 'performance'\n\
             [costs]\nhz = 250\nswitch_us = 0\nwake_us = 0\n[core.plain]\n\
             [[llc]]\ncores = {CPUS}\n[[llc]]\ncores = {CPUS}\npackage = 1\nnode = 1\n"
        );
        Machine::parse(&text).unwrap()
    }

    fn two_nodes() -> Level {
        levels(&two_node_machine().cpus(), &[1024.0; 2 * CPUS], 0).pop().unwrap()
    }

    /// A node with eight CPUs.
    fn node(nr_running: usize, nr_idle: usize) -> Group {
        Group { nr_cpus: 8, nr_idle, nr_running, capacity: 8192.0, ..Group::default() }
    }

    #[test]
    fn an_imbalance_is_allowed_by_caches_or_cpus_of_a_node() {
        // Two threads of 64 cores, eight to a cache; 64 cores, four to a cache; eight cores of two
        // threads and one cache; a small node.
        assert_eq!(
            [(128, 16), (64, 4), (16, 16), (4, 4)].map(|(a, b)| allowed(a, b)),
            [8, 16, 2, 1]
        );
    }

    #[test]
    fn two_tasks_more_are_no_imbalance_while_few_run() {
        assert_eq!([1, 2, 3].map(|imbalance| adjust(imbalance, 4, 4)), [0, 0, 3]);
        assert_eq!([1, 2, 3].map(|imbalance| adjust(imbalance, 5, 4)), [1, 2, 3]);
    }

    #[test]
    fn a_new_task_stays_on_its_node_while_the_other_has_two_idle_cpus_more() {
        let goes = |local, other, allowed| {
            destination(&two_nodes(), &[Some(local), Some(other)], allowed).is_some()
        };
        assert!(!goes(node(2, 6), node(0, 8), 4));
        assert!(goes(node(3, 5), node(0, 8), 4), "three");
        assert!(goes(node(4, 6), node(4, 8), 4), "five tasks are more than is allowed");
        assert!(!goes(node(4, 6), node(4, 6), 4), "as many idle CPUs");
    }

    #[test]
    fn a_new_task_goes_where_it_may_run_and_to_the_idlest_of_others() {
        let nodes = [None, Some(node(3, 5)), Some(node(1, 7)), Some(node(1, 7))];
        assert_eq!(destination(&two_nodes(), &nodes, 1), Some(2));
        assert_eq!(destination(&two_nodes(), &[Some(node(5, 3)), None], 1), None);
    }

    #[test]
    fn a_new_task_leaves_a_full_node_for_one_with_clearly_less_load() {
        let full = |load: f64| Group {
            load: load * 8192.0,
            util: 8192.0,
            runnable: load * 8192.0,
            ..node((load * 8.0) as usize, 0)
        };
        let goes =
            |local, other| destination(&two_nodes(), &[Some(local), Some(other)], 1).is_some();
        assert!(goes(full(2.0), node(3, 5)), "it has room");
        assert!(!goes(full(2.0), full(1.75)));
        assert!(goes(full(2.0), full(1.625)));
        assert!(!goes(node(3, 5), full(2.0)));
    }

    struct Busy;

    impl Program for Busy {
        fn next(&mut self, _: &mut Context) -> Step {
            Step::Run(10_000_000_000)
        }
    }

    /// The node of each of `nr` tasks that CPU 0 starts, and that compute, after a while.
    fn nodes_of(nr: u64, after_ns: u64) -> Vec<usize> {
        let scheduler = Scheduler::Eevdf { energy_aware: false };
        let mut kernel = Kernel::boot(&two_node_machine(), &System { scheduler, governor: None });
        for nth in 0..nr {
            let everywhere = CpuMask::of(0..2 * CPUS);
            kernel.spawn(TaskSpec::new(Box::new(Busy), everywhere), nth * 1_000);
        }
        kernel.run_until(after_ns);
        kernel.tasks.iter().map(|task| task.cpu() / CPUS).collect()
    }

    #[test]
    fn few_tasks_share_a_node_and_more_are_spread() {
        // Three are there before the other node has three idle CPUs more; beyond four each
        // goes where more are idle.
        assert_eq!(nodes_of(9, 20_000), [0, 0, 0, 1, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn two_tasks_stay_on_their_node() {
        assert_eq!(nodes_of(2, 2_000_000_000), [0, 0]);
    }
}
