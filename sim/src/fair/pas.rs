//! Power-aware scheduling v7: tasks go to the fullest group that still has room,
//! from the packages down to the CPUs. A group's utilization is that of its CPUs
//! times their running tasks; the room is its number of CPUs (group_weight), or
//! their capacity, which the thread of the time asks for.

use super::Balancer;
use super::baseline::Spread;
use super::view::View;
use crate::machine::MachineCpu;

/// What a thread of a core with siblings counts for (smt_gain: 1178 of 1024, for
/// all threads of a core).
const CORE_CAPACITY: f64 = 1.15;

/// v7.
pub(crate) struct PowerAware {
    pub spread: Spread,
    /// Count capacity, not CPUs.
    pub capacity: bool,
}

/// From the packages down to the CPUs.
const LEVELS: [fn(MachineCpu) -> usize; 3] =
    [|place| place.package, |place| place.core, |place| place.cpu];

impl PowerAware {
    /// What a group's CPUs carry: their number, or their cores' capacity.
    fn room(&self, view: &View, group: &[usize]) -> f64 {
        if !self.capacity || group.len() == 1 {
            return group.len() as f64;
        }
        let mut cores: Vec<usize> = group.iter().map(|&cpu| view.place(cpu).core).collect();
        cores.dedup();
        if cores.len() == group.len() {
            return group.len() as f64;
        }
        (cores.len() as f64 * CORE_CAPACITY).floor()
    }

    /// Utilization of a group: its CPUs' times their running tasks.
    fn used(view: &View, group: &[usize]) -> f64 {
        group.iter().map(|&cpu| view.util(cpu) * view.nr_running(cpu) as f64).sum()
    }

    /// Down the levels: the fullest group with room for `need`, the previous one
    /// among equals.
    fn leader(&self, view: &View, id: usize, need: f64) -> Option<usize> {
        let prev = view.place(view.prev(id));
        let mut group: Vec<usize> = (0..view.nr_cpus()).collect();
        for level in LEVELS {
            let mut parts: Vec<Vec<usize>> = Vec::new();
            for &cpu in &group {
                let key = level(view.place(cpu));
                match parts.iter_mut().find(|part| level(view.place(part[0])) == key) {
                    Some(part) => part.push(cpu),
                    None => parts.push(vec![cpu]),
                }
            }
            let fits = |part: &Vec<usize>| Self::used(view, part) + need <= self.room(view, part);
            let key = |part: &Vec<usize>| {
                let own = level(view.place(part[0])) == level(prev);
                (Self::used(view, part), f64::from(u8::from(own)), -(part[0] as f64))
            };
            group = parts
                .into_iter()
                .filter(fits)
                .max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal))?;
        }
        group.first().copied()
    }
}

impl Balancer for PowerAware {
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let leader = self.leader(view, id, view.task_load(id));
        leader.unwrap_or_else(|| self.spread.wake(view, id, here, sync))
    }

    fn fork(&mut self, view: &View, id: usize) -> usize {
        self.leader(view, id, 1.0).unwrap_or_else(|| view.idlest(id))
    }

    /// Power balancing takes over while no group is overloaded: then no CPU pulls.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        let overloaded = |from: &usize| view.util(*from) * view.nr_running(*from) as f64 > 1.0;
        self.spread.pull(view, to, idle).filter(overloaded)
    }
}
