//! From which group of CPUs a CPU takes tasks, and how many: sched_balance_find_src_group() and
//! calculate_imbalance() of 6.12 (kernel/sched/fair.c), without asymmetric packing and groups
//! imbalanced by affinity.

use super::domains::Level;
use super::numa;

/// What fills a group, in the order in which groups are relieved (enum group_type).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    #[default]
    HasSpare,
    FullyBusy,
    /// A task that runs there is too large for its CPU.
    Misfit,
    Overloaded,
}

/// Sums over the CPUs of a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    pub nr_cpus: usize,
    pub nr_idle: usize,
    pub nr_running: usize,
    pub load: f64,
    pub util: f64,
    pub runnable: f64,
    pub capacity: f64,
    pub capacity_min: f64,
    pub capacity_max: f64,
    /// The load of its largest misfit task.
    pub misfit: f64,
}

/// What is to be moved, and how much of it (enum migration_type).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Load(f64),
    Util(f64),
    Tasks(usize),
    Misfit,
}

/// For whom a CPU looks, and what it is like.
#[derive(Clone, Copy, Debug)]
pub struct Looker {
    pub idle: bool,
    pub capacity: f64,
    /// Only tasks that do not fit are moved: energy-aware, and not overutilized.
    pub only_misfit: bool,
}

impl Group {
    /// group_classify().
    pub fn fill(&self, imbalance: f64) -> Fill {
        let tight = self.capacity < self.util * imbalance;
        let waits = self.capacity * imbalance < self.runnable;
        if self.nr_running > self.nr_cpus && (tight || waits) {
            Fill::Overloaded
        } else if self.misfit > 0.0 {
            Fill::Misfit
        } else if self.nr_running < self.nr_cpus || !waits && self.capacity > self.util * imbalance
        {
            Fill::HasSpare
        } else {
            Fill::FullyBusy
        }
    }

    /// Load for each unit of capacity.
    pub fn density(&self) -> f64 {
        self.load / self.capacity
    }
}

/// capacity_greater(): by more than 5 %.
fn clearly_larger(a: f64, b: f64) -> bool {
    a > b * 1.05
}

/// Whether `group` is one to take from: update_sd_pick_busiest().
fn may_give(level: &Level, by: Looker, local: &Group, group: &Group) -> bool {
    let fill = group.fill(level.imbalance);
    let helps = clearly_larger(by.capacity, group.capacity_max)
        && local.fill(level.imbalance) == Fill::HasSpare;
    let from_larger = fill <= Fill::FullyBusy && clearly_larger(group.capacity_min, by.capacity);
    let unfit = level.asym && (fill == Fill::Misfit && !helps || from_larger);
    group.nr_running > 0 && !unfit
}

/// Whether `a` is busier than `b`, of the same level.
fn is_busier(level: &Level, a: &Group, b: &Group) -> bool {
    let (fill, other) = (a.fill(level.imbalance), b.fill(level.imbalance));
    if fill != other {
        return fill > other;
    }
    match fill {
        Fill::Overloaded => a.density() > b.density(),
        Fill::Misfit => a.misfit > b.misfit,
        Fill::FullyBusy => false,
        Fill::HasSpare => {
            (a.nr_idle, std::cmp::Reverse(a.nr_running))
                < (b.nr_idle, std::cmp::Reverse(b.nr_running))
        }
    }
}

/// sibling_imbalance(): how many tasks more `busiest` has, for its number of CPUs; an empty local
/// group takes one of two.
fn more_tasks(local: &Group, busiest: &Group) -> usize {
    let of_local = local.nr_running * busiest.nr_cpus / local.nr_cpus;
    let more = busiest.nr_running.saturating_sub(of_local);
    if more <= 1 && local.nr_running == 0 && busiest.nr_running > 1 { 2 } else { more }
}

/// The group to take from, by its place in `groups` (the local one is the first), and how much.
pub fn find(level: &Level, by: Looker, groups: &[Group]) -> Option<(usize, Amount)> {
    let local = &groups[0];
    let mut busiest: Option<usize> = None;
    for (nth, group) in groups.iter().enumerate().skip(1) {
        let busier = busiest.is_none_or(|busiest| is_busier(level, group, &groups[busiest]));
        if busier && may_give(level, by, local, group) {
            busiest = Some(nth);
        }
    }
    let nth = busiest?;
    let amount = if groups[nth].fill(level.imbalance) == Fill::Misfit {
        level.asym.then_some(Amount::Misfit)
    } else if by.only_misfit || !is_imbalanced(level, by, groups, &groups[nth]) {
        None
    } else {
        amount(level, by, groups, &groups[nth])
    };
    amount.map(|amount| (nth, amount))
}

fn density_of_all(groups: &[Group]) -> f64 {
    let sum = |of: fn(&Group) -> f64| groups.iter().map(of).sum::<f64>();
    sum(|group| group.load) / sum(|group| group.capacity)
}

/// Whether it is worth it: the second half of sched_balance_find_src_group().
fn is_imbalanced(level: &Level, by: Looker, groups: &[Group], busiest: &Group) -> bool {
    let local = &groups[0];
    let (fill, of_busiest) = (local.fill(level.imbalance), busiest.fill(level.imbalance));
    if fill > of_busiest {
        return false;
    }
    if fill == Fill::Overloaded {
        let below_all = local.density() < density_of_all(groups);
        return below_all && busiest.density() > level.imbalance * local.density();
    }
    let has_spare = fill == Fill::HasSpare;
    if level.prefers_siblings && has_spare && more_tasks(local, busiest) > 1 {
        return true;
    }
    if of_busiest == Fill::Overloaded {
        return true;
    }
    let even = busiest.nr_cpus > 1 && local.nr_idle <= busiest.nr_idle + 1;
    by.idle && !even && busiest.nr_running > 1
}

/// calculate_imbalance(), of what is no misfit.
fn amount(level: &Level, by: Looker, groups: &[Group], busiest: &Group) -> Option<Amount> {
    let local = &groups[0];
    let overloaded = busiest.fill(level.imbalance) == Fill::Overloaded;
    if local.fill(level.imbalance) == Fill::HasSpare {
        if overloaded && !level.shares_cache {
            let room = (local.capacity - local.util).max(0.0);
            return match room {
                0.0 => by.idle.then_some(Amount::Tasks(1)),
                room => Some(Amount::Util(room)),
            };
        }
        let more = if busiest.nr_cpus == 1 || level.prefers_siblings {
            more_tasks(local, busiest)
        } else {
            local.nr_idle.saturating_sub(busiest.nr_idle)
        };
        let adjusted = |allowed| numa::adjust(more, local.nr_running + 1, allowed);
        let more = level.imb_numa_nr.map_or(more, adjusted);
        return Some(more / 2).filter(|nr| *nr > 0).map(Amount::Tasks);
    }
    let all = density_of_all(groups);
    if local.density() >= busiest.density().min(all) {
        return None;
    }
    // So that neither becomes less dense than all are.
    let load = f64::min(
        (busiest.density() - all) * busiest.capacity,
        (all - local.density()) * local.capacity,
    );
    (load > 0.0).then_some(Amount::Load(load))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(asym: bool, prefers_siblings: bool) -> Level {
        Level {
            groups: Vec::new(),
            asym,
            smt: false,
            shares_cache: true,
            prefers_siblings,
            imb_numa_nr: None,
            imbalance: 1.17,
            balanced_ns: 0,
            interval_ms: 4,
            failed: 0,
        }
    }

    fn cpu(nr_running: usize, util: f64, capacity: f64) -> Group {
        Group {
            nr_cpus: 1,
            nr_idle: usize::from(nr_running == 0),
            nr_running,
            load: nr_running as f64 * 1024.0,
            util,
            runnable: util * nr_running as f64,
            capacity,
            capacity_min: capacity,
            capacity_max: capacity,
            misfit: 0.0,
        }
    }

    const IDLE: Looker = Looker { idle: true, capacity: 1024.0, only_misfit: false };

    #[test]
    fn an_idle_cpu_takes_one_of_two_and_not_the_only_one() {
        let find =
            |nr| find(&level(false, false), IDLE, &[cpu(0, 0.0, 1024.0), cpu(nr, 700.0, 1024.0)]);
        assert_eq!(find(2), Some((1, Amount::Tasks(1))));
        assert_eq!(find(1), None);
    }

    #[test]
    fn only_an_idle_larger_cpu_takes_a_misfit_task_also_if_nothing_else_is_moved() {
        let small = Group { misfit: 1024.0, ..cpu(1, 400.0, 446.0) };
        let only_misfit = Looker { only_misfit: true, ..IDLE };
        let misfit = find(&level(true, false), only_misfit, &[cpu(0, 0.0, 1024.0), small]);
        assert_eq!(misfit, Some((1, Amount::Misfit)));
        let slow = Looker { capacity: 446.0, ..only_misfit };
        assert_eq!(find(&level(true, false), slow, &[cpu(0, 0.0, 446.0), small]), None);
        let two = cpu(2, 900.0, 1024.0);
        assert_eq!(find(&level(true, false), only_misfit, &[cpu(0, 0.0, 1024.0), two]), None);
    }

    #[test]
    fn load_is_evened_out_between_overloaded_groups() {
        // 3 and 7 tasks on equal CPUs: all are 5 on the average.
        let groups = [cpu(3, 1024.0, 1024.0), cpu(7, 1024.0, 1024.0)];
        let busy = Looker { idle: false, ..IDLE };
        assert_eq!(find(&level(false, false), busy, &groups), Some((1, Amount::Load(2048.0))));
        let near = [cpu(7, 1024.0, 1024.0), cpu(8, 1024.0, 1024.0)];
        assert_eq!(find(&level(false, false), busy, &near), None, "within 17 %");
    }

    #[test]
    fn siblings_are_filled_evenly() {
        let core = |nr| Group { nr_cpus: 2, nr_idle: 2 - nr, ..cpu(nr, 300.0, 2048.0) };
        let find = |prefers| find(&level(false, prefers), IDLE, &[core(0), core(2)]);
        assert_eq!(find(true), Some((1, Amount::Tasks(1))));
    }

    #[test]
    fn a_node_does_not_take_one_of_two_from_another() {
        let nodes = Level { imb_numa_nr: Some(2), shares_cache: false, ..level(false, true) };
        let node = |nr| Group { nr_cpus: 8, nr_idle: 8 - nr, ..cpu(nr, 300.0, 8192.0) };
        assert_eq!(find(&nodes, IDLE, &[node(0), node(2)]), None);
        assert_eq!(find(&nodes, IDLE, &[node(0), node(3)]), Some((1, Amount::Tasks(1))));
        assert_eq!(find(&nodes, IDLE, &[node(2), node(4)]), Some((1, Amount::Tasks(1))), "three");
        let caches = Level { imb_numa_nr: None, ..nodes };
        assert_eq!(find(&caches, IDLE, &[node(0), node(2)]), Some((1, Amount::Tasks(1))));
    }
}
