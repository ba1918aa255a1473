//! What is measured: names, units, and which way is better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of a run. What each means is explained in docs/measuring.md.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Pieces of work done in a second, all tasks that do as much as they can.
    RecordsPerS,
    /// How long a program took, for a fixed amount of work.
    ElapsedS,
    /// A byte to another process and back.
    RoundTripNs,
    /// End of the work minus planned begin: median.
    ResponseP50Us,
    ResponseP99Us,
    ResponseMaxUs,
    /// The longest response beyond the task's own run time.
    DelayMaxUs,
    /// First instruction minus planned wake-up, or minus the call of another thread.
    WakeMeanUs,
    WakeP50Us,
    WakeP99Us,
    WakeP999Us,
    WakeMaxUs,
    /// OR: periods in which the work was not finished, of all.
    OverrunsPct,
    /// OH: how slow the governor makes the work, 0 = as `performance`, 100 = as `powersave`.
    OverheadPct,
    /// CPUs that ran something for half a percent of the time or more.
    CpusUsed,
    /// Time in which CPUs ran something, summed: 100 = one CPU all the time.
    NonIdlePct,
    /// That of all CPUs but the needed ones.
    SurplusNonIdlePct,
    /// CPU time of what is in the load's cgroup: 100 = one CPU all the time.
    CgroupPct,
    SwitchesPerS,
    MigrationsPerS,
    /// How often the active set grew or shrank; under our scheduler.
    ActiveSetChangesPerS,
    PowerW,
    /// Records per second for each watt.
    RecordsPerJ,
    /// Records per second for each CPU's worth of non-idle time.
    RecordsPerCpuS,
    /// Share of time in the deepest idle state, mean over the CPUs.
    DeepestIdlePct,
    /// Share of time in which all CPUs of a package were idle, mean over the packages.
    PackageIdlePct,
    /// Share of time in the hardware's own idle states of packages, all added.
    PackageStatesPct,
    /// How often CPUs left an idle state, polling apart; all CPUs.
    WakeUpsPerS,
    /// The same of each surplus CPU, their mean.
    SurplusWakeUpsPerS,
    /// Interrupts of any kind, all CPUs.
    InterruptsPerS,
    /// The same of each surplus CPU, their mean.
    SurplusInterruptsPerS,
    /// Mean over CPUs and time.
    FrequencyMhz,
    /// How often the clocks change their frequency, all together.
    FrequencyChangesPerS,
    /// Frequency of what a package's CPUs share, at the end of the run.
    UncoreMhz,
    /// CPU time of the scheduler's process meanwhile, and its memory.
    AgentPct,
    AgentRssMb,
    /// From the start of the scheduler's program until it is in charge.
    LoadMs,
    /// Instructions that the kernel's verifier looked at.
    VerifiedInsns,
    /// From the request of a mode until the scheduler has it,
    SwitchUs,
    /// and until the surplus CPUs are left alone.
    DrainedMs,
    /// CPU time that measuring took, of the load's.
    MeasuringPct,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
    /// It explains others.
    Neither,
}

impl Metric {
    /// In the order in which they are shown.
    pub const ALL: [Metric; 41] = [
        Metric::RecordsPerS,
        Metric::ElapsedS,
        Metric::RoundTripNs,
        Metric::ResponseP50Us,
        Metric::ResponseP99Us,
        Metric::ResponseMaxUs,
        Metric::DelayMaxUs,
        Metric::WakeMeanUs,
        Metric::WakeP50Us,
        Metric::WakeP99Us,
        Metric::WakeP999Us,
        Metric::WakeMaxUs,
        Metric::OverrunsPct,
        Metric::OverheadPct,
        Metric::CpusUsed,
        Metric::NonIdlePct,
        Metric::SurplusNonIdlePct,
        Metric::CgroupPct,
        Metric::SwitchesPerS,
        Metric::MigrationsPerS,
        Metric::ActiveSetChangesPerS,
        Metric::PowerW,
        Metric::RecordsPerJ,
        Metric::RecordsPerCpuS,
        Metric::DeepestIdlePct,
        Metric::PackageIdlePct,
        Metric::PackageStatesPct,
        Metric::WakeUpsPerS,
        Metric::SurplusWakeUpsPerS,
        Metric::InterruptsPerS,
        Metric::SurplusInterruptsPerS,
        Metric::FrequencyMhz,
        Metric::FrequencyChangesPerS,
        Metric::UncoreMhz,
        Metric::AgentPct,
        Metric::AgentRssMb,
        Metric::LoadMs,
        Metric::VerifiedInsns,
        Metric::SwitchUs,
        Metric::DrainedMs,
        Metric::MeasuringPct,
    ];

    /// What a person reads, with the unit.
    pub fn title(self) -> &'static str {
        match self {
            Metric::RecordsPerS => "records/s",
            Metric::ElapsedS => "time taken, s",
            Metric::RoundTripNs => "round trip, ns",
            Metric::ResponseP50Us => "response, median, us",
            Metric::ResponseP99Us => "response, 99 %, us",
            Metric::ResponseMaxUs => "response, longest, us",
            Metric::DelayMaxUs => "longest delay, us",
            Metric::WakeMeanUs => "wake-up latency, mean, us",
            Metric::WakeP50Us => "wake-up latency, median, us",
            Metric::WakeP99Us => "wake-up latency, 99 %, us",
            Metric::WakeP999Us => "wake-up latency, 99.9 %, us",
            Metric::WakeMaxUs => "wake-up latency, longest, us",
            Metric::OverrunsPct => "overruns (OR), %",
            Metric::OverheadPct => "overhead (OH), %",
            Metric::CpusUsed => "CPUs used",
            Metric::NonIdlePct => "non-idle, % of a CPU",
            Metric::SurplusNonIdlePct => "surplus non-idle, %",
            Metric::CgroupPct => "its cgroup used, % of a CPU",
            Metric::SwitchesPerS => "context switches/s",
            Metric::MigrationsPerS => "migrations/s",
            Metric::ActiveSetChangesPerS => "changes of the active set/s",
            Metric::PowerW => "power, W",
            Metric::RecordsPerJ => "records/J",
            Metric::RecordsPerCpuS => "records per CPU second",
            Metric::DeepestIdlePct => "in the deepest idle state, %",
            Metric::PackageIdlePct => "whole packages idle, %",
            Metric::PackageStatesPct => "packages in C-states, %",
            Metric::WakeUpsPerS => "wake-ups/s",
            Metric::SurplusWakeUpsPerS => "wake-ups/s of a surplus CPU",
            Metric::InterruptsPerS => "interrupts/s",
            Metric::SurplusInterruptsPerS => "interrupts/s of a surplus CPU",
            Metric::FrequencyMhz => "frequency, MHz",
            Metric::FrequencyChangesPerS => "frequency changes/s",
            Metric::UncoreMhz => "uncore frequency, MHz",
            Metric::AgentPct => "agent, % of a CPU",
            Metric::AgentRssMb => "agent, resident MB",
            Metric::LoadMs => "load time, ms",
            Metric::VerifiedInsns => "instructions verified",
            Metric::SwitchUs => "mode applied, us",
            Metric::DrainedMs => "surplus CPUs drained, ms",
            Metric::MeasuringPct => "measuring, % of the load",
        }
    }

    /// Which way it is better.
    pub fn better(self) -> Better {
        match self {
            Metric::RecordsPerS
            | Metric::RecordsPerJ
            | Metric::RecordsPerCpuS
            | Metric::DeepestIdlePct
            | Metric::PackageIdlePct
            | Metric::PackageStatesPct => Better::Higher,
            Metric::SwitchesPerS
            | Metric::MigrationsPerS
            | Metric::ActiveSetChangesPerS
            | Metric::WakeUpsPerS
            | Metric::InterruptsPerS
            | Metric::FrequencyMhz
            | Metric::UncoreMhz
            | Metric::CpusUsed
            | Metric::CgroupPct
            | Metric::MeasuringPct => Better::Neither,
            _ => Better::Lower,
        }
    }

    /// Whether it is of what measures power.
    pub fn is_of_power(self) -> bool {
        matches!(self, Metric::PowerW | Metric::RecordsPerJ)
    }

    /// Whether `value` is better than `other`; `None` if neither is.
    pub fn is_better(self, value: f64, other: f64) -> Option<bool> {
        match self.better() {
            _ if value == other => None,
            Better::Higher => Some(value > other),
            Better::Lower => Some(value < other),
            Better::Neither => None,
        }
    }

    /// Differences of less than this are nothing that a user would notice; in its unit.
    pub fn negligible(self) -> f64 {
        match self {
            Metric::ResponseP50Us
            | Metric::ResponseP99Us
            | Metric::ResponseMaxUs
            | Metric::DelayMaxUs
            | Metric::WakeMeanUs
            | Metric::WakeP50Us
            | Metric::WakeP99Us
            | Metric::WakeP999Us
            | Metric::WakeMaxUs => 50.0,
            Metric::OverrunsPct | Metric::OverheadPct | Metric::SurplusNonIdlePct => 0.1,
            Metric::SurplusWakeUpsPerS | Metric::SurplusInterruptsPerS => 0.5,
            _ => 0.0,
        }
    }

    /// With as many digits as make sense.
    pub fn format(self, value: f64) -> String {
        match self {
            Metric::CpusUsed => format!("{value:.0}"),
            Metric::MeasuringPct | Metric::SurplusNonIdlePct => format!("{value:.2}"),
            Metric::AgentPct => format!("{value:.3}"),
            _ if value.abs() >= 100.0 => format!("{value:.0}"),
            _ if value.abs() >= 10.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed_once_in_order_and_explained() {
        let measuring = include_str!("../../docs/measuring.md");
        for (nth, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, nth, "{metric:?}");
            let name = serde_json::to_string(&metric).unwrap();
            let name = format!("`{}`", name.trim_matches('"'));
            assert!(measuring.contains(&name), "{name} is not in docs/measuring.md");
        }
        assert_eq!(Metric::ALL.len() - 1, Metric::MeasuringPct as usize);
    }

    #[test]
    fn digits_follow_the_size() {
        assert_eq!(Metric::PowerW.format(1234.5), "1234");
        assert_eq!(Metric::PowerW.format(12.34), "12.3");
        assert_eq!(Metric::PowerW.format(0.5), "0.50");
        assert_eq!(Metric::CpusUsed.format(2.0), "2");
    }
}
