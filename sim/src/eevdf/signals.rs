//! Utilization as the kernel tracks it (kernel/sched/pelt.c of 6.12), of tasks and of CPUs. A CPU's
//! is the sum of those of the tasks that last ran there: it leaves with a task that moves. What is
//! not running decays when it is looked at, and a kernel does not look at an idle CPU all the time.

use crate::power::FULL;
use crate::signal::approach;

/// Capacity of the fastest CPU at its highest frequency, and so the unit of utilization.
pub const SCALE: f64 = FULL as f64;
/// From this utilization on the time that a slow CPU is behind is taken for lost, not for idle time
/// still to come: update_idle_rq_clock_pelt(), of (LOAD_AVG_MAX - 1024) / LOAD_AVG_MAX.
const SATURATED: f64 = SCALE * 0.9776;
/// util_est_update(): a decrease below this is not followed (1 %), others by a quarter.
const EST_MARGIN: f64 = SCALE / 100.0;
const EST_SHARE: f64 = 0.25;

/// The time that averages of a CPU go by: slower while it runs at less than the full capacity, so
/// that work counts the same everywhere, and in step again once it is idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeltClock {
    /// When it is not idle; else it is the real time (ns).
    busy_ns: Option<u64>,
    lost_ns: u64,
}

impl PeltClock {
    /// At real time `now_ns` (ns).
    pub fn at(&self, now_ns: u64) -> u64 {
        self.busy_ns.unwrap_or(now_ns) - self.lost_ns
    }

    pub fn is_idle(&self) -> bool {
        self.busy_ns.is_none()
    }

    /// The CPU runs something from `now_ns` on.
    pub fn begin(&mut self, now_ns: u64) {
        self.busy_ns.get_or_insert(now_ns);
    }

    /// It has run for `ran_ns` more, at `speed` (capacity and frequency, 1024 = full).
    pub fn run(&mut self, ran_ns: u64, speed: u64) {
        if let Some(busy_ns) = &mut self.busy_ns {
            *busy_ns += ran_ns * speed / FULL;
        }
    }

    /// It is idle from `now_ns` on; `util` is its utilization.
    pub fn end(&mut self, now_ns: u64, util: f64) {
        if let Some(busy_ns) = self.busy_ns.take()
            && util >= SATURATED
        {
            self.lost_ns += now_ns.saturating_sub(busy_ns);
        }
    }
}

/// What a task or a CPU does since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs {
    /// It runs.
    pub running: bool,
    /// How many of its tasks run or wait.
    pub runnable: usize,
    /// Their weights (1024 = nice 0).
    pub load: u64,
}

/// The averages, as of when they were last updated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Of what runs, and of what runs or waits (1024 = all of the time on the fastest CPU).
    pub util: f64,
    pub runnable: f64,
    /// Of the weights of what runs or waits.
    pub load: f64,
    updated_ns: u64,
}

impl Signals {
    /// Until `pelt_ns` of the CPU's clock it did `inputs`.
    pub fn update(&mut self, pelt_ns: u64, inputs: Inputs) {
        let elapsed_ns = pelt_ns.saturating_sub(self.updated_ns);
        let running = if inputs.running { SCALE } else { 0.0 };
        self.util = approach(self.util, running, elapsed_ns);
        self.runnable = approach(self.runnable, inputs.runnable as f64 * SCALE, elapsed_ns);
        self.load = approach(self.load, inputs.load as f64, elapsed_ns);
        self.updated_ns = pelt_ns;
    }

    /// When it was last updated, by the CPU's clock (ns).
    pub fn updated_ns(&self) -> u64 {
        self.updated_ns
    }

    /// A task comes to the CPU whose signals these are: attach_entity_load_avg().
    pub fn attach(&mut self, task: &mut Signals) {
        task.updated_ns = self.updated_ns;
        self.util += task.util;
        self.runnable += task.runnable;
        self.load += task.load;
    }

    /// It leaves: detach_entity_load_avg().
    pub fn detach(&mut self, task: &Signals) {
        self.util = (self.util - task.util).max(0.0);
        self.runnable = (self.runnable - task.runnable).max(0.0);
        self.load = (self.load - task.load).max(0.0);
    }

    /// What is assumed of a new task on a CPU of that capacity that has these signals:
    /// post_init_entity_util_avg(). All of its weight, and half of what utilization is left at most.
    pub fn of_new_task(&self, capacity: f64, weight: u64) -> Signals {
        let most = ((capacity - self.util) / 2.0).max(0.0);
        let util = match self.util {
            0.0 => most,
            util => (util * weight as f64 / (self.load + 1.0)).min(most),
        };
        Signals { util, runnable: util, load: weight as f64, updated_ns: self.updated_ns }
    }
}

/// The utilization that a task is remembered by, once it sleeps at `task`: it rises at once and
/// falls slowly; util_est_update().
pub fn estimate(before: f64, task: &Signals, capacity: f64) -> f64 {
    let fell_by = before - task.util;
    let waited = task.util + EST_MARGIN < task.runnable;
    if fell_by <= 0.0 {
        task.util
    } else if fell_by < EST_MARGIN || task.util > capacity || waited {
        before
    } else {
        before - fell_by * EST_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 periods of 1024 us.
    const HALF_LIFE_NS: u64 = 32 << 20;
    const RUNS: Inputs = Inputs { running: true, runnable: 1, load: 1024 };

    #[test]
    fn work_counts_the_same_on_a_slow_cpu() {
        let mut full = PeltClock::default();
        full.begin(0);
        full.run(HALF_LIFE_NS, 1024);
        let mut slow = PeltClock::default();
        slow.begin(0);
        slow.run(4 * HALF_LIFE_NS, 256);
        assert_eq!(full.at(u64::MAX), slow.at(u64::MAX));
        let mut signals = Signals::default();
        signals.update(slow.at(0), RUNS);
        assert_eq!((signals.util, signals.load), (512.0, 512.0));
    }

    #[test]
    fn an_idle_cpu_is_in_step_again_unless_it_had_no_time_left() {
        let mut clock = PeltClock::default();
        clock.begin(1000);
        clock.run(1000, 512);
        assert_eq!(clock.at(2000), 1500);
        let mut busy = clock;
        clock.end(2000, 500.0);
        assert_eq!(clock.at(2000), 2000);
        busy.end(2000, 1010.0);
        assert_eq!(busy.at(2000), 1500, "what it is behind will not be made up for");
        busy.begin(3000);
        assert_eq!(busy.at(9999), 2500);
    }

    #[test]
    fn utilization_moves_with_its_task() {
        let mut task = Signals { util: 300.0, runnable: 400.0, load: 500.0, updated_ns: 77 };
        let mut cpus = [Signals { util: 350.0, ..task }, Signals { util: 10.0, ..task }];
        cpus[1].updated_ns = 5;
        cpus[0].detach(&task);
        cpus[1].attach(&mut task);
        assert_eq!((cpus[0].util, cpus[1].util, task.updated_ns()), (50.0, 310.0, 5));
    }

    #[test]
    fn an_estimate_rises_at_once_and_falls_by_a_quarter() {
        let task = |util, runnable| Signals { util, runnable, ..Signals::default() };
        assert_eq!(estimate(100.0, &task(200.0, 200.0), 1024.0), 200.0);
        assert_eq!(estimate(200.0, &task(100.0, 100.0), 1024.0), 175.0);
        assert_eq!(estimate(200.0, &task(195.0, 195.0), 1024.0), 200.0, "within 1 %");
        assert_eq!(estimate(200.0, &task(100.0, 150.0), 1024.0), 200.0, "it had to wait");
        assert_eq!(estimate(600.0, &task(500.0, 500.0), 446.0), 600.0, "the CPU had no idle time");
    }

    #[test]
    fn a_new_task_gets_half_of_what_is_left() {
        assert_eq!(Signals::default().of_new_task(446.0, 1024).util, 223.0);
        let busy = Signals { util: 512.0, load: 2047.0, ..Signals::default() };
        assert_eq!(busy.of_new_task(1024.0, 1024).util, 256.0);
    }
}
