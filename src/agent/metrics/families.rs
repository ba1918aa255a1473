//! The metrics by name, unit and meaning, after Prometheus' conventions: base units, `_total`
//! for what only grows.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::machine::MachineCounts;
use crate::control::status::{CpuStatus, Status};
use crate::machine::cpu_counts::ByCpu;
use crate::scheduler::counters::EVENTS;
use crate::scheduler::latency::Latency;
use crate::settings::mode::Mode;

/// All CPU capacity is in CPUs at full speed.
const CAPACITY_MAX: f64 = crate::bpf_intf::pp_limits_PP_CAPACITY_MAX as f64;

/// The status and what the machine counts as OpenMetrics text; `started` is since the epoch.
pub fn text(
    status: &Status,
    machine: MachineCounts,
    started: Duration,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("scx_powerpack");
    registry.register_collector(Box::new(Families { status: status.clone(), machine, started }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Families {
    status: Status,
    machine: MachineCounts,
    started: Duration,
}

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut writer = Writer(encoder);
        self.about(&mut writer)?;
        self.policy(&mut writer)?;
        self.cpus(&mut writer)?;
        self.machine(&mut writer)?;
        self.limits(&mut writer)?;
        self.events(&mut writer)
    }
}

impl Families {
    fn about(&self, to: &mut Writer<'_>) -> fmt::Result {
        let status = &self.status;
        to.labelled(
            ("info", "The program", None, MetricType::Gauge),
            "version",
            [(status.version.clone(), ConstGauge::new(1u64))],
        )?;
        let seconds = Some(&Unit::Seconds);
        to.gauge(
            ("start_time", "When it was started, since the epoch", seconds),
            self.started.as_secs_f64(),
        )?;
        to.gauge(
            ("config_last_reload_successful", "Whether the last reload was taken", None),
            flag(status.reloads.last_ok),
        )?;
        to.labelled(
            ("config_reloads", "Reloads of the configuration", None, MetricType::Counter),
            "result",
            [("ok", status.reloads.ok), ("error", status.reloads.failed)]
                .map(|(result, nr)| (result.into(), ConstCounter::new(nr))),
        )
    }

    fn policy(&self, to: &mut Writer<'_>) -> fmt::Result {
        let status = &self.status;
        to.labelled(
            ("mode", "The mode in force", None, MetricType::Gauge),
            "mode",
            Mode::ALL.map(|mode| {
                (mode.name().into(), ConstGauge::new(flag(mode.name() == status.mode)))
            }),
        )?;
        to.gauge(("auto", "Whether the agent chooses the mode", None), flag(status.auto))?;
        let online = status.cpus.iter().filter(|cpu| cpu.online).count();
        to.gauge(("online_cpus", "CPUs that are online", None), online as f64)?;
        let cores = status.nr_cores() as f64;
        to.gauge(("online_cores", "Cores that are online, and not isolated", None), cores)?;
        let active = status.counters.active_cpus as f64;
        to.gauge(("active_cpus", "CPUs in the active set", None), active)?;
        let demand = status.counters.demand as f64 / CAPACITY_MAX;
        to.gauge(("demand_cpus", "Capacity that tasks free to move use", None), demand)?;
        to.gauge(("max_cores", "The ceiling, in cores", None), status.max_cores as f64)?;
        let fill = f64::from(status.fill_pct) / 100.0;
        to.gauge(("fill_ratio", "How full active CPUs may be", None), fill)?;
        let budget = status.latency_budget_ms as f64 / 1e3;
        let seconds = Some(&Unit::Seconds);
        to.gauge(("latency_budget", "How long tasks may wait for them", seconds), budget)
    }

    fn cpus(&self, to: &mut Writer<'_>) -> fmt::Result {
        let each = |value: fn(&CpuStatus) -> f64| {
            let cpus = self.status.cpus.iter();
            cpus.map(move |cpu| (cpu.cpu.to_string(), ConstGauge::new(value(cpu))))
        };
        to.labelled(
            ("cpu_active", "Whether the CPU is in the active set", None, MetricType::Gauge),
            "cpu",
            each(|cpu| flag(cpu.active)),
        )?;
        to.labelled(
            (
                "cpu_surplus",
                "Whether the CPU is online, not isolated, and outside the active set",
                None,
                MetricType::Gauge,
            ),
            "cpu",
            each(|cpu| flag(cpu.is_surplus())),
        )?;
        to.labelled(
            (
                "cpu_capacity",
                "What the CPU can do, of the fastest CPU",
                Some(&Unit::Other("ratio".into())),
                MetricType::Gauge,
            ),
            "cpu",
            each(|cpu| f64::from(cpu.capacity) / CAPACITY_MAX),
        )?;
        to.labelled(
            (
                "cpu_utilization",
                "Of the fastest CPU",
                Some(&Unit::Other("ratio".into())),
                MetricType::Gauge,
            ),
            "cpu",
            each(|cpu| f64::from(cpu.util) / CAPACITY_MAX),
        )?;
        let busy = self
            .status
            .cpus
            .iter()
            .map(|cpu| (cpu.cpu.to_string(), ConstCounter::new(cpu.busy_ns as f64 / 1e9)));
        to.labelled(
            ("cpu_non_idle", "Not idle since loading", Some(&Unit::Seconds), MetricType::Counter),
            "cpu",
            busy,
        )
    }

    /// What this machine does not count is not there.
    fn machine(&self, to: &mut Writer<'_>) -> fmt::Result {
        let MachineCounts { wake_ups, interrupts, package_states } = &self.machine;
        let of_cpus = |counts: &ByCpu| {
            let each = |(cpu, &nr): (&usize, &u64)| (cpu.to_string(), ConstCounter::new(nr));
            counts.iter().map(each).collect::<Vec<_>>()
        };
        for (name, help, counts) in [
            ("cpu_wakeups", "Idle states that the CPU has left, since boot", wake_ups),
            (
                "cpu_interrupts",
                "Interrupts of any kind, since the metrics were first served",
                interrupts,
            ),
        ] {
            if !counts.is_empty() {
                to.labelled((name, help, None, MetricType::Counter), "cpu", of_cpus(counts))?;
            }
        }
        if package_states.is_empty() {
            return Ok(());
        }
        let states = package_states.iter().map(|(state, s)| (state.clone(), ConstCounter::new(*s)));
        to.labelled(
            (
                "package_state",
                "In each idle state of the package, since the metrics were first served",
                Some(&Unit::Seconds),
                MetricType::Counter,
            ),
            "state",
            states,
        )
    }

    fn limits(&self, to: &mut Writer<'_>) -> fmt::Result {
        let limits = &self.status.limits;
        let throttled =
            limits.iter().map(|l| (l.cgroup.clone(), ConstCounter::new(l.nr_throttled)));
        to.labelled(
            (
                "cgroup_throttled_periods",
                "Periods of a cpu.max in which a task waited for the next one",
                None,
                MetricType::Counter,
            ),
            "cgroup",
            throttled,
        )?;
        let seconds = limits
            .iter()
            .map(|l| (l.cgroup.clone(), ConstCounter::new(l.throttled_us as f64 / 1e6)));
        to.labelled(
            (
                "cgroup_throttled",
                "For how long tasks of a cgroup waited for the next period of its cpu.max",
                Some(&Unit::Seconds),
                MetricType::Counter,
            ),
            "cgroup",
            seconds,
        )
    }

    fn events(&self, to: &mut Writer<'_>) -> fmt::Result {
        let counts: Vec<_> = EVENTS.iter().zip(self.status.counters.events()).collect();
        for family in counts.chunk_by(|(a, _), (b, _)| a.family == b.family) {
            let (first, nr) = family[0];
            let Some((label, _)) = first.label else {
                let about = (first.family, first.help, None, MetricType::Counter);
                to.metric(about, &ConstCounter::new(nr))?;
                continue;
            };
            let values = family.iter().filter_map(|&(event, nr)| Some((event.label?.1, nr)));
            to.labelled(
                (first.family, help_of(first.family), None, MetricType::Counter),
                label,
                values.map(|(value, nr)| (value.into(), ConstCounter::new(nr))),
            )?;
        }
        to.metric(
            (
                "wakeup_latency",
                "From wake-up until the task runs",
                Some(&Unit::Seconds),
                MetricType::Histogram,
            ),
            &Histogram(&self.status.wake_latency),
        )
    }
}

/// What a family of several events counts.
fn help_of(family: &str) -> &str {
    match family {
        "placements" => "Tasks put somewhere",
        "active_set_changes" => "Changes of the size of the active set",
        other => other,
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Name, what it is, unit, type.
type About<'a> = (&'a str, &'a str, Option<&'a Unit>, MetricType);

struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn metric(
        &mut self,
        (name, help, unit, kind): About<'_>,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, unit, kind)?)
    }

    fn gauge(
        &mut self,
        (name, help, unit): (&str, &str, Option<&Unit>),
        value: f64,
    ) -> fmt::Result {
        self.metric((name, help, unit, MetricType::Gauge), &ConstGauge::new(value))
    }

    /// One for each value of a label.
    fn labelled<M: EncodeMetric>(
        &mut self,
        (name, help, unit, kind): About<'_>,
        label: &'static str,
        metrics: impl IntoIterator<Item = (String, M)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        for (value, metric) in metrics {
            metric.encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }
}

/// Ours counts by powers of two of a microsecond.
struct Histogram<'a>(&'a Latency);

impl EncodeMetric for Histogram<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts = &self.0.counts;
        let bound =
            |n: usize| if n + 1 < counts.len() { (1u64 << n) as f64 / 1e6 } else { f64::INFINITY };
        let buckets: Vec<(f64, u64)> =
            counts.iter().enumerate().map(|(n, &count)| (bound(n), count)).collect();
        let total = counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(self.0.sum_ns as f64 / 1e9, total, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::tests::made_up::status;

    #[test]
    fn metrics_have_their_names_units_and_values() {
        let machine = MachineCounts {
            wake_ups: ByCpu::new(),
            interrupts: [(0, 5), (2, 7)].into(),
            package_states: vec![("C10".into(), 1.5)],
        };
        // One is active, one isolated, one offline and one surplus.
        let mut status = status(4, 10);
        status.cpus[1].isolated = true;
        status.cpus[3].capacity = 256;
        let text = text(&status, machine, Duration::from_secs(7)).unwrap();
        assert!(!text.contains("cpu_wakeups"), "it is not counted here:\n{text}");
        for line in [
            "scx_powerpack_mode{mode=\"packing\"} 1.0",
            "scx_powerpack_online_cpus 3.0",
            "scx_powerpack_online_cores 2.0",
            "scx_powerpack_cpu_capacity_ratio{cpu=\"3\"} 0.25",
            "# UNIT scx_powerpack_cpu_non_idle_seconds seconds",
            "scx_powerpack_cpu_non_idle_seconds_total{cpu=\"0\"} 5.0",
            "scx_powerpack_cpu_utilization_ratio{cpu=\"0\"} 0.0",
            "scx_powerpack_cpu_surplus{cpu=\"0\"} 0.0",
            "scx_powerpack_cpu_surplus{cpu=\"1\"} 0.0",
            "scx_powerpack_cpu_surplus{cpu=\"2\"} 0.0",
            "scx_powerpack_cpu_surplus{cpu=\"3\"} 1.0",
            "scx_powerpack_latency_budget_seconds 0.005",
            "scx_powerpack_start_time_seconds 7.0",
            "scx_powerpack_config_reloads_total{result=\"error\"} 0",
            "# TYPE scx_powerpack_wakeup_latency_seconds histogram",
            "scx_powerpack_wakeup_latency_seconds_bucket{le=\"0.000016\"} 900",
            "scx_powerpack_wakeup_latency_seconds_bucket{le=\"0.000064\"} 990",
            "scx_powerpack_wakeup_latency_seconds_bucket{le=\"+Inf\"} 990",
            "scx_powerpack_cpu_interrupts_total{cpu=\"2\"} 7",
            "scx_powerpack_package_state_seconds_total{state=\"C10\"} 1.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|is| is == line), "no {line} in:\n{text}");
        }
    }
}
