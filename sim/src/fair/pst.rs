//! Packing small tasks (Vincent Guittot, 2012 and 2013): v3, where every CPU has a buddy that takes its
//! small tasks, and v4 in its mode "full", where as many CPUs as the activity needs take all.
//!
//! The buddies are those of the series' first form (github gatieme/big.LITTLE, 3.10/kernel/sched/fair.c at
//! 0752dd29a51d, update_packing_domain()) and of the table in v3's "sched: define pack buddy CPUs". The
//! numbers of v3, and the rules of v4's "full", are from memory: both are approximations.

use super::Balancer;
use super::baseline::Spread;
use super::view::View;
use crate::eevdf::domains::levels;
use crate::machine::Machine;

/// v3: a task that is runnable for less than a fifth of the time is light (from memory).
const LIGHT: f64 = 0.2;
/// v4: a CPU is full if it has run for this share of the time (from memory).
const FULL: f64 = 1000.0 / 1024.0;

/// v3.
pub(crate) struct Buddies {
    pub spread: Spread,
    /// By CPU.
    buddy: Vec<usize>,
}

impl Buddies {
    pub fn new(spread: Spread, machine: &Machine) -> Self {
        Buddies { spread, buddy: buddies(machine) }
    }
}

/// update_packing_domain(), where each core has a power switch of its own: from the lowest domain upwards
/// the first CPU, of the group with the least power for each CPU, until that is another one.
fn buddies(machine: &Machine) -> Vec<usize> {
    let places = machine.cpus();
    let capacity: Vec<f64> = places.iter().map(|place| place.capacity as f64).collect();
    let power =
        |group: &[usize]| group.iter().map(|&cpu| capacity[cpu]).sum::<f64>() / group.len() as f64;
    let best = |groups: &[Vec<usize>]| {
        let by_power =
            |a: &&Vec<usize>, b: &&Vec<usize>| power(a).total_cmp(&power(b)).then(a[0].cmp(&b[0]));
        groups.iter().min_by(by_power).map(|group| group.iter().copied().min().unwrap_or(group[0]))
    };
    let of = |cpu: usize| {
        let candidates = levels(&places, &capacity, cpu).into_iter();
        let mut candidates = candidates.filter_map(|level| best(&level.groups));
        candidates.find(|&candidate| candidate != cpu).unwrap_or(cpu)
    };
    (0..places.len()).map(of).collect()
}

/// is_buddy_busy(), from memory: more active than its period over its tasks plus two.
fn is_busy(view: &View, cpu: usize) -> bool {
    view.util(cpu) > 1.0 / (view.nr_running(cpu) as f64 + 2.0)
}

impl Balancer for Buddies {
    /// The buddy is that of the waking CPU.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let buddy = self.buddy[here];
        if view.task_load(id) < LIGHT && !is_busy(view, buddy) {
            return buddy;
        }
        self.spread.wake(view, id, here, sync)
    }

    /// As Linux 3.9: an idle CPU takes also from the buddy.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        self.spread.pull(view, to, idle)
    }
}

/// v4, "full".
pub(crate) struct Full {
    pub spread: Spread,
}

impl Full {
    /// How many of the first CPUs carry the activity of all. One that is full while tasks wait there
    /// counts for more than it can do.
    fn packing(view: &View) -> usize {
        let activity = |cpu: usize| {
            let overloaded = is_full(view, cpu) && view.nr_running(cpu) > 1;
            if overloaded { 1.0 + 1.0 / 1024.0 } else { view.util(cpu).min(1.0) }
        };
        let sum: f64 = (0..view.nr_cpus()).map(activity).sum();
        (sum.ceil() as usize).clamp(1, view.nr_cpus())
    }
}

fn is_full(view: &View, cpu: usize) -> bool {
    view.util(cpu) >= FULL
}

impl Balancer for Full {
    /// A CPU that packs keeps what wakes there; the others' buddy is the last one that does.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let last = Self::packing(view) - 1;
        let buddy = here.min(last);
        let free = |&cpu: &usize| !is_full(view, cpu);
        let packs = std::iter::once(buddy).chain(0..=last);
        packs.clone().find(free).unwrap_or_else(|| self.spread.wake(view, id, here, sync))
    }

    fn fork(&mut self, view: &View, id: usize) -> usize {
        self.wake(view, id, view.prev(id), false)
    }

    /// Balancing is between CPUs that pack.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        if to < Self::packing(view) { self.spread.pull(view, to, idle) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::tests::outcome;

    /// The table of "sched: define pack buddy CPUs": two clusters of two, each core with its own switch.
    #[test]
    fn buddies_are_those_of_the_published_table() {
        let text = "name='x'\nabout=''\n[costs]\nhz=250\nswitch_us=0\nwake_us=0\n\
                    [[llc]]\ncores=2\n[[llc]]\ncores=2\n";
        assert_eq!(buddies(&Machine::parse(text).unwrap()), [0, 0, 0, 2]);
        let tc2 = Machine::find("tc2-a7").unwrap();
        assert_eq!(buddies(&tc2), [0, 0, 0]);
        assert_eq!(
            buddies(&Machine::find("chromebook2").unwrap())[4..],
            [0, 4, 4, 4],
            "small ones"
        );
    }

    #[test]
    fn v3_packs_less_than_power_aware_scheduling_and_full_as_much() {
        let surplus = |system| outcome("tc2-a7", "audio", system).beyond_busiest_pct;
        let (v3, full, pas) = (surplus("pst-v3"), surplus("pst-v4"), surplus("pas-v7"));
        assert!(pas < v3 && full < v3 && v3 < surplus("3.9"), "{pas} {full} {v3}");
    }
}
