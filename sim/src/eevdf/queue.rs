//! The run queue of a CPU: earliest eligible virtual deadline first (kernel/sched/fair.c of 6.12).
//! A task is eligible if it has had no more than its share: its vruntime is at most V, the average
//! of all, weighted. Of those that are, the one with the earliest deadline runs.

use std::collections::BTreeSet;

/// Weight of nice 0 (NICE_0_LOAD).
pub const NICE_0: u64 = 1024;

/// What the queue knows of a task. Virtual times are ns of a task of nice 0.
#[derive(Clone, Debug)]
pub struct Entity {
    pub weight: u64,
    vruntime: i64,
    deadline: i64,
    /// V less its vruntime when it left its last queue.
    lag: i64,
    /// The deadline is relative to its vruntime: it was moved before that was over.
    relative: bool,
    /// It sleeps, but stays in the queue until it is eligible (DELAY_DEQUEUE).
    pub delayed: bool,
    /// It was placed in no queue yet.
    pub is_new: bool,
}

impl Entity {
    pub fn new(weight: u64) -> Self {
        Entity {
            weight,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            relative: false,
            delayed: false,
            is_new: true,
        }
    }

    /// calc_delta_fair(): virtual time in which it gets `ns`.
    fn virtual_ns(&self, ns: u64) -> i64 {
        (ns * NICE_0 / self.weight) as i64
    }
}

/// What waits for a CPU, and what runs there.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Waiting, by deadline; those with delayed dequeue too.
    waiting: BTreeSet<(i64, usize)>,
    current: Option<usize>,
    /// The deadline until which what runs is not preempted (RUN_TO_PARITY).
    protected: Option<i64>,
    /// Sums over what waits: weights, and weight times vruntime. Wide, so that no base has to be
    /// taken off, as the kernel must.
    weights: i128,
    weighted: i128,
    /// V when it was last asked for: where an empty queue goes on.
    average: i64,
    /// Its request is used up, or another one is due: resched_curr().
    pub must_schedule: bool,
    slice_ns: u64,
    tick_ns: u64,
}

impl Queue {
    /// `slice_ns`: what a task asks for at a time (sysctl_sched_base_slice).
    pub fn new(slice_ns: u64, tick_ns: u64) -> Self {
        Queue {
            waiting: BTreeSet::new(),
            current: None,
            protected: None,
            weights: 0,
            weighted: 0,
            average: 0,
            must_schedule: false,
            slice_ns,
            tick_ns,
        }
    }

    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// All that waits, also what sleeps and is delayed.
    pub fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting.iter().map(|&(_, id)| id)
    }

    /// All that waits or runs (nr_running).
    pub fn nr(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    /// Weights, and weight times vruntime, of all.
    fn sums(&self, entities: &[Entity]) -> (i128, i128) {
        self.current.map_or((self.weights, self.weighted), |id| {
            let weight = i128::from(entities[id].weight);
            (self.weights + weight, self.weighted + weight * i128::from(entities[id].vruntime))
        })
    }

    /// V, rounded down: avg_vruntime().
    fn average(&mut self, entities: &[Entity]) -> i64 {
        let (weights, weighted) = self.sums(entities);
        if weights > 0 {
            self.average = weighted.div_euclid(weights) as i64;
        }
        self.average
    }

    /// vruntime <= V, without its rounding: entity_eligible().
    fn is_eligible(&self, entities: &[Entity], id: usize) -> bool {
        let (weights, weighted) = self.sums(entities);
        weighted >= i128::from(entities[id].vruntime) * weights
    }

    fn insert(&mut self, entities: &[Entity], id: usize) {
        let entity = &entities[id];
        self.weights += i128::from(entity.weight);
        self.weighted += i128::from(entity.weight) * i128::from(entity.vruntime);
        self.waiting.insert((entity.deadline, id));
    }

    fn take(&mut self, entities: &[Entity], id: usize) {
        let entity = &entities[id];
        self.waiting.remove(&(entity.deadline, id));
        self.weights -= i128::from(entity.weight);
        self.weighted -= i128::from(entity.weight) * i128::from(entity.vruntime);
    }

    /// What runs has run for `ran_ns`: update_curr().
    pub fn charge(&mut self, entities: &mut [Entity], ran_ns: u64) {
        let Some(id) = self.current else { return };
        entities[id].vruntime += entities[id].virtual_ns(ran_ns);
        let used_up = entities[id].vruntime >= entities[id].deadline;
        if used_up {
            entities[id].deadline = entities[id].vruntime + entities[id].virtual_ns(self.slice_ns);
        }
        let alone = self.waiting.is_empty();
        let gives_way = !self.is_protected(&entities[id]) && !self.is_eligible(entities, id);
        self.must_schedule |= !alone && (used_up || gives_way);
    }

    /// Whether what runs still has the deadline with which it began: protect_slice().
    fn is_protected(&self, current: &Entity) -> bool {
        self.protected == Some(current.deadline)
    }

    /// The task that is to run, maybe one that sleeps (delayed): pick_eevdf().
    pub fn pick(&self, entities: &[Entity]) -> Option<usize> {
        if self.nr() <= 1 {
            return self.current.or_else(|| self.waiting().next());
        }
        let current = self.current.filter(|&id| self.is_eligible(entities, id));
        if current.is_some_and(|id| self.is_protected(&entities[id])) {
            return current;
        }
        let best = self.waiting().find(|&id| self.is_eligible(entities, id));
        match (best, current) {
            (Some(best), Some(id)) if entities[id].deadline < entities[best].deadline => Some(id),
            (Some(best), _) => Some(best),
            (None, _) => current,
        }
    }

    /// `next` runs from now on; what ran waits, if it can. set_next_entity().
    pub fn switch_to(&mut self, entities: &[Entity], next: Option<usize>) {
        self.must_schedule = false;
        if next.is_some() && next == self.current {
            return;
        }
        if let Some(prev) = self.current.take() {
            self.insert(entities, prev);
        }
        if let Some(id) = next {
            self.take(entities, id);
            self.protected = Some(entities[id].deadline);
        }
        self.current = next;
    }

    /// Task `id` comes to wait: place_entity(), and into the queue.
    pub fn enqueue(&mut self, entities: &mut [Entity], id: usize) {
        let average = self.average(entities);
        let (weights, _) = self.sums(entities);
        let slice = entities[id].virtual_ns(self.slice_ns);
        let entity = &mut entities[id];
        // Adding it moves V towards it: its lag is inflated so that it is right afterwards.
        let lag = match weights {
            0 => 0,
            _ => i128::from(entity.lag) * (weights + i128::from(entity.weight)) / weights,
        };
        entity.vruntime = average - lag as i64;
        if std::mem::take(&mut entity.relative) {
            entity.deadline += entity.vruntime;
        } else {
            // Half a slice for a new one, as the others are in the middle of theirs.
            let part = if entity.is_new { slice / 2 } else { slice };
            entity.deadline = entity.vruntime + part;
        }
        entity.is_new = false;
        self.insert(entities, id);
    }

    /// What runs goes to sleep. Whether it has left: if it has had more than its share it stays,
    /// and its lag goes by as if it waited.
    pub fn sleep(&mut self, entities: &mut [Entity]) -> bool {
        let Some(id) = self.current else { return true };
        if self.is_eligible(entities, id) {
            self.leave(entities, id, false);
            return true;
        }
        entities[id].delayed = true;
        self.current = None;
        self.insert(entities, id);
        false
    }

    /// Task `id`, which slept and stayed, leaves: finish_delayed_dequeue_entity().
    pub fn finish_sleep(&mut self, entities: &mut [Entity], id: usize) {
        self.leave(entities, id, false);
        entities[id].delayed = false;
        entities[id].lag = entities[id].lag.min(0);
    }

    /// It wakes where it stayed: requeue_delayed_entity(). Having waited, it gets no credit.
    pub fn wake_delayed(&mut self, entities: &mut [Entity], id: usize) {
        entities[id].delayed = false;
        if self.lag_of(entities, id) > 0 {
            self.take(entities, id);
            entities[id].lag = 0;
            self.enqueue(entities, id);
        }
    }

    /// It goes to another CPU, with the rest of its request (PLACE_REL_DEADLINE).
    pub fn move_away(&mut self, entities: &mut [Entity], id: usize) {
        self.leave(entities, id, true);
    }

    fn leave(&mut self, entities: &mut [Entity], id: usize, moves: bool) {
        let lag = self.lag_of(entities, id);
        if self.current == Some(id) {
            self.current = None;
        } else {
            self.take(entities, id);
        }
        let entity = &mut entities[id];
        entity.lag = lag;
        entity.relative = moves;
        if moves {
            entity.deadline -= entity.vruntime;
        }
    }

    /// entity_lag(): V less its vruntime, within two slices or a tick.
    fn lag_of(&mut self, entities: &[Entity], id: usize) -> i64 {
        let entity = &entities[id];
        let most = entity.virtual_ns((2 * self.slice_ns).max(self.tick_ns));
        (self.average(entities) - entity.vruntime).clamp(-most, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_NS: u64 = 2_800_000;
    const TICK_NS: u64 = 4_000_000;
    const MS: u64 = 1_000_000;

    /// A queue on which tasks of those weights wait, all placed at once.
    fn queue(weights: &[u64]) -> (Queue, Vec<Entity>) {
        let mut queue = Queue::new(SLICE_NS, TICK_NS);
        let mut entities: Vec<Entity> = weights.iter().map(|&weight| Entity::new(weight)).collect();
        for (id, entity) in entities.iter_mut().enumerate() {
            entity.deadline = id as i64;
            entity.is_new = false;
        }
        (0..weights.len()).for_each(|id| queue.insert(&entities, id));
        (queue, entities)
    }

    fn run(queue: &mut Queue, entities: &mut [Entity], ran_ns: u64) -> Option<usize> {
        queue.charge(entities, ran_ns);
        let next = queue.pick(entities);
        queue.switch_to(entities, next);
        next
    }

    #[test]
    fn v_is_the_weighted_average_and_what_is_above_it_is_not_eligible() {
        let (mut queue, mut entities) = queue(&[1024, 3072]);
        queue.switch_to(&entities, Some(0));
        queue.charge(&mut entities, 4 * MS);
        // (4 ms * 1024 + 0 * 3072) / 4096
        assert_eq!(queue.average(&entities), MS as i64);
        assert!(!queue.is_eligible(&entities, 0) && queue.is_eligible(&entities, 1));
        queue.switch_to(&entities, Some(1));
        queue.charge(&mut entities, 12 * MS);
        // Three times the weight: virtual time passes at a third.
        assert_eq!(
            (entities[1].vruntime, queue.average(&entities)),
            (4 * MS as i64, 4 * MS as i64)
        );
    }

    #[test]
    fn a_deadline_is_a_slice_ahead_by_weight_and_half_of_one_for_a_new_task() {
        let (mut queue, mut entities) = queue(&[1024]);
        entities.push(Entity::new(2048));
        queue.enqueue(&mut entities, 1);
        assert_eq!(entities[1].deadline, (SLICE_NS / 2 / 2) as i64);
        queue.switch_to(&entities, Some(1));
        assert!(queue.sleep(&mut entities));
        queue.enqueue(&mut entities, 1);
        assert_eq!(entities[1].deadline - entities[1].vruntime, (SLICE_NS / 2) as i64);
    }

    #[test]
    fn of_the_eligible_the_earliest_deadline_runs() {
        let (mut queue, mut entities) = queue(&[1024, 1024, 1024]);
        for (id, vruntime, deadline) in [(0, 3000, 10), (1, 0, 30), (2, 0, 20)] {
            queue.take(&entities, id);
            (entities[id].vruntime, entities[id].deadline) = (vruntime, deadline);
            queue.insert(&entities, id);
        }
        // The first one has the earliest, but its vruntime is above V = 1000.
        assert_eq!(queue.pick(&entities), Some(2));
    }

    #[test]
    fn what_runs_is_not_preempted_before_its_request_is_used_up() {
        let (mut queue, mut entities) = queue(&[1024]);
        queue.switch_to(&entities, Some(0));
        queue.charge(&mut entities, MS);
        entities[0].deadline = queue.average + 9 * MS as i64;
        queue.protected = Some(entities[0].deadline);
        entities.push(Entity::new(1024));
        queue.enqueue(&mut entities, 1);
        assert_eq!(queue.pick(&entities), Some(0), "although the other's deadline is earlier");
        queue.protected = None;
        assert_eq!(queue.pick(&entities), Some(1));
    }

    #[test]
    fn tasks_share_a_cpu_by_weight() {
        let (mut queue, mut entities) = queue(&[1024, 3072]);
        queue.switch_to(&entities, Some(0));
        let mut ran_ms = [0, 0];
        for _ in 0..4000 {
            let running = queue.current.unwrap();
            ran_ms[running] += 1;
            run(&mut queue, &mut entities, MS);
        }
        assert!((990..1010).contains(&ran_ms[0]), "{ran_ms:?}");
    }

    #[test]
    fn lag_is_kept_across_sleep_and_a_debt_is_waited_off() {
        let (mut queue, mut entities) = queue(&[1024, 1024]);
        queue.switch_to(&entities, Some(0));
        queue.charge(&mut entities, 2 * MS);
        // It has had 1 ms more than its half.
        assert!(!queue.sleep(&mut entities) && entities[0].delayed);
        assert_eq!(queue.nr(), 2);
        queue.switch_to(&entities, Some(1));
        queue.charge(&mut entities, 3 * MS);
        queue.finish_sleep(&mut entities, 0);
        assert_eq!(entities[0].lag, 0, "no credit for having slept");

        // With credit it leaves at once, and comes back with it: V - v is 1 ms again.
        entities[0].vruntime = queue.average(&entities);
        queue.insert(&entities, 0);
        queue.charge(&mut entities, 2 * MS);
        queue.switch_to(&entities, Some(0));
        assert!(queue.sleep(&mut entities));
        assert_eq!(entities[0].lag, MS as i64);
        queue.enqueue(&mut entities, 0);
        assert_eq!(queue.lag_of(&entities, 0), MS as i64);
    }

    #[test]
    fn what_moves_keeps_the_rest_of_its_request() {
        let (mut from, mut entities) = queue(&[1024, 1024]);
        let mut to = Queue::new(SLICE_NS, TICK_NS);
        entities[1].deadline = 1;
        (to.average, entities[1].vruntime) = (500, 0);
        from.move_away(&mut entities, 1);
        to.enqueue(&mut entities, 1);
        assert_eq!((entities[1].vruntime, entities[1].deadline), (500, 501));
    }
}
