//! Linux 3.9, which spreads, and runnable-load balance (patch v4 to v8 of 2013),
//! which does so by the tasks' decayed averages; without the load of those that
//! sleep, as its author measured that to hurt.

use super::Balancer;
use super::view::View;

/// A busier CPU is left alone unless it is busier by this (imbalance_pct).
const IMBALANCE: f64 = 1.25;

/// Spreads by load.
pub(crate) struct Spread {
    /// By runnable averages, not by weights.
    pub runnable: bool,
}

impl Spread {
    fn load(&self, view: &View, cpu: usize) -> f64 {
        if self.runnable { view.runnable_load(cpu) } else { view.load(cpu) }
    }

    /// The busiest of `among` where a task waits that `to` should run, if there is one.
    pub fn busiest(
        &self,
        view: &View,
        to: usize,
        idle: bool,
        among: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let mine = self.load(view, to);
        let worth = |&from: &usize| {
            from != to
                && view.nr_running(from) > 1
                && self.load(view, from) > mine * IMBALANCE
                && (idle || view.nr_running(from) > view.nr_running(to))
        };
        let by_load = |&a: &usize, &b: &usize| self.load(view, a).total_cmp(&self.load(view, b));
        among.filter(worth).max_by(by_load)
    }

    /// wake_affine(): whether the waker's CPU is no busier than the previous one.
    fn is_affine(&self, view: &View, here: usize, prev: usize, sync: bool) -> bool {
        let waker = if sync { 1.0 } else { 0.0 };
        let busy = (view.nr_running(here) as f64 - waker).max(0.0);
        busy == 0.0 || busy * IMBALANCE <= view.nr_running(prev) as f64
    }
}

/// select_idle_sibling(): the target, the previous CPU, or an idle core near it.
fn idle_sibling(view: &View, target: usize, prev: usize) -> usize {
    if view.is_idle(target) {
        return target;
    }
    if view.shares_cache(target, prev) && view.is_idle(prev) {
        return prev;
    }
    let mut near = (0..view.nr_cpus()).filter(|&cpu| view.shares_cache(cpu, target));
    near.find(|&cpu| view.core_is_idle(cpu)).unwrap_or(target)
}

impl Balancer for Spread {
    fn wake(&mut self, view: &View, id: usize, here: usize, sync: bool) -> usize {
        let prev = view.prev(id);
        let target =
            if here != prev && self.is_affine(view, here, prev, sync) { here } else { prev };
        idle_sibling(view, target, prev)
    }

    /// The busiest CPU where a task waits, near ones first.
    fn pull(&mut self, view: &View, to: usize, idle: bool) -> Option<usize> {
        let near =
            |near: bool| (0..view.nr_cpus()).filter(move |&cpu| view.shares_cache(cpu, to) == near);
        let busiest = |is_near| self.busiest(view, to, idle, near(is_near));
        busiest(true).or_else(|| busiest(false))
    }
}
