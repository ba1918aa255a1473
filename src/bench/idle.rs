//! What kept the CPUs and packages from sleeping in a run: wake-ups, interrupts, and how long packages slept.

use std::path::Path;

use log::debug;
use powerpack_load::clock;
use powerpack_load::schedstat::surplus_cpus;

use super::metric::Metric;
use super::programs::Figures;
use super::suite::Load;
use crate::machine::cpu_counts::{ByCpu, CpuCounts, per_s};
use crate::machine::package_states::{Others, PackageStates, is_c_state};
use crate::machine::sensors::mean;
use crate::wakes::IdleCount;

const NS_PER_S: f64 = 1e9;

/// Counts from when it was last started.
pub struct IdleMeter<'a> {
    /// Those that are online, in order.
    cpus: Vec<usize>,
    counts: CpuCounts,
    traced: Option<&'a IdleCount>,
    packages: PackageStates,
    before: Reading,
}

/// What was counted until an instant.
struct Reading {
    at_ns: u64,
    wake_ups: ByCpu,
    interrupts: ByCpu,
    all_idle_ns: Option<u64>,
}

/// What was counted in a run; empty: nothing counts it here.
#[derive(Debug, Default)]
pub struct Idle {
    /// By CPU.
    pub wake_ups_per_s: Vec<f64>,
    pub interrupts_per_s: Vec<f64>,
    /// Share of the time in each state of a package, mean over the packages (%).
    pub package_states_pct: Vec<(String, f64)>,
    /// Share of the time in which all CPUs of a package were idle, mean over the packages (%).
    pub package_idle_pct: Option<f64>,
}

impl<'a> IdleMeter<'a> {
    /// Looks for what counts, and starts, for the CPUs that are online, `cpus`. It may wake a CPU of each package, and takes
    /// some ms: before a load begins.
    pub fn find(cpus: Vec<usize>, traced: Option<&'a IdleCount>) -> Self {
        let mut counts = CpuCounts::find(Path::new("/"));
        let packages = PackageStates::begin(Path::new("/"), Others::MayWake);
        let before = Reading::now(&mut counts, traced);
        IdleMeter { cpus, counts, traced, packages, before }
    }

    /// Counts from now on.
    pub fn start(&mut self) {
        self.packages.start();
        self.before = Reading::now(&mut self.counts, self.traced);
    }

    /// Ends. What wakes others is looked at after what counts that.
    pub fn end(mut self) -> Idle {
        let now = Reading::now(&mut self.counts, self.traced);
        self.packages.look();
        let seconds = (now.at_ns - self.before.at_ns) as f64 / NS_PER_S;
        let by_cpu = |now: &ByCpu, before: &ByCpu| {
            let rates = per_s(now, before, seconds);
            let all: Option<Vec<f64>> =
                self.cpus.iter().map(|cpu| rates.get(cpu).copied()).collect();
            all.unwrap_or_default()
        };
        let share_pct = |(name, spent_s): (String, f64)| (name, spent_s / seconds * 100.0);
        let all_idle_ns = now.all_idle_ns.zip(self.before.all_idle_ns);
        Idle {
            wake_ups_per_s: by_cpu(&now.wake_ups, &self.before.wake_ups),
            interrupts_per_s: by_cpu(&now.interrupts, &self.before.interrupts),
            package_states_pct: self.packages.seconds().into_iter().map(share_pct).collect(),
            package_idle_pct: all_idle_ns.map(|(now, before)| {
                now.saturating_sub(before) as f64 / NS_PER_S / seconds * 100.0
            }),
        }
    }
}

impl Reading {
    /// What is traced counts the same as cpuidle does, and is there without it too.
    fn now(counts: &mut CpuCounts, traced: Option<&IdleCount>) -> Self {
        Reading {
            at_ns: clock::now_ns(),
            wake_ups: traced.map_or_else(|| counts.wake_ups(), IdleCount::wake_ups),
            interrupts: counts.interrupts(),
            all_idle_ns: traced.map(IdleCount::all_idle_ns),
        }
    }
}

impl Idle {
    /// With the share of the time in which each CPU, in the same order, was not idle (%): of which are surplus.
    pub fn figures(&self, non_idle_pct: &[f64]) -> Figures {
        let mut figures = Figures::new();
        let mut note = |metric, value: Option<f64>| {
            figures.extend(value.map(|value| (metric, value)));
        };
        let sum = |rates: &[f64]| (!rates.is_empty()).then(|| rates.iter().sum());
        let surplus = surplus_cpus(non_idle_pct);
        let of_surplus = |rates: &[f64]| {
            let rates: Vec<f64> =
                surplus.iter().filter_map(|&cpu| rates.get(cpu).copied()).collect();
            mean(&rates)
        };
        note(Metric::WakeUpsPerS, sum(&self.wake_ups_per_s));
        note(Metric::SurplusWakeUpsPerS, of_surplus(&self.wake_ups_per_s));
        note(Metric::InterruptsPerS, sum(&self.interrupts_per_s));
        note(Metric::SurplusInterruptsPerS, of_surplus(&self.interrupts_per_s));
        note(Metric::PackageIdlePct, self.package_idle_pct);
        let c_states = self.package_states_pct.iter().filter(|(name, _)| is_c_state(name));
        let c_states: Vec<f64> = c_states.map(|(_, pct)| *pct).collect();
        note(Metric::PackageStatesPct, sum(&c_states));
        figures
    }
}

/// Counts what `cpus` do while it is there, if the suite asks for it and the kernel lets us.
pub fn trace(load: &Load, cpus: Vec<usize>) -> Option<IdleCount> {
    let count = load.trace_idle.then(|| IdleCount::start(cpus))?;
    count.map_err(|err| debug!("{err:#}")).ok()
}

/// What cannot be measured of `loads` here, and why.
pub fn missing(loads: &[Load], cpus: Vec<usize>) -> Vec<String> {
    let root = Path::new("/");
    let mut missing = vec![];
    let is_asked = loads.iter().any(|load| load.trace_idle);
    let untraced = if is_asked { IdleCount::start(cpus).err() } else { None };
    if let Some(why) = &untraced {
        missing.push(format!("time in which all CPUs of a package are idle: {why:#}"));
    }
    if (!is_asked || untraced.is_some()) && CpuCounts::find(root).wake_ups().is_empty() {
        let why = "wake-ups: this kernel has no cpuidle here, and no load of this suite has them traced (trace_idle)";
        missing.push(why.to_owned());
    }
    if PackageStates::begin(root, Others::MayWake).is_empty() {
        let why = "package C-states: no counters of them here (perf's cstate_pkg, ACPI's LPIT), or not for this user";
        missing.push(why.to_owned());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_cpus_count_each_for_itself() {
        let idle = Idle {
            wake_ups_per_s: vec![2.0, 300.0, 4.0],
            interrupts_per_s: vec![1.0, 1000.0, 0.0],
            package_states_pct: vec![
                ("C2".into(), 20.0),
                ("C6".into(), 5.0),
                ("LPI package".into(), 5.0),
            ],
            package_idle_pct: Some(60.0),
        };
        let figures = idle.figures(&[0.1, 30.0, 0.2]);
        assert_eq!(figures[&Metric::WakeUpsPerS], 306.0);
        assert_eq!(figures[&Metric::SurplusWakeUpsPerS], 3.0);
        assert_eq!(figures[&Metric::SurplusInterruptsPerS], 0.5);
        assert_eq!(figures[&Metric::PackageStatesPct], 25.0);
        // Where nothing counts there are no figures, and none are zero.
        assert_eq!(Idle::default().figures(&[0.1, 30.0]), Figures::new());
        let all_needed = idle.figures(&[90.0, 90.0, 90.0]);
        assert!(!all_needed.contains_key(&Metric::SurplusWakeUpsPerS));
    }

    #[test]
    fn interrupts_of_each_cpu_here_are_counted() {
        let cpus = super::super::meter::online_cpus().unwrap();
        let mut meter = IdleMeter::find(cpus.clone(), None);
        clock::burn(50_000_000);
        meter.start();
        clock::burn(50_000_000);
        let idle = meter.end();
        assert_eq!(idle.interrupts_per_s.len(), cpus.len());
        assert!(idle.interrupts_per_s.iter().sum::<f64>() > 0.0 && idle.package_idle_pct.is_none());
    }
}
