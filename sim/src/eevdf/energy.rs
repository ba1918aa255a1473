//! Energy-aware placement: find_energy_efficient_cpu() of 6.12 (kernel/sched/fair.c) with the
//! kernel's energy model (include/linux/energy_model.h). The 6 % by which another CPU once had to be
//! better than the previous one went in Linux 6.0.

use super::signals::SCALE;
use crate::machine::Machine;
use crate::power::{Domain, HEADROOM};

/// util_fits_cpu(): a CPU carries up to 80 % of its capacity (fits_capacity()).
pub fn fits(util: f64, capacity: f64) -> bool {
    util * 1.25 < capacity
}

/// CPUs that share a clock.
#[derive(Clone, Debug)]
pub struct PerfDomain {
    cpus: Vec<usize>,
    /// Slowest first: capacity, and power over capacity (mW for 1024 of work).
    states: Vec<(f64, f64)>,
}

impl PerfDomain {
    /// em_cpu_energy(): the state that schedutil would choose for `max_util`, times the work.
    fn energy(&self, max_util: f64, busy: f64) -> f64 {
        let state = self.states.iter().find(|(capacity, _)| *capacity >= max_util);
        state.or(self.states.last()).map_or(0.0, |(_, cost)| cost * busy)
    }
}

/// The perf domains; none where a kernel has no energy-aware scheduling.
pub fn perf_domains(machine: &Machine, clocks: &[Domain]) -> Option<Vec<PerfDomain>> {
    if !machine.has_energy_model() {
        return None;
    }
    let places = machine.cpus();
    let domain = |clock: &Domain| {
        let place = &places[clock.cpus[0]];
        let opps = clock.opps_chosen();
        let highest = machine.core_of(place).opps.last().map_or(1.0, |opp| f64::from(opp.mhz));
        let state = |(mhz, mw): (u32, f64)| {
            let capacity = place.capacity as f64 * f64::from(mhz) / highest;
            (capacity, mw / capacity * SCALE)
        };
        PerfDomain { cpus: clock.cpus.clone(), states: opps.map(state).collect() }
    };
    Some(clocks.iter().map(domain).collect())
}

/// What is known when a task wakes, by CPU.
#[derive(Clone, Debug, Default)]
pub struct Landscape {
    /// Utilization without the task, and with it if it went there.
    pub without: Vec<f64>,
    pub with: Vec<f64>,
    /// The same for the frequency: what waits counts as if it ran.
    pub boosted_without: Vec<f64>,
    pub boosted_with: Vec<f64>,
    pub capacity: Vec<f64>,
    pub allowed: Vec<bool>,
    /// The task's.
    pub task: f64,
}

impl Landscape {
    /// compute_energy(): what `domain` takes with the task on `to`, or without it.
    fn energy(&self, domain: &PerfDomain, to: Option<usize>) -> f64 {
        let busy: f64 = domain.cpus.iter().map(|&cpu| self.without[cpu]).sum();
        let room: f64 = domain.cpus.iter().map(|&cpu| self.capacity[cpu]).sum();
        let task = if to.is_some() { self.task } else { 0.0 };
        let util = |&cpu: &usize| {
            let boosted = if to == Some(cpu) { &self.boosted_with } else { &self.boosted_without };
            (boosted[cpu] * HEADROOM).min(self.capacity[cpu])
        };
        let max_util = domain.cpus.iter().map(util).fold(0.0, f64::max);
        domain.energy(max_util, (busy.min(room) + task).min(room))
    }

    /// What is left of `cpu` with the task there; none: it does not fit, or may not run there.
    fn spare(&self, cpu: usize) -> Option<f64> {
        let fits = self.allowed[cpu] && fits(self.with[cpu], self.capacity[cpu]);
        fits.then(|| self.capacity[cpu] - self.with[cpu])
    }

    /// The CPU where the task takes the least, of each domain's with the most left and the previous
    /// one; that one if none takes less.
    pub fn choose(&self, domains: &[PerfDomain], prev: usize) -> usize {
        let (mut prev_delta, mut best_delta) = (f64::INFINITY, f64::INFINITY);
        let mut best = None;
        for domain in domains {
            let is_prev = domain.cpus.contains(&prev);
            let prev_spare = self.spare(prev).filter(|_| is_prev);
            let spare = |&cpu: &usize| Some((cpu, self.spare(cpu)?));
            let others = domain.cpus.iter().filter(|&&cpu| cpu != prev).filter_map(spare);
            // The first one of those that have the most.
            let most = others.fold(None, |most: Option<(usize, f64)>, other| match most {
                Some((_, spare)) if other.1 <= spare => most,
                _ => Some(other),
            });
            let base = self.energy(domain, None);
            if prev_spare.is_some() {
                prev_delta = self.energy(domain, Some(prev)) - base;
                best_delta = f64::min(best_delta, prev_delta);
            }
            let Some((cpu, _)) = most.filter(|(_, spare)| *spare > prev_spare.unwrap_or(-1.0))
            else {
                continue;
            };
            let delta = self.energy(domain, Some(cpu)) - base;
            if delta < best_delta {
                (best, best_delta) = (Some(cpu), delta);
            }
        }
        best.filter(|_| best_delta < prev_delta).unwrap_or(prev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two small CPUs (0, 1) of 512, and two large ones (2, 3) of 1024.
    fn domains() -> [PerfDomain; 2] {
        // At 256 of 512: 64 mW, 256 mW for 1024 of work; at 512: 256 mW, so 512. The large ones are
        // those of four times the power at the same share of their capacity.
        [
            PerfDomain { cpus: vec![0, 1], states: vec![(256.0, 256.0), (512.0, 512.0)] },
            PerfDomain { cpus: vec![2, 3], states: vec![(512.0, 512.0), (1024.0, 1024.0)] },
        ]
    }

    /// CPUs used so much, and a task on none of them.
    fn landscape(used: [f64; 4], task: f64) -> Landscape {
        Landscape {
            without: used.to_vec(),
            with: used.iter().map(|used| used + task).collect(),
            boosted_without: used.to_vec(),
            boosted_with: used.iter().map(|used| used + task).collect(),
            capacity: vec![512.0, 512.0, 1024.0, 1024.0],
            allowed: vec![true; 4],
            task,
        }
    }

    #[test]
    fn the_cheapest_domain_takes_the_task_and_its_cpu_with_the_most_left() {
        // On a small one: 100 * 256; on a large one: 100 * 512.
        assert_eq!(landscape([50.0, 0.0, 0.0, 0.0], 100.0).choose(&domains(), 2), 1);
        assert_eq!(landscape([0.0, 50.0, 0.0, 0.0], 100.0).choose(&domains(), 2), 0);
    }

    #[test]
    fn a_task_for_which_all_would_run_faster_goes_elsewhere() {
        // Both small ones do 100. With 150 more on one it wants 312: 350 * 512 instead of 200 * 256
        // is 128,000 more. A large one that wants 187 takes 150 * 512 = 76,800.
        let landscape = landscape([100.0, 100.0, 0.0, 0.0], 150.0);
        let [small, large] = domains();
        let more =
            |domain, cpu| landscape.energy(domain, Some(cpu)) - landscape.energy(domain, None);
        assert_eq!((more(&small, 0), more(&large, 2)), (128_000.0, 76_800.0));
        assert_eq!(landscape.choose(&domains(), 0), 2);
    }

    #[test]
    fn the_previous_cpu_is_kept_if_no_other_takes_less() {
        let even = landscape([0.0; 4], 100.0);
        assert_eq!(even.choose(&domains(), 1), 1, "the same as on the first one");
        let used = landscape([0.0, 50.0, 0.0, 0.0], 100.0);
        assert_eq!(used.choose(&domains(), 1), 1, "less is left, and it costs the same");
        // Together they want 312, of 256; apart 187.
        let fuller = landscape([0.0, 150.0, 0.0, 0.0], 100.0);
        assert_eq!(fuller.choose(&domains(), 1), 0);
    }

    #[test]
    fn it_goes_where_it_fits_and_stays_if_it_fits_nowhere() {
        // 80 % of 512 are 409.6.
        assert_eq!(landscape([0.0; 4], 409.0).choose(&domains(), 0), 0);
        assert_eq!(landscape([0.0; 4], 410.0).choose(&domains(), 0), 2);
        assert_eq!(landscape([0.0; 4], 900.0).choose(&domains(), 1), 1);
        let bound =
            Landscape { allowed: vec![true, true, false, true], ..landscape([0.0; 4], 500.0) };
        assert_eq!(bound.choose(&domains(), 0), 3);
    }

    #[test]
    fn points_that_are_not_worth_it_are_not_in_the_model() {
        use crate::power::{Governor, Power};
        let machine = Machine::find("chromebook2").unwrap();
        let mut power = Power::new(&machine, Governor::Schedutil);
        power.skip_inefficient(&machine);
        let domains = perf_domains(&machine, &power.domains).unwrap();
        // Of the A15 800, 1200, 1500, 1800, 1900 and 2000 MHz, of the A7 all but 500.
        let states: Vec<usize> = domains.iter().map(|domain| domain.states.len()).collect();
        assert_eq!(states, [8, 6]);
        assert!(perf_domains(&Machine::find("hybrid-laptop").unwrap(), &power.domains).is_none());
    }
}
