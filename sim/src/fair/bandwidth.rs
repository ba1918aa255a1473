//! cpu.max of the fair class, from the kernel's description (CFS bandwidth control): a cgroup's
//! tasks draw on a budget that each period fills up; when it is used up they leave the run queues
//! until the next period.

use crate::event::Event;
use crate::fair::Fair;
use crate::kernel::{Class, Kernel};

/// A cgroup with a limit: all that have that weight.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    weight: u32,
    quota_ns: i64,
    burst_ns: i64,
    period_ns: u64,
    /// May be used now; below 0: was used too much.
    budget_ns: i64,
    /// When the period ends that `budget_ns` stands for.
    ends_ns: u64,
    /// Tasks that wait for then.
    held: Vec<usize>,
}

impl Limit {
    pub(crate) fn new(
        weight: u32,
        quota_us: u64,
        period_us: u64,
        burst_us: u64,
        now_ns: u64,
    ) -> Self {
        let (quota_ns, period_ns) = (quota_us as i64 * 1000, period_us * 1000);
        Limit {
            weight,
            quota_ns,
            burst_ns: burst_us as i64 * 1000,
            period_ns,
            budget_ns: quota_ns,
            ends_ns: now_ns + period_ns,
            held: vec![],
        }
    }

    /// __refill_cfs_bandwidth_runtime(), for each period that has ended.
    fn refill(&mut self, now_ns: u64) {
        while self.ends_ns <= now_ns {
            let max_ns = self.quota_ns + self.burst_ns;
            self.budget_ns = (self.budget_ns + self.quota_ns).min(max_ns);
            self.ends_ns += self.period_ns;
        }
    }
}

impl Fair {
    /// The limit of task `id`, if its cgroup has one.
    fn limit_of(&mut self, id: usize) -> Option<&mut Limit> {
        let weight = self.entities[id].cgroup_weight?;
        self.limits.iter_mut().find(|limit| limit.weight == weight)
    }

    /// account_cfs_rq_runtime(): what task `id` has run is taken from its budget.
    pub(super) fn draw(&mut self, id: usize, ran_ns: u64) {
        if let Some(limit) = self.limit_of(id) {
            limit.budget_ns -= ran_ns as i64;
        }
    }

    /// Whether task `id` must wait for the next period.
    pub(super) fn is_used_up(&mut self, now_ns: u64, id: usize) -> bool {
        self.limit_of(id).is_some_and(|limit| {
            limit.refill(now_ns);
            limit.budget_ns <= 0
        })
    }

    /// throttle_cfs_rq(): task `id` waits for the next period. When that begins, if it is the
    /// first one that does.
    fn hold(&mut self, id: usize) -> Option<u64> {
        let limit = self.limit_of(id)?;
        limit.held.push(id);
        (limit.held.len() == 1).then_some(limit.ends_ns)
    }

    /// Puts `limit` in force for its cgroup, or none; what waited for the old one.
    fn set_limit(&mut self, weight: u32, limit: Option<Limit>) -> Vec<usize> {
        let place = self.limits.iter().position(|known| known.weight == weight);
        let held = place.map_or(vec![], |place| self.limits.swap_remove(place).held);
        self.limits.extend(limit);
        held
    }
}

impl Kernel {
    pub(crate) fn fair_limit(&mut self, weight: u32, limit: Option<Limit>) {
        let held = self.class.fair().set_limit(weight, limit);
        self.fair_release(held);
    }

    /// Task `id`, which is in no queue, waits for the next period of its cgroup.
    pub(super) fn fair_hold(&mut self, id: usize) {
        if let Some(ends_ns) = self.class.fair().hold(id) {
            let weight = self.class.fair().entities[id].cgroup_weight.unwrap_or(0);
            self.events.at(ends_ns, Event::Period(weight));
        }
    }

    /// sched_cfs_period_timer(): a period of the cgroup has ended while tasks waited for that.
    pub(crate) fn fair_period(&mut self, weight: u32) {
        let now_ns = self.now_ns;
        let Class::Fair(fair) = &mut self.class else { return };
        let Some(limit) = fair.limits.iter_mut().find(|limit| limit.weight == weight) else {
            return;
        };
        limit.refill(now_ns);
        if limit.budget_ns <= 0 {
            self.events.at(limit.ends_ns, Event::Period(weight));
            return;
        }
        let held = std::mem::take(&mut limit.held);
        self.fair_release(held);
    }

    fn fair_release(&mut self, held: Vec<usize>) {
        let now_ns = self.now_ns;
        for id in held {
            let cpu = self.tasks[id].cpu();
            self.class.fair().enqueue(now_ns, cpu, id, false);
            if self.cpus[cpu].running.is_none() {
                self.resched(cpu);
            }
        }
    }
}
