//! One load under one system, once.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use powerpack_load::record::{Report, TaskReport};
use powerpack_workload::has_percentile;

use super::cgroups::Cgroups;
use super::child::{LoadProcess, Message};
use super::idle::{self, IdleMeter};
use super::meter::{self, Measured, Meter};
use super::metric::Metric;
use super::programs::{Beside, Figures};
use super::results::{Run, TaskFigures};
use super::suite::{Load, What};
use super::switches::Switches;
use crate::signals::Interrupted;

/// A load that has not printed anything for this long beyond its own time is stuck.
const PATIENCE_S: f64 = 60.0;
/// Ctrl-C takes effect after this time at most.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// What runs beside a load does so for this time before it.
const BESIDE_LEAD: Duration = Duration::from_secs(1);
/// How long a server may take until it can be used, and how often that is tried.
const READY_MAX: Duration = Duration::from_secs(120);
const READY_POLL: Duration = Duration::from_millis(200);
/// The time limit of a program.
const PROGRAM_MAX_S: f64 = 600.0;

/// What runs a load has to know.
pub struct Runner<'a> {
    pub additions_per_s: u64,
    /// Counted all the time: to begin and end is expensive.
    pub switches: Option<&'a Switches>,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
    /// Called now and then, with the time since it was last called (s).
    pub progress: &'a dyn Fn(f64),
}

/// What a load reported until its end.
#[derive(Default)]
struct Outcome {
    measured: Measured,
    report: Option<Report>,
    output: String,
}

impl Runner<'_> {
    /// Runs it, and measures. Fails with a sentence, or [`Interrupted`].
    pub fn run(&self, load: &Load) -> Result<Run> {
        // Removed last, when all has ended.
        let _cgroups = load.cgroups.make().context("its cgroups")?;
        let mut beside = self.start_beside(&load.beside)?;
        load.ready.as_ref().map_or(Ok(()), |ready| self.wait_ready(ready))?;
        // Before it starts, as tracing interrupts all CPUs as it begins.
        let traced = idle::trace(load, meter::online_cpus()?);
        let traced = traced.as_ref();
        // Before it starts too, as no program waits for that.
        let is_program = matches!(load.what, What::Program(_));
        let mut idle = meter::idle_meter(traced);
        let meter = is_program.then(|| self.begin_meter(load, idle.take()));
        let process = self.start(load)?;
        let outcome = self.follow(&process, load, idle, meter)?;
        let cpu_s = match process.finish() {
            Err(err) if !outcome.output.trim().is_empty() => {
                bail!("{err}: {}", last_line(&outcome.output))
            }
            cpu_s => cpu_s?,
        };
        for (process, other) in beside.iter_mut().zip(&load.beside) {
            let what = || format!("beside it {}", other.command.join(" "));
            process.check_runs().with_context(what)?;
        }
        let elapsed_s = outcome.measured.elapsed_s;
        let mut run = outcome.measured.into_run(cpu_s, load);
        match (&load.what, outcome.report) {
            (What::Program(program), _) => {
                run.figures.extend(program.figures(&outcome.output, elapsed_s)?)
            }
            (_, Some(report)) => add_report(&mut run, &report),
            _ => bail!("it ended without a report: {}", last_line(&outcome.output)),
        }
        add_efficiency(&mut run.figures);
        Ok(run)
    }

    fn start(&self, load: &Load) -> Result<LoadProcess> {
        let cgroup = load.cgroups.load_dir();
        let cgroup = cgroup.as_deref();
        match &load.what {
            What::Workload { name, settle_s } => {
                let seconds = load.info.seconds.unwrap_or_default();
                LoadProcess::workload(name, [seconds, *settle_s], self.additions_per_s, cgroup)
            }
            What::Program(program) => LoadProcess::program(&program.command, cgroup),
            What::Probe(_) => bail!("it is of a scheduler, and no load"),
        }
    }

    /// What runs beside the load; dropping it ends that.
    fn start_beside(&self, commands: &[Beside]) -> Result<Vec<LoadProcess>> {
        let start = |beside: &Beside| {
            let cgroup = beside.cgroup.as_deref().map(Cgroups::dir);
            LoadProcess::program(&beside.command, cgroup.as_deref())
        };
        let processes: Result<Vec<_>> = commands.iter().map(start).collect();
        if !commands.is_empty() {
            thread::sleep(BESIDE_LEAD);
        }
        processes
    }

    /// Repeats the command until it succeeds. Fails if it does not in time, with what it said last.
    fn wait_ready(&self, ready: &Beside) -> Result<()> {
        let (program, arguments) = ready.command.split_first().context("ready: no command")?;
        let begin = Instant::now();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                bail!(Interrupted);
            }
            let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
            let output = output.with_context(|| format!("cannot run {program}"))?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr);
            let (limit_s, said) = (READY_MAX.as_secs(), last_line(&said));
            ensure!(begin.elapsed() < READY_MAX, "{program} fails for {limit_s} s: {said}");
            thread::sleep(READY_POLL);
        }
    }

    /// Of loads of which only figures are shown there is no picture.
    fn begin_meter<'a>(&'a self, load: &Load, idle: Option<IdleMeter<'a>>) -> Meter<'a> {
        Meter::begin(self.switches, idle, load.info.group.is_none(), load.cgroups.metered_dir())
    }

    fn follow<'a>(
        &'a self,
        process: &LoadProcess,
        load: &Load,
        mut idle: Option<IdleMeter<'a>>,
        mut meter: Option<Meter<'a>>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut silent_s = 0.0;
        let longest_s = match load.what {
            What::Workload { .. } => load.seconds() + PATIENCE_S,
            What::Program(_) | What::Probe(_) => PROGRAM_MAX_S,
        };
        loop {
            if self.stop.load(Ordering::Relaxed) {
                bail!(Interrupted);
            }
            let due = meter.as_ref().map_or(WAIT_MAX, Meter::until_due);
            let wait = due.min(WAIT_MAX);
            match process.next_message(wait)? {
                None => {
                    silent_s += wait.as_secs_f64();
                    (self.progress)(wait.as_secs_f64());
                    ensure!(silent_s < longest_s, "it did not end within {longest_s:.0} s");
                    meter.iter_mut().for_each(Meter::read_if_due);
                }
                Some(Message::Settled) => {
                    meter = Some(self.begin_meter(load, idle.take()));
                }
                Some(Message::Over) => {
                    outcome.measured = meter.take().map_or_else(Measured::default, Meter::end);
                }
                Some(Message::Report(report)) => outcome.report = Some(*report),
                Some(Message::Output(output)) => {
                    outcome.output = output;
                    return Ok(outcome);
                }
            }
        }
    }
}

fn last_line(output: &str) -> &str {
    output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing")
}

impl Measured {
    /// As a run of a load that took `cpu_s` in all.
    fn into_run(self, cpu_s: f64, load: &Load) -> Run {
        let mut figures = self.figures;
        // Its CPU time counts from its start, not from the beginning of the measurement.
        let share = load.info.seconds.map_or(1.0, |seconds| seconds / load.seconds());
        if cpu_s > 0.0 {
            figures.insert(Metric::MeasuringPct, 100.0 * self.own_cpu_s / (cpu_s * share));
        }
        Run {
            load: load.info.name.clone(),
            system: String::new(),
            round: 0,
            failed: None,
            figures,
            non_idle_pct: self.non_idle_pct,
            idle_states_pct: self.idle_states_pct.into_iter().collect::<BTreeMap<_, _>>(),
            wake_ups_per_s: self.idle.wake_ups_per_s,
            interrupts_per_s: self.idle.interrupts_per_s,
            package_states_pct: self.idle.package_states_pct.into_iter().collect(),
            tasks: vec![],
            wake_curve_us: vec![],
            response_curve_us: vec![],
            heat: self.heat,
        }
    }
}

/// Adds what the threads of a workload met.
fn add_report(run: &mut Run, report: &Report) {
    let figures = &mut run.figures;
    figures.extend(report.records_per_s.map(|rate| (Metric::RecordsPerS, rate)));
    // What does as much as it can has no time by which it is to be done.
    let is_timed = |task: &&TaskReport| task.records_per_s.is_none() && task.activations > 0;
    let timed: Vec<&TaskReport> = report.tasks.iter().filter(is_timed).collect();
    if report.records_per_s.is_none() && report.response.count > 0 {
        figures.insert(Metric::ResponseP50Us, report.response.p50_us);
        let at = [(99.0, Metric::ResponseP99Us, report.response.p99_us)];
        add_percentiles(figures, report.response.count, &at);
        figures.insert(Metric::ResponseMaxUs, report.response.max_us);
        figures.insert(Metric::DelayMaxUs, report.max_delay_us);
    }
    if report.wake_latency.count > 0 {
        figures.insert(Metric::WakeMeanUs, report.wake_latency.mean_us);
        figures.insert(Metric::WakeP50Us, report.wake_latency.p50_us);
        let at = [
            (99.0, Metric::WakeP99Us, report.wake_latency.p99_us),
            (99.9, Metric::WakeP999Us, report.wake_latency.p999_us),
        ];
        add_percentiles(figures, report.wake_latency.count, &at);
        figures.insert(Metric::WakeMaxUs, report.wake_latency.max_us);
    }
    let activations: usize = timed.iter().map(|task| task.activations).sum();
    if activations > 0 {
        let overruns: usize = timed.iter().map(|task| task.overruns).sum();
        figures.insert(Metric::OverrunsPct, 100.0 * overruns as f64 / activations as f64);
    }
    run.tasks = report.tasks.iter().map(task_figures).collect();
    run.wake_curve_us.clone_from(&report.wake_curve_us);
    run.response_curve_us.clone_from(&report.response_curve_us);
}

/// Those that so many samples have.
fn add_percentiles(figures: &mut Figures, samples: usize, at: &[(f64, Metric, f64)]) {
    let known = at.iter().filter(|(pct, ..)| has_percentile(samples, *pct));
    figures.extend(known.map(|&(_, metric, us)| (metric, us)));
}

fn task_figures(task: &TaskReport) -> TaskFigures {
    TaskFigures {
        task: task.task.clone(),
        activations: task.activations,
        overruns: task.overruns,
        cpu_s: task.cpu_s,
        records_per_s: task.records_per_s,
        response_mean_us: task.response.mean_us,
        response_p50_us: task.response.p50_us,
        response_p99_us: task.response.p99_us,
        response_max_us: task.response.max_us,
    }
}

fn add_efficiency(figures: &mut Figures) {
    let Some(&rate) = figures.get(&Metric::RecordsPerS) else { return };
    let mut per = |of, to, unit: f64| {
        if let Some(&amount) = figures.get(&of)
            && amount > 0.0
        {
            figures.insert(to, rate / (amount / unit));
        }
    };
    per(Metric::PowerW, Metric::RecordsPerJ, 1.0);
    per(Metric::NonIdlePct, Metric::RecordsPerCpuS, 100.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_samples_beyond_them() {
        let figures = |samples| {
            let mut figures = Figures::new();
            let at = [(99.0, Metric::WakeP99Us, 1.0), (99.9, Metric::WakeP999Us, 2.0)];
            add_percentiles(&mut figures, samples, &at);
            figures.into_keys().collect::<Vec<_>>()
        };
        assert!(figures(99).is_empty());
        assert_eq!(figures(100), [Metric::WakeP99Us]);
        assert_eq!(figures(1000), [Metric::WakeP99Us, Metric::WakeP999Us]);
    }

    #[test]
    fn efficiency_needs_what_it_is_made_of() {
        let mut figures = Figures::from([(Metric::RecordsPerS, 50.0), (Metric::NonIdlePct, 200.0)]);
        add_efficiency(&mut figures);
        assert_eq!(figures[&Metric::RecordsPerCpuS], 25.0);
        assert!(!figures.contains_key(&Metric::RecordsPerJ));
        figures.insert(Metric::PowerW, 10.0);
        add_efficiency(&mut figures);
        assert_eq!(figures[&Metric::RecordsPerJ], 5.0);
    }
}
