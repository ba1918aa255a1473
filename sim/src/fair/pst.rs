//! Packing small tasks: v3 (every CPU has a buddy that takes its small tasks) and
//! v4 in its mode "full" (as many CPUs as the summed activity needs take all).

use super::Balancer;
use super::baseline::Spread;
use super::view::View;

/// v3: a task that is runnable for less than a fifth of the time is small.
const SMALL: f64 = 0.2;
/// v4: a CPU is full above this activity.
const FULL: f64 = 0.8;

/// v3.
pub(crate) struct Buddies {
    pub spread: Spread,
}

impl Buddies {
    /// is_buddy_busy(): more active than its period over its tasks plus two.
    fn is_busy(view: &View, cpu: usize) -> bool {
        view.util(cpu) > 1.0 / (view.nr_running(cpu) as f64 + 2.0)
    }
}

impl Balancer for Buddies {
    /// All CPUs' buddy is the first one, of the first power domain.
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        if view.task_load(id) < SMALL && !Self::is_busy(view, 0) {
            return 0;
        }
        self.spread.wake(view, id, here, sync)
    }

    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        self.spread.pull(view, to, idle).filter(|&from| from != 0 || Self::is_busy(view, 0))
    }
}

/// v4, "full".
pub(crate) struct Full {
    pub spread: Spread,
}

impl Full {
    /// As many of the first CPUs as the activity of all needs.
    fn needed(view: &View) -> usize {
        let activity: f64 = (0..view.nr_cpus()).map(|cpu| view.util(cpu)).sum();
        ((activity / FULL).ceil() as usize).clamp(1, view.nr_cpus())
    }
}

impl Balancer for Full {
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let mut needed = 0..Self::needed(view);
        let room = |&cpu: &usize| view.util(cpu) < FULL;
        needed.find(room).unwrap_or_else(|| self.spread.wake(view, id, here, sync))
    }

    fn fork(&mut self, view: &View, id: usize) -> usize {
        self.wake(view, id, view.prev(id), false)
    }

    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        let full = |from: &usize| view.util(*from) >= FULL;
        self.spread.pull(view, to, idle).filter(full)
    }
}
