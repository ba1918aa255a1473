//! Moving tasks between CPUs: sched_balance_rq() and who calls it when (kernel/sched/fair.c of
//! 6.12). What newly idle balancing costs, and its giving up where it rarely finds anything, is not
//! in the model.

use super::Eevdf;
use super::imbalance::{Amount, Group, Looker, find};
use crate::task::Task;

/// sysctl_sched_migration_cost: a task that has run so lately is not moved.
const MIGRATION_COST_NS: u64 = 500_000;
/// A busy CPU looks so much more rarely than an idle one (busy_factor).
const BUSY_FACTOR: u64 = 16;
const NS_PER_MS: u64 = 1_000_000;

/// Why a CPU looks for tasks (enum cpu_idle_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Busy,
    Idle,
    NewlyIdle,
}

/// A CPU that looks, at the nth of its levels.
#[derive(Clone, Copy)]
struct Pull {
    now_ns: u64,
    to: usize,
    nth: usize,
    look: Look,
}

/// What has come of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Pulled {
    Nothing,
    /// These, which waited, wait for the CPU that looked.
    Waiting(Vec<usize>),
    /// What runs on that CPU is to be moved: active balance.
    Running(usize),
}

impl Eevdf {
    /// sched_balance_newidle(): `to` has run out of work.
    pub fn balance_newly_idle(&mut self, now_ns: u64, tasks: &[Task], to: usize) -> Pulled {
        self.refresh_blocked(now_ns);
        if !self.overloaded {
            return Pulled::Nothing;
        }
        for nth in 0..self.domains[to].len() {
            let pulled = self.balance(tasks, Pull { now_ns, to, nth, look: Look::NewlyIdle });
            if pulled != Pulled::Nothing {
                return pulled;
            }
        }
        Pulled::Nothing
    }

    /// sched_balance_domains(): each level of `to` that is due.
    pub fn balance_due(&mut self, now_ns: u64, tasks: &[Task], to: usize) -> Vec<Pulled> {
        let look = if self.is_idle(to) { Look::Idle } else { Look::Busy };
        let mut all = Vec::new();
        for nth in 0..self.domains[to].len() {
            if !self.is_due(now_ns, to, nth, look) {
                continue;
            }
            self.domains[to][nth].balanced_ns = now_ns;
            if !self.is_chosen(to, nth) {
                self.found_nothing(Pull { now_ns, to, nth, look });
                break;
            }
            match self.balance(tasks, Pull { now_ns, to, nth, look }) {
                Pulled::Nothing => {}
                pulled => all.push(pulled),
            }
        }
        all
    }

    fn is_due(&self, now_ns: u64, cpu: usize, nth: usize, look: Look) -> bool {
        let level = &self.domains[cpu][nth];
        let factor = if look == Look::Busy { BUSY_FACTOR } else { 1 };
        now_ns >= level.balanced_ns + level.interval_ms * factor * NS_PER_MS
    }

    /// nohz_balancer_kick(): whether `cpu`, which is busy, wakes an idle CPU to look for work on
    /// behalf of all that are idle: if it is time for one of these (nohz.next_balance).
    pub fn kicks_idle(&self, now_ns: u64, tasks: &[Task], cpu: usize) -> bool {
        let near = (0..self.cpus.len()).filter(|&other| self.share_cache(cpu, other));
        let several = || near.filter(|&other| !self.is_idle(other)).count() > 1;
        let worth = self.queues[cpu].nr() > 1
            || if self.asym { self.misfit(tasks, cpu) > 0.0 } else { several() };
        let due = |idle: usize| {
            let mut levels = 0..self.domains[idle].len();
            self.is_idle(idle) && levels.any(|nth| self.is_due(now_ns, idle, nth, Look::Idle))
        };
        worth && (0..self.cpus.len()).any(due)
    }

    /// should_we_balance(): one CPU of the group does it for all, an idle one if there is any, of an
    /// idle core if there is any of these.
    fn is_chosen(&self, cpu: usize, nth: usize) -> bool {
        let level = &self.domains[cpu][nth];
        let group = &level.groups[0];
        let mut idle = group.iter().copied().filter(|&cpu| self.is_idle(cpu));
        let whole = idle.clone().find(|&cpu| level.smt || self.is_idle_core(cpu));
        let chosen = whole.or_else(|| idle.next());
        chosen.unwrap_or(group.iter().copied().min().unwrap_or(cpu)) == cpu
    }

    /// The nth group of a level, the first of which is the local one.
    fn group_of(&self, tasks: &[Task], nth: usize, cpus: &[usize]) -> Group {
        let mut group = self.group(cpus);
        if nth > 0 {
            let misfits = cpus.iter().map(|&cpu| self.misfit(tasks, cpu));
            group.misfit = misfits.fold(0.0, f64::max);
        }
        group
    }

    /// sched_balance_rq().
    fn balance(&mut self, tasks: &[Task], pull: Pull) -> Pulled {
        let Pull { to, nth, .. } = pull;
        if nth + 1 == self.domains[to].len() {
            self.look_for_overutilized();
            let mut all = 0..self.cpus.len();
            let waits = |cpu: usize| self.queues[cpu].nr() > 1 || self.misfit(tasks, cpu) > 0.0;
            self.overloaded = all.any(waits);
        }
        let Some((from, amount)) = self.find_busiest(tasks, pull) else {
            return self.found_nothing(pull);
        };
        let moved = self.take(tasks, pull, from, amount);
        let misfit = amount == Amount::Misfit;
        let level = &mut self.domains[to][nth];
        if !moved.is_empty() {
            level.failed = 0;
            level.interval_ms = level.interval_min_ms();
            return Pulled::Waiting(moved);
        }
        if pull.look != Look::NewlyIdle && !misfit {
            level.failed += 1;
        }
        let stuck = matches!(amount, Amount::Tasks(_)) && level.failed > level.failures_max() + 2;
        let running = self.queues[from].current().filter(|&id| tasks[id].may_run_on(to));
        if running.is_some() && (misfit || stuck) {
            self.domains[to][nth].failed = 0;
            return Pulled::Running(from);
        }
        Pulled::Nothing
    }

    /// The CPU to take from, and how much.
    fn find_busiest(&self, tasks: &[Task], pull: Pull) -> Option<(usize, Amount)> {
        let level = &self.domains[pull.to][pull.nth];
        let by = Looker {
            idle: pull.look != Look::Busy,
            capacity: self.capacity[pull.to],
            only_misfit: self.energy.is_some() && !self.overutilized,
        };
        let groups = level.groups.iter().enumerate();
        let groups: Vec<Group> =
            groups.map(|(nth, cpus)| self.group_of(tasks, nth, cpus)).collect();
        let (group, amount) = find(level, by, &groups)?;
        let from = self.busiest(tasks, pull.to, &level.groups[group], level.asym, amount)?;
        Some((from, amount))
    }

    /// The level is balanced: the next look may wait for longer.
    fn found_nothing(&mut self, pull: Pull) -> Pulled {
        let level = &mut self.domains[pull.to][pull.nth];
        level.failed = 0;
        if pull.look != Look::NewlyIdle {
            level.interval_ms = (level.interval_ms * 2).min(2 * level.interval_min_ms());
        }
        Pulled::Nothing
    }

    /// sched_balance_find_src_rq(): the busiest CPU of the group, by what is to be moved.
    fn busiest(
        &self,
        tasks: &[Task],
        to: usize,
        group: &[usize],
        asym: bool,
        amount: Amount,
    ) -> Option<usize> {
        let nr = |cpu: usize| self.queues[cpu].nr();
        let larger = |cpu: usize| self.capacity[to] > self.capacity[cpu] * 1.05;
        let score = |cpu: usize| match amount {
            Amount::Load(load) if nr(cpu) == 1 && self.cpus[cpu].signals.load > load => 0.0,
            Amount::Load(_) => self.cpus[cpu].signals.load / self.capacity[cpu],
            Amount::Util(_) if nr(cpu) <= 1 => 0.0,
            Amount::Util(_) => self.util_boosted(cpu, None, None),
            Amount::Tasks(_) => nr(cpu) as f64,
            Amount::Misfit => self.misfit(tasks, cpu),
        };
        let cpus = group.iter().copied().filter(|&cpu| !(asym && nr(cpu) == 1 && !larger(cpu)));
        let scores = cpus.map(|cpu| (cpu, score(cpu))).filter(|(_, score)| *score > 0.0);
        // The first one of those that have the most.
        let most = scores.reduce(|most, other| if other.1 > most.1 { other } else { most });
        most.map(|(cpu, _)| cpu)
    }

    /// detach_tasks(): moves what waits on `from`, longest first, until the amount is reached.
    fn take(&mut self, tasks: &[Task], pull: Pull, from: usize, mut amount: Amount) -> Vec<usize> {
        let Pull { now_ns, to, nth, look } = pull;
        let level = &self.domains[to][nth];
        let (smt, failed) = (level.smt, level.failed);
        let cold = |id: usize| {
            smt || failed > level.failures_max()
                || now_ns - self.tasks[id].stopped_ns >= MIGRATION_COST_NS
        };
        let waiting = self.queues[from].waiting().filter(|&id| !self.entities[id].delayed);
        let mut candidates: Vec<usize> =
            waiting.filter(|&id| tasks[id].may_run_on(to) && cold(id)).collect();
        candidates.sort_by_key(|&id| self.tasks[id].stopped_ns);
        let mut moved = Vec::new();
        for id in candidates {
            let alone = self.queues[from].nr() <= 1;
            if look != Look::Busy && alone || !self.counts(id, from, failed, &mut amount) {
                continue;
            }
            self.move_waiting(now_ns, id, to);
            moved.push(id);
            let done = match amount {
                Amount::Load(left) | Amount::Util(left) => left <= 0.0,
                Amount::Tasks(left) => left == 0,
                Amount::Misfit => true,
            };
            if done || look == Look::NewlyIdle {
                break;
            }
        }
        moved
    }

    /// Whether task `id` is not too much; takes it off the amount. The limit is relaxed with each
    /// failure.
    fn counts(&self, id: usize, from: usize, failed: u32, amount: &mut Amount) -> bool {
        let relaxed = |size: f64| size / f64::from(1_u32 << failed.min(31));
        let task = &self.tasks[id];
        match amount {
            Amount::Load(left) if relaxed(task.signals.load) > *left => return false,
            Amount::Load(left) => *left -= task.signals.load.max(1.0),
            Amount::Util(left) if relaxed(task.util_est()) > *left => return false,
            Amount::Util(left) => *left -= task.util_est(),
            Amount::Tasks(left) => *left = left.saturating_sub(1),
            Amount::Misfit => return !self.task_fits(id, from),
        }
        true
    }
}
