//! The course of a benchmark: which load runs when under which system, so that it is fair, can be
//! stopped at any time, and leaves the machine as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use log::{info, warn};
use powerpack_load::clock;

use super::cgroups;
use super::governor::{self, have_both_ends};
use super::machine;
use super::meter;
use super::metric::Metric;
use super::programs::is_installed;
use super::results::{FORMAT, LoadInfo, Results, Run, SystemInfo};
use super::run::Runner;
use super::suite::{Load, Suite, What};
use super::switches::Switches;
use super::system::{Running, System};
use crate::cli::BenchArgs;
use crate::control::preflight;
use crate::machine::kernel;
use crate::signals::{Interrupted, hear_signals};

/// In the directory of a benchmark.
pub const RESULTS_FILE: &str = "results.json";
/// What the schedulers printed.
const LOGS_DIR: &str = "logs";
/// A scheduler that has just been loaded is given this time to learn what runs (s).
const SETTLE_S: f64 = 1.0;
/// The first load is run for this time before anything counts: files come into memory, and
/// frequencies and temperatures to where they stay.
const WARM_UP_S: f64 = 2.0;

/// Ctrl-C takes effect after this time at most; each look at it wakes a CPU (ns).
const WAIT_MAX_NS: u64 = 1_000_000_000;

/// What came of it.
pub struct Outcome {
    pub results: Results,
    pub dir: PathBuf,
    pub interrupted: bool,
}

/// A benchmark under way.
struct Benchmark {
    suite: Suite,
    systems: Vec<System>,
    results: Results,
    dir: PathBuf,
    stop: Arc<AtomicBool>,
    bar: ProgressBar,
    switches: Option<Switches>,
    /// Mean response (us) under `performance` and `powersave`, by load.
    ends_us: BTreeMap<String, (f64, f64)>,
}

/// Runs what `args` ask for. Fails with a sentence before anything has been measured, not
/// after.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let mut benchmark = Benchmark::new(args)?;
    let stop = Arc::clone(&benchmark.stop);
    hear_signals(move |_| stop.store(true, Ordering::Relaxed))?;
    if let Err(err) = cgroups::remove_leftovers() {
        warn!("cgroups of an earlier benchmark: {err:#}");
    }
    let interrupted = match benchmark.measure() {
        Ok(()) => false,
        Err(err) if err.is::<Interrupted>() => true,
        Err(err) => return Err(err),
    };
    benchmark.bar.finish_and_clear();
    if interrupted {
        warn!("interrupted: what was measured until then is kept");
    }
    benchmark.save()?;
    Ok(Outcome { results: benchmark.results, dir: benchmark.dir, interrupted })
}

impl Benchmark {
    fn new(args: &BenchArgs) -> Result<Self> {
        let machine = machine::describe()?;
        let suite = Suite::find(&args.suite, machine.cores)?;
        let systems = systems_of(&args.against)?;
        if let Some(name) = kernel::loaded_scheduler() {
            bail!(
                "a sched_ext scheduler is loaded, {name}: stop it first (Ctrl-C, or systemctl \
                 stop), as the benchmark loads each in turn"
            );
        }
        let switches = Switches::begin(&meter::online_cpus()?);
        let started = jiff::Zoned::now();
        let date = started.strftime("powerpack-bench-%Y%m%d-%H%M%S").to_string();
        let dir = args.out.clone().unwrap_or_else(|| date.into());
        let taken = dir.join(RESULTS_FILE).exists();
        ensure!(!taken, "{} holds a {RESULTS_FILE} already: choose another --out", dir.display());
        let results = Results {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: started.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            machine,
            suite: suite.name.clone(),
            about: suite.about.clone(),
            runs_wanted: args.runs as usize,
            pairs: suite.pairs,
            complete: false,
            additions_per_s: clock::additions_per_s(),
            systems: systems.iter().map(System::info).collect(),
            loads: suite.loads.iter().map(|load| load.info.clone()).collect(),
            runs: vec![],
            missing: meter::missing(&suite.loads, switches.as_ref()),
            power_meter: meter::power_meter(),
        };
        let (stop, bar, ends_us) = (Arc::default(), ProgressBar::hidden(), BTreeMap::new());
        let mut benchmark =
            Benchmark { suite, systems, results, dir, stop, bar, switches, ends_us };
        benchmark.leave_out();
        let logs = benchmark.dir.join(LOGS_DIR);
        fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        benchmark.save()?;
        Ok(benchmark)
    }

    /// What cannot be run here is noted, and the rest goes on.
    fn leave_out(&mut self) {
        if let Err(err) = preflight::check_can_load() {
            for info in &mut self.results.systems {
                if info.command.is_some() {
                    info.failed = Some(format!("{err:#}"));
                }
            }
            warn!("only the kernel's own scheduler is measured: {err:#}");
        }
        let missing = &mut self.results.missing;
        self.suite.loads.retain(|load| {
            let absent = load.programs().find(|name| !is_installed(name));
            missing
                .extend(absent.map(|name| format!("{}: {name} is not installed", load.info.name)));
            absent.is_none()
        });
        self.suite.loads.retain(|load| {
            let made = load.cgroups.make();
            missing.extend(made.as_ref().err().map(|err| format!("{}: {err:#}", load.info.name)));
            made.is_ok()
        });
        if self.suite.loads.iter().any(|load| load.overhead) && !have_both_ends(Path::new("/")) {
            let why = "overhead (OH): no governors performance and powersave to compare with here";
            missing.push(why.to_owned());
        }
        let runs =
            |info: &LoadInfo| self.suite.loads.iter().any(|load| load.info.name == info.name);
        self.results.loads.retain(runs);
    }

    fn measure(&mut self) -> Result<()> {
        self.show_progress();
        self.warm_up()?;
        self.measure_ends()?;
        for round in 0..self.results.runs_wanted {
            for nth in self.turns(round) {
                self.measure_system(nth, round)?;
                self.save()?;
            }
        }
        self.results.complete = true;
        Ok(())
    }

    /// Which system runs when in a round. In pairs the first is there before and after each other.
    fn turns(&self, round: usize) -> Vec<usize> {
        let others = 1..self.systems.len();
        if !self.results.pairs || others.is_empty() {
            return (0..self.systems.len()).collect();
        }
        let last = (round + 1 == self.results.runs_wanted).then_some(0);
        others.flat_map(|nth| [0, nth]).chain(last).collect()
    }

    /// A bar on a terminal, else a line for each system and round.
    fn show_progress(&mut self) {
        let turns = (0..self.results.runs_wanted).flat_map(|round| self.turns(round));
        let can_run = |&nth: &usize| self.results.systems[nth].failed.is_none();
        let seconds_of = |nth: usize| {
            let loads = self.suite.loads.iter();
            let loads = loads.filter(|load| applies(load, &self.systems[nth]));
            SETTLE_S + loads.map(Load::seconds).sum::<f64>()
        };
        let seconds: f64 = turns.filter(can_run).map(seconds_of).sum();
        info!(
            "{} loads, {} systems, rounds: {}; about {seconds:.0} s",
            self.suite.loads.len(),
            self.systems.len(),
            self.results.runs_wanted,
        );
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {eta} left  {msg}");
        self.bar = ProgressBar::new((1e3 * seconds) as u64)
            .with_style(style.expect("a template of its own words"));
    }

    fn save(&self) -> Result<()> {
        self.results.write(&self.dir.join(RESULTS_FILE))
    }

    fn run_load(&self, load: &Load) -> Result<Run> {
        let advance = |seconds: f64| self.bar.inc((seconds * 1e3) as u64);
        Runner {
            additions_per_s: self.results.additions_per_s,
            switches: self.switches.as_ref(),
            stop: &self.stop,
            progress: &advance,
        }
        .run(load)
    }

    fn warm_up(&self) -> Result<()> {
        let Some(first) = self.suite.loads.first() else { return Ok(()) };
        let mut load = first.clone();
        if let What::Workload { settle_s, .. } = &mut load.what {
            *settle_s = 0.0;
            load.info.seconds = Some(WARM_UP_S);
        }
        self.bar.set_message("warming up");
        let result = self.run_load(&load);
        self.bar.set_position(0);
        match result {
            Err(err) if err.is::<Interrupted>() => Err(err),
            // It will fail again, and be reported then.
            _ => Ok(()),
        }
    }

    /// The two ends of OH, under the kernel's own scheduler.
    fn measure_ends(&mut self) -> Result<()> {
        let root = Path::new("/");
        if !have_both_ends(root) || !self.suite.loads.iter().any(|load| load.overhead) {
            return Ok(());
        }
        let of_governor = |governor: &str| -> Result<Vec<(String, f64)>> {
            let _governors = governor::set(root, governor)?;
            self.bar.set_message(format!("governor {governor}"));
            let loads = self.suite.loads.iter().filter(|load| load.overhead);
            loads.map(|load| Ok((load.info.name.clone(), mean_us(&self.run_load(load)?)))).collect()
        };
        let fast = of_governor("performance")?;
        let slow = of_governor("powersave")?;
        let both = fast.into_iter().zip(slow);
        self.ends_us = both.map(|((load, fast), (_, slow))| (load, (fast, slow))).collect();
        Ok(())
    }

    /// All loads under the `nth` system. Fails only if the benchmark cannot go on.
    fn measure_system(&mut self, nth: usize, round: usize) -> Result<()> {
        let system = self.systems[nth].clone();
        if self.results.systems[nth].failed.is_some() {
            return Ok(());
        }
        let of = self.results.runs_wanted;
        // On a terminal the bar says it.
        if self.bar.is_hidden() {
            info!("round {} of {of}: {}", round + 1, system.name);
        }
        let log = self.dir.join(LOGS_DIR).join(format!("{}-{round}.log", file_name(&system.name)));
        let mut running = match system.start(log) {
            Ok(running) => running,
            Err(err) => {
                self.give_up(nth, &err);
                return Ok(());
            }
        };
        self.wait(SETTLE_S)?;
        let loads = self.suite.loads.clone();
        for load in loads.iter().filter(|load| applies(load, &system)) {
            self.bar.set_message(format!("{}: {}", system.name, load.info.name));
            let planned = self.bar.position() + (load.seconds() * 1e3) as u64;
            let run = self.run_under(&system, &mut running, load);
            self.bar.set_position(planned);
            let lost = running.check(&system);
            self.note(run, load, &system, round)?;
            if let Err(err) = lost {
                self.give_up(nth, &err);
                return Ok(());
            }
        }
        running.stop()
    }

    fn run_under(&self, system: &System, running: &mut Running, load: &Load) -> Result<Run> {
        if let What::Probe(probe) = load.what {
            let figures = probe.run(system, running, |seconds| self.wait(seconds))?;
            return Ok(Run { load: load.info.name.clone(), figures, ..Run::default() });
        }
        if load.info.max_cores.is_some() {
            running.set_max_cores(load.info.max_cores)?;
        }
        let run = self.run_load(load);
        if load.info.max_cores.is_some() {
            running.set_max_cores(None)?;
        }
        run
    }

    fn note(&mut self, run: Result<Run>, load: &Load, system: &System, round: usize) -> Result<()> {
        let mut run = match run {
            Ok(run) => run,
            Err(err) if err.is::<Interrupted>() => return Err(err),
            Err(err) => {
                self.warn(&format!("{} under {}: {err:#}", load.info.name, system.name));
                Run {
                    failed: Some(format!("{err:#}")),
                    load: load.info.name.clone(),
                    ..Run::default()
                }
            }
        };
        run.system.clone_from(&system.name);
        run.round = round;
        if let Some((fast, slow)) = self.ends_us.get(&run.load)
            && run.failed.is_none()
        {
            let overhead_pct = 100.0 * (mean_us(&run) - fast) / (slow - fast);
            run.figures.insert(Metric::OverheadPct, overhead_pct);
        }
        // One picture of each is enough.
        if round > 0 {
            run.heat = None;
        }
        self.results.runs.push(run);
        Ok(())
    }

    fn give_up(&mut self, nth: usize, err: &anyhow::Error) {
        self.warn(&format!("{}: {err:#}; the others go on", self.systems[nth].name));
        let info: &mut SystemInfo = &mut self.results.systems[nth];
        info.failed = Some(format!("{err:#}"));
    }

    /// Not into the bar.
    fn warn(&self, text: &str) {
        self.bar.suspend(|| warn!("{text}"));
    }

    fn wait(&self, seconds: f64) -> Result<()> {
        let end_ns = clock::now_ns() + (seconds * 1e9) as u64;
        while clock::now_ns() < end_ns {
            clock::sleep_until(end_ns.min(clock::now_ns() + WAIT_MAX_NS));
            if self.stop.load(Ordering::Relaxed) {
                bail!(Interrupted);
            }
        }
        self.bar.inc((seconds * 1e3) as u64);
        Ok(())
    }
}

/// Fails if one is unknown, or named twice.
fn systems_of(names: &[String]) -> Result<Vec<System>> {
    let systems: Vec<System> =
        names.iter().map(|text| System::parse(text)).collect::<Result<_>>()?;
    for (nth, system) in systems.iter().enumerate() {
        let twice = systems[..nth].iter().any(|other| other.name == system.name);
        ensure!(!twice, "--against names '{}' twice", system.name);
    }
    Ok(systems)
}

/// Not every system can leave cores alone, or has what a probe looks at.
fn applies(load: &Load, system: &System) -> bool {
    match load.what {
        What::Probe(probe) => probe.applies(system),
        _ => load.info.max_cores.is_none() || system.takes_ceilings(),
    }
}

/// The mean response of all its tasks (us).
fn mean_us(run: &Run) -> f64 {
    let activations: usize = run.tasks.iter().map(|task| task.activations).sum();
    let sum = run.tasks.iter().map(|task| task.response_mean_us * task.activations as f64);
    sum.sum::<f64>() / activations.max(1) as f64
}

fn file_name(system: &str) -> String {
    system.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_name_that_every_file_system_takes() {
        assert_eq!(file_name("scx_lavd --powersave"), "scx_lavd_--powersave");
        assert_eq!(file_name("packing:small@3"), "packing_small_3");
    }
}
