//! A loaded scheduler and what the user wants of it: requests, mode `auto`, and the
//! table of workloads.

mod auto;
mod events;
mod limits;
mod observe;
mod treated;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use crossbeam::channel::{Receiver, after, never};
use log::{Level, info, log, warn};
use observe::Leases;
use scx_utils::autopower::PowerProfile;
use treated::Treated;

use crate::agent::desired::Desired;
use crate::agent::energy_choice::EnergyChoice;
use crate::agent::hints::InForce;
use crate::agent::load::{LoadMeter, ThrottleMeter};
use crate::agent::services::Services;
use crate::cli::Cli;
use crate::control::protocol::Reply;
use crate::control::status::{AgentState, Reloads, Status, StatusClock};
use crate::machine::cgroups::{CpuMaxLimits, Walks};
use crate::machine::kernel;
use crate::machine::topology::Ranks;
use crate::scheduler::Scheduler;
use crate::scheduler::counters::Counters;
use crate::scheduler::kernel_exit::StaysAway;
use crate::settings::auto::{Chooser, PERIOD};
use crate::settings::config;
use crate::settings::policy::{Choice, Policy, PolicyArgs};

/// How soon a cgroup that begins is treated as the table says.
const CGROUP_PERIOD: Duration = Duration::from_secs(1);

/// The bound on idle latencies and interrupts follow the active set that slowly: they are for what
/// works for long, and writing them is not free.
const HINT_PERIOD: Duration = Duration::from_secs(5);

/// How a run of the scheduler ended.
pub enum End {
    /// The user wants the kernel's scheduler back.
    Stopped,
    /// CPUs came or went while we were loading, or one is online that was not then: load again.
    Restart,
}

/// What stays when the scheduler is loaded again.
pub struct Kept {
    pub desired: Desired,
    /// Put back when this is dropped.
    pub hints: InForce,
    pub services: Services,
    /// The desktop's, as it was last reported.
    pub profile: PowerProfile,
    /// Whether the machine is busy, for `auto`.
    chooser: Chooser,
    reloads: Reloads,
}

impl Kept {
    /// What is desired, in force and served; nothing has happened yet.
    pub fn new(desired: Desired, hints: InForce, services: Services) -> Self {
        Kept {
            desired,
            hints,
            services,
            profile: PowerProfile::Unknown,
            chooser: Chooser::default(),
            reloads: Reloads::default(),
        }
    }
}

/// A loaded scheduler and what is known about it.
pub struct Session<'a> {
    cli: &'a Cli,
    scheduler: Scheduler<'a>,
    ranks: Ranks,
    policy: Policy,
    clock: StatusClock,
    kept: &'a mut Kept,
    load: LoadMeter,
    throttled: ThrottleMeter,
    energy: EnergyChoice,
    /// Why `auto` chose the mode.
    reason: Option<String>,
    timer: Receiver<Instant>,
    /// When to look around; `None`: never, or not known yet.
    next_look: Option<Instant>,
    leases: Leases,
    /// That hints could not be written was said.
    hints_fail: bool,
    treated: Treated,
    /// The cgroups whose limit is not enforced.
    cpu_max: CpuMaxLimits,
    walks: Walks,
}

impl<'a> Session<'a> {
    /// Puts in force what `kept` asks for beside the policy that `scheduler` runs. Fails if
    /// cgroups cannot be treated as the table says.
    pub fn new(
        cli: &'a Cli,
        scheduler: Scheduler<'a>,
        ranks: Ranks,
        policy: Policy,
        clock: StatusClock,
        kept: &'a mut Kept,
    ) -> Result<Self> {
        let energy = EnergyChoice::new(&ranks, scheduler.power(), &kept.desired);
        let mut session = Session {
            cli,
            scheduler,
            ranks,
            policy,
            clock,
            kept,
            load: LoadMeter::default(),
            throttled: ThrottleMeter::default(),
            energy,
            reason: None,
            timer: never(),
            next_look: None,
            leases: Leases::default(),
            hints_fail: false,
            treated: Treated::default(),
            cpu_max: CpuMaxLimits::of_kernel()?,
            walks: Walks::default(),
        };
        session.hint();
        // The first choice needs no waiting.
        if session.kept.desired.choice == Choice::Auto {
            session.choose(true);
        }
        session.set_timer();
        session.classify()?;
        session.inform_services();
        Ok(session)
    }

    /// Speaks when it is time to look around.
    pub fn timer(&self) -> &Receiver<Instant> {
        &self.timer
    }

    fn set_timer(&mut self) {
        let looks = match (self.kept.desired.table.is_empty(), self.kept.desired.choice) {
            (false, _) => Some(CGROUP_PERIOD),
            (true, Choice::Auto) => Some(PERIOD),
            (true, Choice::Fixed(_)) => None,
        };
        let hints = self.kept.hints.change_unasked(self.policy.mode).then_some(HINT_PERIOD);
        let now = Instant::now();
        let next = looks.into_iter().chain(hints).min().map(|period| now + period);
        // A client that asks all the time, as `top` does, must not put it off.
        self.next_look = next.map(|next| self.next_look.map_or(next, |due| due.min(next)));
        let look = self.next_look.map(|due| due.saturating_duration_since(now));
        let lease = self.leases.left(now);
        self.timer = look.into_iter().chain(lease).min().map_or_else(never, after);
    }

    /// What nobody reports: what `auto` goes by, and new cgroups.
    pub fn look_around(&mut self) {
        self.next_look = None;
        if self.kept.hints.change_unasked(self.policy.mode) {
            self.hint();
        }
        if let Err(err) = self.end_leases(Instant::now()) {
            warn!("cannot stop watching: {err:#}");
        }
        if self.kept.desired.choice == Choice::Auto && self.kept.chooser.is_due() {
            self.choose(true);
        }
        let table = &self.kept.desired.table;
        if !table.is_empty()
            && let Err(err) = self.treated.apply_to_new(table, &mut self.scheduler)
        {
            warn!("new cgroups are not treated as the table says: {err:#}");
        }
        self.set_timer();
        self.inform_services();
    }

    /// Puts a policy in force; the time it took (us).
    fn apply(&mut self, policy: Policy) -> Result<f64> {
        let policy = policy.checked(&self.ranks)?;
        let applied = self.scheduler.apply(policy, &self.ranks)?;
        self.policy = policy;
        self.kept.desired.mode = policy.mode;
        // Who has asked for something else is to know that it cannot be.
        self.hints_fail = false;
        self.hint();
        let took_us = applied.took.as_secs_f64() * 1e6;
        // Modes that take turns are not news.
        let level = if self.energy.compares() { Level::Debug } else { Level::Info };
        log!(
            level,
            "switched to mode {} in {took_us:.0} us; {} CPUs active",
            policy.mode,
            applied.active
        );
        Ok(took_us)
    }

    /// Has the hints follow the mode and the active set.
    fn hint(&mut self) {
        if !self.kept.hints.is_in_use() {
            return;
        }
        let looked = self.scheduler.snapshot(&self.ranks).and_then(|now| {
            let ranked = self.ranks.cpus().iter().enumerate();
            let active = ranked.filter(|&(rank, _)| now.is_active(rank));
            let active: Vec<_> = active.map(|(_, cpu)| (cpu.cpu, cpu.node)).collect();
            self.kept.hints.set_active(&active);
            let cpus: Vec<usize> = active.iter().map(|&(cpu, _)| cpu).collect();
            self.kept.hints.apply(self.policy.mode, &cpus)
        });
        // It is tried again at each look, and may fail for weeks.
        let had_failed = std::mem::replace(&mut self.hints_fail, looked.is_err());
        if let (Err(err), false) = (looked, had_failed) {
            warn!("not all hints are in force: {err:#}");
        }
    }

    fn set_policy(&mut self, choice: Option<Choice>, args: &PolicyArgs) -> Result<Reply> {
        let choice = choice.unwrap_or(self.kept.desired.choice);
        let mode = match choice {
            Choice::Fixed(mode) => mode,
            Choice::Auto => self.policy.mode,
        };
        let given = match choice {
            Choice::Fixed(_) => args.clone(),
            // A knob that another mode has waits for that mode.
            Choice::Auto => args.for_mode(mode),
        };
        let took_us = self.apply(self.policy.with(mode, &given))?;
        self.kept.desired.ask(args);
        self.follow(self.kept.desired.choice, choice);
        Ok(self.changed(took_us, vec![]))
    }

    /// Reads the configuration file again, beneath the command line; what was asked of the
    /// running scheduler since is forgotten. If anything is wrong nothing changes; what this
    /// machine cannot give now is left out, and said.
    fn reload(&mut self) -> Result<Reply> {
        let taken = self.take_config();
        self.kept.reloads.note(taken.is_ok());
        taken
    }

    fn take_config(&mut self) -> Result<Reply> {
        self.kept.desired.seen_config = config::text(self.cli.config.as_deref());
        let mut desired = Desired::new(self.cli, &self.ranks)?;
        if (self.kept.desired.choice, desired.choice) == (Choice::Auto, Choice::Auto) {
            // What it has chosen, until it chooses again.
            desired.mode = self.policy.mode;
        }
        let policy = desired.policy(&self.ranks)?;
        let took_us = self.kept.hints.set(desired.hints.clone()).and_then(|()| self.apply(policy));
        if took_us.is_err() {
            self.kept.hints.set(self.kept.desired.hints.clone())?;
        }
        let (took_us, choice) = (took_us?, desired.choice);
        if let Err(err) = self.kept.services.serve_metrics(desired.metrics) {
            desired.lacks.push(format!("{err:#}"));
        }
        desired.warn_of_lacks(&self.kept.desired.lacks);
        let before = std::mem::replace(&mut self.kept.desired, desired).choice;
        self.classify()?;
        self.follow(before, choice);
        Ok(self.changed(took_us, self.kept.desired.lacks.clone()))
    }

    /// The state in a few words.
    pub fn summary(&self) -> String {
        let mode = self.policy.mode;
        match &self.reason {
            Some(reason) => format!("mode {mode} (auto: {reason})"),
            None => format!("mode {mode}"),
        }
    }

    /// From now on the mode is chosen so, and no longer as `before`.
    fn follow(&mut self, before: Choice, choice: Choice) {
        self.kept.desired.choice = choice;
        self.reason = None;
        // Knobs may have changed.
        let power = self.scheduler.power();
        self.energy = EnergyChoice::new(&self.ranks, power, &self.kept.desired);
        if choice == Choice::Auto {
            // One that goes on remembers that the machine is busy.
            let begins = before != Choice::Auto;
            if begins {
                (self.kept.chooser, self.throttled) = Default::default();
            }
            self.choose(begins);
        }
        self.set_timer();
    }

    fn changed(&self, took_us: f64, lacks: Vec<String>) -> Reply {
        let (mode, reason) = (self.policy.mode.to_string(), self.reason.clone());
        Reply::Mode { mode, reason, took_us, lacks }
    }

    /// Treats the cgroups that are there as the table says.
    fn classify(&mut self) -> Result<()> {
        self.treated.apply(&self.kept.desired.table, &mut self.scheduler)
    }

    /// The status with what takes a walk over all cgroups, for clients that ask once.
    fn full_status(&mut self) -> Result<Reply> {
        let mut status = Box::new(self.status()?);
        status.ignored_cpu_max = self.cpu_max.paths().to_vec();
        status.limits = limits::of(&self.scheduler.limits()?, &mut self.walks);
        if self.scheduler.has_unlimited()? {
            status.ignored_cpu_max = limits::without_place(&status.limits, &mut self.walks);
        }
        status.above_ceiling = self.above_ceiling(&status)?;
        status.energy_compared = self.energy.sentences();
        Ok(Reply::Status(status))
    }

    /// Cgroups whose cpuset has no CPU below the ceiling, if there is one.
    fn above_ceiling(&mut self, status: &Status) -> Result<Vec<String>> {
        if status.max_cores >= self.ranks.nr_cores() {
            return Ok(vec![]);
        }
        // Not as many cores as that: CPUs of the first ones may be offline, or in a partition.
        let end = self.scheduler.snapshot(&self.ranks)?.active.ceiling as usize;
        let below: BTreeSet<usize> = status.ranks.iter().take(end).copied().collect();
        let confined = self.walks.confined().iter();
        let above = confined.filter(|(_, cpus)| !cpus.iter().any(|cpu| below.contains(cpu)));
        Ok(above.map(|(path, _)| path.clone()).collect())
    }

    /// The status now.
    fn status(&mut self) -> Result<Status> {
        let now = self.scheduler.snapshot(&self.ranks)?;
        let agent = AgentState {
            auto: self.kept.desired.choice == Choice::Auto,
            reason: self.reason.clone(),
            workloads: self.treated.len(),
            reloads: self.kept.reloads,
            enable_seq: kernel::enable_seq(),
        };
        Ok(self.clock.status(now, &self.ranks, self.policy, agent))
    }

    pub fn counters(&self) -> Result<Counters> {
        Ok(Counters::of(&self.scheduler.snapshot(&self.ranks)?))
    }

    pub fn end(self) -> Result<End> {
        detach(self.scheduler)
    }
}

/// Detaches. Fails if the kernel had ended the scheduler.
pub fn detach(scheduler: Scheduler<'_>) -> Result<End> {
    match scheduler.stop() {
        None => {
            info!("detached: the kernel's own scheduler is back");
            Ok(End::Stopped)
        }
        Some(exit) if exit.restart => Ok(End::Restart),
        Some(exit) => {
            exit.report.lines().for_each(|line| info!("{line}"));
            let said =
                format!("the kernel ended the scheduler and is back on its own: {}", exit.reason);
            if exit.stays_away {
                return Err(StaysAway(said).into());
            }
            bail!(said)
        }
    }
}
