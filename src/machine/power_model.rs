//! What a machine's power says of how to use it: the lowest clock of each CPU that saves energy, and
//! for which runs it is worth waking another CPU.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;

use powerpack_sim::{Machine, MachineCpu};
use scx_utils::PerfDomain;
use scx_utils::compat::ROOT_PREFIX;

use crate::machine::calibrated::Calibrated;
use crate::machine::energy_model;
use crate::machine::topology::Ranks;

/// What is assumed where nothing says what a CPU takes (% of its capacity): seven tenths of its
/// highest frequency, with what schedutil adds. What other floors save is in docs/how-it-decides.md.
pub const FLOOR_DEFAULT_PCT: u32 = 55;
/// schedutil adds a quarter to what is asked for (map_util_perf()).
const SCHEDUTIL_FACTOR: f64 = 1.25;
/// Of the power of the slowest working point: what is awake around a CPU, which the kernel's
/// energy model does not have. An estimate.
const KEPT_AWAKE_SHARE: f64 = 0.5;
/// Runs from here on are not short, whatever a wake-up costs (us): they would wait for each other.
const SHORT_MAX_US: f64 = 1000.0;

/// A working point of a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Of the CPU's highest, above 0 and up to 1.
    pub speed: f64,
    /// In any unit that is the same for all points, beyond what the idle CPU takes.
    pub power: f64,
}

/// What is known of a CPU's power.
#[derive(Clone, Debug, Default)]
pub struct CpuPower {
    /// Slowest first; none: nothing is known.
    pub points: Vec<Point>,
    /// What else is awake because the CPU is, in the same unit.
    pub kept_awake: f64,
}

/// What says what a machine's CPUs take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    EnergyModel,
    /// `scx_powerpack calibrate`.
    Calibrated,
    /// A file of the simulator.
    Simulated,
    /// Nothing does.
    #[default]
    Defaults,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::EnergyModel => "the kernel's energy model",
            Source::Calibrated => "what scx_powerpack calibrate has measured",
            Source::Simulated => "the machine's file",
            Source::Defaults => {
                "defaults for any machine, as the kernel has no energy model of this one and \
                 scx_powerpack calibrate has not measured it"
            }
        })
    }
}

/// What a machine's power says of how to use it.
#[derive(Clone, Debug, Default)]
pub struct PowerModel {
    pub source: Source,
    /// Whether clocks change, and can be asked for a performance.
    pub has_cpufreq: bool,
    /// By CPU of which the power is known: the lowest target that saves energy (% of its capacity).
    pub floor_pct: BTreeMap<usize, u32>,
    /// Runs of at least this length are worth waking another CPU of the group (us); none: no run
    /// is, and the fewest CPUs take the least.
    pub worth_waking_us: Option<f64>,
}

impl CpuPower {
    /// As a machine file says it (mW).
    pub fn of_file(machine: &Machine, cpu: &MachineCpu) -> Self {
        let points = machine.working_points(cpu).into_iter();
        CpuPower {
            points: points.map(|(speed, power)| Point { speed, power }).collect(),
            kept_awake: machine.kept_awake_mw(cpu),
        }
    }

    /// The point at which work costs least.
    fn optimum(&self) -> Option<&Point> {
        let cost = |point: &&Point| (point.power + self.kept_awake) / point.speed;
        self.points.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))
    }

    /// The lowest performance target that saves energy (% of the capacity).
    pub fn floor_pct(&self) -> u32 {
        // Rounded down: a little more, and schedutil chooses the next higher frequency.
        let asked = |best: &Point| (best.speed / SCHEDUTIL_FACTOR * 100.0) as u32;
        self.optimum().map_or(FLOOR_DEFAULT_PCT, asked)
    }

    /// See [`PowerModel::worth_waking_us`]; `exit_us` is how long the CPU takes to leave its deepest
    /// idle state (us).
    ///
    /// Of n CPUs that are busy for U in all, at random, one is awake for 1 - (1 - U/n)^n of the
    /// time, about U - U^2/2 (1 - 1/n): what is kept awake is so for less by that last term. But of
    /// the wake-ups, U / run in a time, 1 - 1/n more of U meet an idle CPU, and each costs power x
    /// exit latency. Both are the same where run = 2 power exit / kept awake, whatever U and n are.
    pub fn worth_waking_us(&self, exit_us: f64, latency_budget: Duration) -> Option<f64> {
        // Not known: a core and what is around it take about the same.
        let ratio = match self.optimum() {
            Some(point) if self.kept_awake > 0.0 => point.power / self.kept_awake,
            Some(_) => f64::INFINITY,
            None => 1.0,
        };
        let run_us = if exit_us > 0.0 { 2.0 * ratio * exit_us } else { 0.0 };
        // Waiting bundles runs that are no further apart than the budget: if only longer ones are
        // worth a wake-up, none is.
        let longest_us = latency_budget.as_secs_f64() * 1e6;
        (run_us <= longest_us).then_some(run_us.min(SHORT_MAX_US))
    }
}

impl PowerModel {
    /// This machine's: powers by the kernel's energy model, exit latencies by cpuidle; without the former
    /// by what `calibrate` measured. Where there is none of these, defaults for any machine.
    pub fn of_this_machine(
        ranks: &Ranks,
        has_cpufreq: bool,
        latency_budget: Duration,
        calibrated: Option<Calibrated>,
    ) -> Self {
        let mut cpus = BTreeMap::new();
        for domain in energy_model::domains() {
            let power = cpu_power(&domain);
            cpus.extend(domain.span.iter().map(|cpu| (cpu, power.clone())));
        }
        let mut source = if cpus.is_empty() { Source::Defaults } else { Source::EnergyModel };
        if let (Source::Defaults, Some(calibrated)) = (source, calibrated) {
            (cpus, source) = (calibrated, Source::Calibrated);
        }
        let worth_waking =
            |cpu: usize, power: &CpuPower| power.worth_waking_us(exit_us(cpu), latency_budget);
        PowerModel { source, ..Self::of(ranks, &cpus, has_cpufreq, worth_waking) }
    }

    /// By the power of those CPUs of which it is known, and what is worth a wake-up of the CPU that is
    /// filled first.
    pub fn of(
        ranks: &Ranks,
        cpus: &BTreeMap<usize, CpuPower>,
        has_cpufreq: bool,
        worth_waking: impl Fn(usize, &CpuPower) -> Option<f64>,
    ) -> Self {
        let floor_pct = cpus.iter().map(|(&cpu, power)| (cpu, power.floor_pct())).collect();
        let first = ranks.cpus().first().map_or(0, |first| first.cpu);
        let unknown = CpuPower::default();
        let power = cpus.get(&first).unwrap_or(&unknown);
        let worth_waking_us = worth_waking(first, power);
        PowerModel { has_cpufreq, floor_pct, worth_waking_us, source: Source::default() }
    }
}

/// What the kernel's energy model says.
fn cpu_power(domain: &PerfDomain) -> CpuPower {
    let max = domain.perf_table.keys().last().copied().unwrap_or(0).max(1) as f64;
    let point = |performance: usize, power: usize| Point {
        speed: performance as f64 / max,
        power: power as f64,
    };
    let states = domain.perf_table.iter().filter(|(performance, _)| **performance > 0);
    let points: Vec<Point> =
        states.map(|(performance, state)| point(*performance, state.power)).collect();
    let kept_awake = points.first().map_or(0.0, |slowest| slowest.power * KEPT_AWAKE_SHARE);
    CpuPower { points, kept_awake }
}

/// How long `cpu` takes to leave its deepest idle state (us); 0 without cpuidle.
fn exit_us(cpu: usize) -> f64 {
    let states = format!("{}/sys/devices/system/cpu/cpu{cpu}/cpuidle", *ROOT_PREFIX);
    let latency = |dir: fs::DirEntry| {
        fs::read_to_string(dir.path().join("latency")).ok()?.trim().parse::<f64>().ok()
    };
    let latencies = fs::read_dir(states).into_iter().flatten().flatten().filter_map(latency);
    latencies.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(points: &[(u32, f64)], kept_awake: f64) -> CpuPower {
        let highest = f64::from(points.last().unwrap().0);
        let point = |&(mhz, power)| Point { speed: f64::from(mhz) / highest, power };
        CpuPower { points: points.iter().map(point).collect(), kept_awake }
    }

    const BUDGET: Duration = Duration::from_millis(5);

    /// Of chromebook2: 0.12 mW a MHz at 500 MHz, 0.118 at 600, 0.165 at 1300.
    const A7: [(u32, f64); 4] = [(500, 60.0), (600, 71.0), (900, 115.0), (1300, 214.0)];

    #[test]
    fn the_more_is_kept_awake_the_faster_is_best() {
        let floor = |kept_awake| power(&A7, kept_awake).floor_pct();
        assert_eq!(floor(0.0), 36, "600 of 1300 MHz, and a quarter is added");
        assert_eq!(floor(36.0), 55, "900 MHz");
        assert_eq!(floor(1000.0), 80, "all there is");
        assert_eq!(CpuPower::default().floor_pct(), FLOOR_DEFAULT_PCT);
    }

    #[test]
    fn a_run_is_worth_a_wake_up_by_what_is_kept_awake_meanwhile() {
        let worth = |kept_awake, exit_us| power(&A7, kept_awake).worth_waking_us(exit_us, BUDGET);
        assert_eq!(worth(36.0, 0.0), Some(0.0), "waking costs nothing");
        let at_full = 2.0 * 214.0 / 1000.0 * 100.0;
        assert_eq!(worth(1000.0, 100.0), Some(at_full));
    }

    #[test]
    fn where_no_run_is_worth_a_wake_up_the_fewest_cpus_are_best() {
        let worth = |kept_awake, exit_us| power(&A7, kept_awake).worth_waking_us(exit_us, BUDGET);
        assert_eq!(worth(16.0, 900.0), None, "7.9 ms");
        assert_eq!(worth(0.0, 1.0), None);
        assert_eq!(worth(36.0, 500.0), Some(SHORT_MAX_US), "3.2 ms, but 1 ms is not short");
        let unknown = |exit_us| CpuPower::default().worth_waking_us(exit_us, BUDGET);
        assert_eq!((unknown(0.0), unknown(200.0)), (Some(0.0), Some(400.0)));
    }
}
