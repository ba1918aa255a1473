//! What the machine did during a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use powerpack_load::clock;
use powerpack_load::schedstat::{Reading, surplus_pct};
use powerpack_workload::parse_cpu_list;

use super::cgroups;
use super::idle::{self, Idle, IdleMeter};
use super::metric::Metric;
use super::programs::Figures;
use super::results::Heat;
use super::suite::Load;
use super::switches::Switches;
use crate::control::protocol::{self, Reply, Request};
use crate::machine::power_meter::PowerMeter;
use crate::machine::sensors::Sources;
use crate::wakes::IdleCount;

/// CPUs are read at most so often,
const INTERVAL_MIN_NS: u64 = 100_000_000;
/// and so seldom that it takes this much of what the load does.
const COST_SHARE: f64 = 0.003;
/// Frequency and battery are looked at so often: asking may wake a CPU.
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// A CPU is used if it is non-idle for that much (%): 1 ms in 100 is a load.
const USED_PCT: f64 = 0.5;
const NS_PER_S: f64 = 1e9;

/// When it was looked (ns), and what each CPU had run since the beginning.
type Runs = (u64, Vec<u64>);

/// Measures from its beginning.
pub struct Meter<'a> {
    /// `None` where the kernel does not count.
    begin: Option<Reading>,
    /// What each CPU ran is looked at in between too.
    with_heat: bool,
    runs: Vec<Runs>,
    next_read_ns: u64,
    switches: Option<&'a Switches>,
    counts: Option<(u64, u64)>,
    active_set_changes: Option<u64>,
    /// `None` where it is not known which CPUs are online.
    idle: Option<IdleMeter<'a>>,
    /// Where the load's cgroup is, and what it had used (us).
    cgroup: Option<(PathBuf, u64)>,
    sources: Sources,
    next_look_ns: u64,
    begin_ns: u64,
    own_cpu_ns: u64,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    pub elapsed_s: f64,
    pub figures: Figures,
    pub non_idle_pct: Vec<f64>,
    pub idle_states_pct: Vec<(String, f64)>,
    pub idle: Idle,
    pub heat: Option<Heat>,
    /// CPU time of measuring itself (s).
    pub own_cpu_s: f64,
}

/// What counts wake-ups and interrupts; `None` where it is not known which CPUs are online.
pub fn idle_meter(traced: Option<&IdleCount>) -> Option<IdleMeter<'_>> {
    Some(IdleMeter::find(online_cpus().ok()?, traced))
}

/// The CPUs that are online. Fails if that cannot be read.
pub fn online_cpus() -> Result<Vec<usize>> {
    let path = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    parse_cpu_list(text.trim())
}

/// What this machine cannot measure of these loads, and why.
pub fn missing(loads: &[Load], switches: Option<&Switches>) -> Vec<String> {
    let sources = Sources::begin(Path::new("/"));
    let mut missing = sources.missing();
    missing.extend(idle::missing(loads, online_cpus().unwrap_or_default()));
    if sources.uncore_mhz().is_none() {
        missing.push("uncore frequency: this kernel reports none here".to_owned());
    }
    if Reading::now().is_err() {
        missing.push("non-idle time: this kernel has no CONFIG_SCHEDSTATS".to_owned());
    }
    if switches.is_none() {
        missing.push("switches and migrations: no perf events, or not for this user".to_owned());
    }
    missing
}

/// What measures power here, if anything does.
pub fn power_meter() -> Option<String> {
    let meter = PowerMeter::begin(Path::new("/"));
    meter.measures().then(|| meter.title().to_owned())
}

impl<'a> Meter<'a> {
    /// Begins. Without a picture of which CPU was busy when, there is less that is seen of
    /// measuring in latencies.
    pub fn begin(
        switches: Option<&'a Switches>,
        mut idle: Option<IdleMeter<'a>>,
        with_heat: bool,
        cgroup: Option<PathBuf>,
    ) -> Self {
        let own_cpu_ns = clock::thread_cpu_ns();
        idle.iter_mut().for_each(IdleMeter::start);
        // First, and last at the end: what the answer takes is not the load's.
        let active_set_changes = active_set_changes();
        let mut meter = Meter {
            begin: Reading::now().ok(),
            with_heat,
            runs: vec![],
            next_read_ns: 0,
            switches,
            counts: switches.map(Switches::counts),
            active_set_changes,
            idle,
            cgroup: cgroup.and_then(|dir| cgroups::usage_us(&dir).map(|us| (dir, us))),
            sources: Sources::begin(Path::new("/")),
            next_look_ns: 0,
            begin_ns: 0,
            own_cpu_ns,
        };
        meter.read();
        meter.look_if_due();
        meter.begin_ns = clock::now_ns();
        meter.next_read_ns = meter.begin_ns + INTERVAL_MIN_NS;
        meter
    }

    /// How long until read_if_due() has something to do.
    pub fn until_due(&self) -> Duration {
        let next_read_ns = if self.with_heat { self.next_read_ns } else { u64::MAX };
        let due_ns = next_read_ns.min(self.next_look_ns);
        Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()))
    }

    /// Looks at the machine if it is time to.
    pub fn read_if_due(&mut self) {
        // A picture of a task that runs little has seconds between its columns.
        self.look_if_due();
        if !self.with_heat || clock::now_ns() < self.next_read_ns {
            return;
        }
        let before = clock::thread_cpu_ns();
        self.read();
        let cost_ns = clock::thread_cpu_ns() - before;
        // A task that runs little is looked at seldom.
        let pct: f64 = self.non_idle_pct().iter().sum();
        let interval_ns = cost_ns as f64 / COST_SHARE / (pct / 100.0).max(0.001);
        self.next_read_ns = clock::now_ns() + (interval_ns as u64).max(INTERVAL_MIN_NS);
    }

    fn read(&mut self) {
        if let (Some(begin), Ok(reading)) = (&self.begin, Reading::now()) {
            self.runs.push((reading.at_ns, begin.ran_until(&reading)));
        }
    }

    fn look_if_due(&mut self) {
        let now = clock::now_ns();
        if now >= self.next_look_ns {
            self.sources.look();
            self.next_look_ns = now + LOOK_EVERY_NS;
        }
    }

    /// Ends the measurement.
    pub fn end(mut self) -> Measured {
        let seconds = (clock::now_ns() - self.begin_ns) as f64 / NS_PER_S;
        // First, as what follows wakes CPUs.
        let idle = self.idle.take().map_or_else(Idle::default, IdleMeter::end);
        self.read();
        self.sources.look();
        let non_idle_pct = self.non_idle_pct();
        let mut figures =
            if non_idle_pct.is_empty() { Figures::new() } else { of_cpus(&non_idle_pct) };
        figures.extend(idle.figures(&non_idle_pct));
        let mut note = |metric, value: Option<f64>| {
            figures.extend(value.map(|value| (metric, value)));
        };
        let counts = self.switches.map(Switches::counts).zip(self.counts);
        let per_s = |after: u64, before: u64| (after - before) as f64 / seconds;
        note(Metric::SwitchesPerS, counts.map(|(after, before)| per_s(after.0, before.0)));
        note(Metric::MigrationsPerS, counts.map(|(after, before)| per_s(after.1, before.1)));
        let changes = active_set_changes().zip(self.active_set_changes);
        note(Metric::CgroupPct, self.cgroup_us().map(|us| us as f64 / seconds / 1e4));
        note(Metric::ActiveSetChangesPerS, changes.map(|(after, before)| per_s(after, before)));
        note(Metric::PowerW, self.sources.power_w(seconds));
        note(Metric::FrequencyMhz, self.sources.frequency_mhz());
        note(Metric::FrequencyChangesPerS, self.sources.frequency_changes_per_s(seconds));
        let idle_states_pct = self.sources.idle_states_pct(seconds);
        note(Metric::DeepestIdlePct, self.sources.deepest_idle_pct(seconds));
        note(Metric::UncoreMhz, self.sources.uncore_mhz());
        Measured {
            elapsed_s: seconds,
            figures,
            non_idle_pct,
            idle_states_pct,
            idle,
            heat: self.with_heat.then(|| heat(&self.runs)).flatten(),
            own_cpu_s: (clock::thread_cpu_ns() - self.own_cpu_ns) as f64 / NS_PER_S,
        }
    }

    /// What the load's cgroup has used since the beginning (us).
    fn cgroup_us(&self) -> Option<u64> {
        let (dir, before) = self.cgroup.as_ref()?;
        Some(cgroups::usage_us(dir)?.saturating_sub(*before))
    }

    /// Of each CPU (%); empty where the kernel does not count.
    fn non_idle_pct(&self) -> Vec<f64> {
        match (&self.begin, self.runs.last()) {
            (Some(begin), Some((end, ran))) if *end > begin.at_ns => {
                let elapsed_ns = (end - begin.at_ns) as f64;
                ran.iter().map(|&ns| ns as f64 / elapsed_ns * 100.0).collect()
            }
            _ => vec![],
        }
    }
}

/// How often the active set changed since our scheduler was loaded; `None` under another.
fn active_set_changes() -> Option<u64> {
    match protocol::ask(&Request::Status) {
        Ok(Reply::Status(status)) => Some(status.counters.grow + status.counters.shrink),
        _ => None,
    }
}

/// What the CPUs' shares say together.
fn of_cpus(non_idle_pct: &[f64]) -> Figures {
    let used = non_idle_pct.iter().filter(|&&pct| pct >= USED_PCT).count();
    Figures::from([
        (Metric::NonIdlePct, non_idle_pct.iter().sum()),
        (Metric::SurplusNonIdlePct, surplus_pct(non_idle_pct)),
        (Metric::CpusUsed, used as f64),
    ])
}

/// The kernel counts a task's time when it leaves its CPU, and what runs on is known to 10 ms
/// and more: what is more than an interval was spent in the ones before.
fn heat(readings: &[Runs]) -> Option<Heat> {
    let columns = readings.len().checked_sub(1).filter(|&columns| columns > 0)?;
    let cpus = readings[0].1.len();
    let mean_ns = (readings[columns].0 - readings[0].0) as f64 / columns as f64;
    let of_cpu = |cpu: usize| {
        let mut shares = vec![0; columns];
        let mut carried_ns = 0;
        for column in (0..columns).rev() {
            let (from, to) = (&readings[column], &readings[column + 1]);
            let room_ns = to.0 - from.0;
            let ran_ns = to.1[cpu].saturating_sub(from.1[cpu]) + carried_ns;
            carried_ns = ran_ns.saturating_sub(room_ns);
            let pct = ran_ns.min(room_ns) as f64 / room_ns.max(1) as f64 * 100.0;
            shares[column] = pct.round() as u8;
        }
        shares
    };
    Some(Heat { interval_s: mean_ns / NS_PER_S, non_idle_pct: (0..cpus).map(of_cpu).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_used_from_half_a_percent_on() {
        let figures = of_cpus(&[5.0, 60.0, 0.4, 40.0]);
        assert_eq!(figures[&Metric::CpusUsed], 3.0);
        assert_eq!(figures[&Metric::NonIdlePct], 105.4);
    }

    #[test]
    fn time_that_is_counted_late_was_spent_before() {
        let readings =
            [(0, vec![0, 0]), (100, vec![0, 50]), (200, vec![0, 50]), (300, vec![250, 50])];
        let heat = heat(&readings).unwrap();
        assert_eq!(heat.non_idle_pct, [vec![50, 100, 100], vec![50, 0, 0]]);
        assert_eq!(super::heat(&readings[..1]), None);
    }

    #[test]
    fn frequency_and_battery_are_looked_at_however_seldom_cpus_are_read() {
        let mut meter = Meter::begin(None, None, true, None);
        meter.next_read_ns = u64::MAX;
        assert!(meter.until_due() <= Duration::from_nanos(LOOK_EVERY_NS));
        meter.next_look_ns = 0;
        let nr_read = meter.runs.len();
        meter.read_if_due();
        assert!(meter.next_look_ns > clock::now_ns());
        assert_eq!(meter.runs.len(), nr_read, "and they alone");
    }

    #[test]
    fn this_machine_is_measured() {
        let mut meter = Meter::begin(None, None, true, None);
        clock::burn(120_000_000);
        meter.read_if_due();
        assert!(meter.until_due() > Duration::ZERO);
        let measured = meter.end();
        assert!(measured.own_cpu_s >= 0.12 && measured.own_cpu_s < 1.0);
        if Reading::now().is_ok() {
            assert!(measured.figures[&Metric::NonIdlePct] > 0.0);
        }
    }
}
