//! The thread that asks the scheduler and looks at the machine, so that keys are heard
//! while it waits.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, unbounded};

use super::cpu_states::CpuStates;
use super::model::{Machine, Sample, Task};
use crate::control::protocol::{Reply, Request, ask};
use crate::machine::names;
use crate::machine::package_states::{Others, PackageStates};
use crate::machine::power_meter::PowerMeter;
use crate::scheduler::placement::TaskStatus;

/// How many of the busiest tasks are requested.
const TASKS: usize = 100;
/// What the machine reports over less than this says nothing.
const INTERVAL_MIN: Duration = Duration::from_millis(200);

/// What the thread is to do.
pub enum Command {
    Look,
    Set(Request),
}

/// What it brings back.
pub enum Update {
    Looked(Box<Result<Sample, String>>),
    Set(Result<String, String>),
}

/// Starts it. Commands are done in their order; it ends with their sender.
pub fn start() -> Result<(Sender<Command>, Receiver<Update>)> {
    let (commands, todo) = unbounded();
    let (sender, updates) = unbounded();
    let body = move || {
        let mut watch = Watch::begin();
        for command in todo {
            let _ = sender.send(match command {
                Command::Look => Update::Looked(Box::new(look(&mut watch).map_err(message))),
                Command::Set(request) => Update::Set(set(&request).map_err(message)),
            });
        }
    };
    thread::Builder::new().name("ask".into()).spawn(body).context("cannot start a thread")?;
    Ok((commands, updates))
}

fn message(err: anyhow::Error) -> String {
    format!("{err:#}")
}

fn look(watch: &mut Watch) -> Result<Sample> {
    match ask(&Request::Top { tasks: TASKS })? {
        Reply::Top { status, tasks } => Ok(Sample {
            status: *status,
            tasks: tasks.iter().map(named).collect(),
            machine: watch.look(),
        }),
        other => bail!("unexpected reply {other:?}"),
    }
}

fn set(request: &Request) -> Result<String> {
    match ask(request)? {
        Reply::Mode { mode, took_us, .. } => {
            Ok(format!("mode {mode}, in force after {took_us:.0} us"))
        }
        other => bail!("unexpected reply {other:?}"),
    }
}

fn named(task: &TaskStatus) -> Task {
    let name = names::of_task(task.pid).unwrap_or_else(|| "?".into());
    Task { pid: task.pid, tgid: task.tgid, cpu: task.cpu, util: task.util, name }
}

/// What the machine reports from look to look.
struct Watch {
    meter: PowerMeter,
    cpus: CpuStates,
    packages: PackageStates,
    /// What these said last (s).
    package_seconds: Vec<(String, f64)>,
    begin: Instant,
    since: Instant,
    last: Machine,
}

impl Watch {
    fn begin() -> Self {
        let (root, now) = (Path::new("/"), Instant::now());
        let packages = PackageStates::begin(root, Others::Sleep);
        Watch {
            meter: PowerMeter::begin(root),
            cpus: CpuStates::begin(root),
            package_seconds: packages.seconds(),
            packages,
            begin: now,
            since: now,
            last: Machine::default(),
        }
    }

    /// Over the time since the last look that was long enough.
    fn look(&mut self) -> Machine {
        let interval = self.since.elapsed();
        if interval >= INTERVAL_MIN {
            self.meter.look();
            let seconds = interval.as_secs_f64();
            self.last = Machine {
                power_w: self.meter.power_w(seconds),
                cpus: self.cpus.look(self.begin.elapsed().as_secs_f64()),
                package_states: self.package_states(seconds),
            };
            self.meter.reset();
            self.since = Instant::now();
        }
        self.last.clone()
    }

    /// Share of the last `seconds` in each (%).
    fn package_states(&mut self, seconds: f64) -> Vec<(String, f64)> {
        self.packages.look();
        let before = std::mem::replace(&mut self.package_seconds, self.packages.seconds());
        let now = self.package_seconds.iter();
        let pct = |now: f64, before: f64| ((now - before) / seconds * 100.0).min(100.0);
        now.zip(before)
            .map(|((name, now), (_, before))| (name.clone(), pct(*now, before)))
            .collect()
    }
}
