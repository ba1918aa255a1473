//! A loaded scheduler and what the user wants of it: requests, mode `auto`, and the
//! table of workloads.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use crossbeam::channel::{Receiver, after, never};
use log::{info, warn};

use crate::auto::{self, Chooser, Evidence};
use crate::cli::Cli;
use crate::config::Config;
use crate::host;
use crate::load::LoadMeter;
use crate::policy::{Choice, Mode, Policy, PolicyArgs};
use crate::protocol::{Reply, Request};
use crate::scheduler::Scheduler;
use crate::stats::Counters;
use crate::status::{Status, StatusClock, Told};
use crate::topology::Ranks;
use crate::workloads::{self, Table, Treatment};

/// How soon a cgroup that begins is treated as the table says.
const CGROUP_PERIOD: Duration = Duration::from_secs(1);

/// For how long latencies, or the placements of a task, are watched after they were asked
/// for: longer than the slowest of those who ask again and again.
const WATCH_LEASE: Duration = Duration::from_secs(10);

/// What the user wants: kept while the scheduler is loaded anew.
pub struct Wish {
    choice: Choice,
    args: PolicyArgs,
    table: Table,
    /// The mode that is in force, or is to be.
    mode: Mode,
}

impl Wish {
    /// The command line, and for the rest the configuration file. Fails with a sentence.
    pub fn new(cli: &Cli) -> Result<Self> {
        let config = Config::read(cli.config.as_deref())?;
        let named = cli.mode.as_deref().map(str::parse).transpose()?;
        let choice = named.or(config.mode).unwrap_or(Choice::Fixed(Mode::Packing));
        let mode = match choice {
            Choice::Fixed(mode) => mode,
            // Until there is evidence.
            Choice::Auto => Mode::Packing,
        };
        Ok(Wish { choice, args: cli.policy.or(&config.policy), table: config.workloads, mode })
    }

    /// The policy, checked against the machine. Fails with a sentence.
    pub fn policy(&self, ranks: &Ranks) -> Result<Policy> {
        // In auto a knob that another mode has waits for that mode.
        let args = match self.choice {
            Choice::Auto => self.args.for_mode(self.mode),
            Choice::Fixed(_) => self.args.clone(),
        };
        Policy::of(self.mode).with(self.mode, &args).checked(ranks)
    }
}

/// How a run of the scheduler ended.
pub enum End {
    /// The user wants the kernel's scheduler back.
    Stopped,
    /// CPUs came or went while we were loading: begin anew.
    Restart,
}

/// A loaded scheduler and what is known about it.
pub struct Session<'a> {
    cli: &'a Cli,
    scheduler: Scheduler<'a>,
    ranks: Ranks,
    policy: Policy,
    clock: StatusClock,
    wish: &'a mut Wish,
    chooser: Chooser,
    load: LoadMeter,
    /// Why `auto` chose the mode.
    reason: Option<String>,
    timer: Receiver<Instant>,
    /// Until when latencies are watched for those who ask again and again.
    latency_until: Option<Instant>,
    /// They are watched for good.
    keeps_latency: bool,
    /// Whose placements are watched, and until when.
    watched: Option<(u32, Instant)>,
    /// How many cgroups there were when the table was last applied.
    cgroups: usize,
    /// How many of them the table names.
    treated: usize,
}

impl<'a> Session<'a> {
    pub fn new(
        cli: &'a Cli,
        scheduler: Scheduler<'a>,
        ranks: Ranks,
        policy: Policy,
        clock: StatusClock,
        wish: &'a mut Wish,
    ) -> Self {
        let mut session = Session {
            cli,
            scheduler,
            ranks,
            policy,
            clock,
            wish,
            chooser: Chooser::default(),
            load: LoadMeter::default(),
            reason: None,
            timer: never(),
            latency_until: None,
            keeps_latency: false,
            watched: None,
            cgroups: 0,
            treated: 0,
        };
        // The first choice needs no waiting.
        if session.wish.choice == Choice::Auto {
            session.choose();
        }
        session.set_timer();
        session
    }

    /// Speaks when it is time to look around.
    pub fn timer(&self) -> &Receiver<Instant> {
        &self.timer
    }

    fn set_timer(&mut self) {
        let looks = match (self.wish.table.is_empty(), self.wish.choice) {
            (false, _) => Some(CGROUP_PERIOD),
            (true, Choice::Auto) => Some(auto::PERIOD),
            (true, Choice::Fixed(_)) => None,
        };
        let leases = [self.latency_until, self.watched.map(|(_, until)| until)];
        let leases = leases.into_iter().flatten().map(|end| end.duration_since(Instant::now()));
        self.timer = looks.into_iter().chain(leases).min().map_or_else(never, after);
    }

    /// What nobody tells us: what `auto` goes by, and new cgroups.
    pub fn look_around(&mut self) {
        if let Err(err) = self.end_leases(Instant::now()) {
            warn!("cannot stop watching: {err:#}");
        }
        if self.wish.choice == Choice::Auto && self.chooser.is_due() {
            self.choose();
        }
        if !self.wish.table.is_empty()
            && workloads::count_cgroups() != self.cgroups
            && let Err(err) = self.classify()
        {
            warn!("new cgroups are not treated as the table says: {err:#}");
        }
        self.set_timer();
    }

    /// Has `auto` choose; what cannot be done is said and tried again.
    fn choose(&mut self) {
        let load_pct = match self.scheduler.snapshot(&self.ranks) {
            Ok(now) => self.load.pct(&now),
            Err(err) => return warn!("cannot tell the load: {err:#}"),
        };
        let (mode, reason) = self.chooser.choose(&Evidence::gather(load_pct));
        if mode != self.policy.mode {
            info!("auto: {reason}");
            // --pack small is for packing alone: in another mode it waits.
            let args = self.wish.args.for_mode(mode);
            if let Err(err) = self.apply(self.policy.with(mode, &args)) {
                warn!("auto cannot switch to mode {mode}: {err:#}");
            }
        }
        self.reason = Some(reason);
    }

    /// Puts a policy in force; the time it took (us).
    fn apply(&mut self, policy: Policy) -> Result<f64> {
        let policy = policy.checked(&self.ranks)?;
        let applied = self.scheduler.apply(policy, &self.ranks)?;
        self.policy = policy;
        self.wish.mode = policy.mode;
        let took_us = applied.took.as_secs_f64() * 1e6;
        info!(
            "switched to mode {} in {took_us:.0} us; {} CPUs active",
            policy.mode, applied.active
        );
        Ok(took_us)
    }

    /// What a client is told.
    pub fn answer(&mut self, request: Request) -> Reply {
        let reply = match request {
            Request::SetPolicy { mode, policy } => self.set_policy(mode, &policy),
            Request::Reload => self.reload(),
            Request::Status => self.status().map(|status| Reply::Status(Box::new(status))),
            Request::Top { tasks } => self.top(tasks),
            Request::Why { pid } => self.why(pid),
        };
        reply.unwrap_or_else(|err| Reply::Error(format!("{err:#}")))
    }

    fn set_policy(&mut self, choice: Option<Choice>, args: &PolicyArgs) -> Result<Reply> {
        let choice = choice.unwrap_or(self.wish.choice);
        let mode = match choice {
            Choice::Fixed(mode) => mode,
            Choice::Auto => self.policy.mode,
        };
        let took_us = self.apply(self.policy.with(mode, args))?;
        self.wish.args = args.or(&self.wish.args);
        self.follow(choice);
        Ok(self.told(took_us))
    }

    /// The configuration file anew, beneath the command line; what was asked of the
    /// running scheduler since is forgotten. If anything is wrong nothing changes.
    fn reload(&mut self) -> Result<Reply> {
        let wish = Wish::new(self.cli)?;
        let took_us = self.apply(wish.policy(&self.ranks)?)?;
        let choice = wish.choice;
        *self.wish = wish;
        self.classify()?;
        self.follow(choice);
        Ok(self.told(took_us))
    }

    /// From now on the mode is chosen so.
    fn follow(&mut self, choice: Choice) {
        self.wish.choice = choice;
        self.reason = None;
        if choice == Choice::Auto {
            self.chooser = Chooser::default();
            self.choose();
        }
        self.set_timer();
    }

    fn told(&self, took_us: f64) -> Reply {
        Reply::Mode { mode: self.policy.mode.to_string(), reason: self.reason.clone(), took_us }
    }

    /// Treats the cgroups that are there as the table says.
    pub fn classify(&mut self) -> Result<()> {
        let before = self.treated;
        self.treated = 0;
        self.cgroups = workloads::count_cgroups();
        if self.wish.table.is_empty() && before == 0 {
            return Ok(());
        }
        for cgroup in workloads::cgroups() {
            let treatment = self.wish.table.treatment(&cgroup.path);
            self.treated += usize::from(treatment != Treatment::None);
            self.scheduler.classify(cgroup.id, treatment)?;
        }
        if self.treated != before {
            info!("{} cgroups are treated as the table of workloads says", self.treated);
        }
        self.scheduler.look_up_anew()
    }

    /// The status now.
    pub fn status(&mut self) -> Result<Status> {
        let now = self.scheduler.snapshot(&self.ranks)?;
        let told = Told {
            auto: self.wish.choice == Choice::Auto,
            reason: self.reason.clone(),
            workloads: self.treated,
            enable_seq: host::enable_seq(),
        };
        Ok(self.clock.status(now, &self.ranks, self.policy, told))
    }

    fn top(&mut self, tasks: usize) -> Result<Reply> {
        self.scheduler.watch_latency(true)?;
        self.latency_until = Some(Instant::now() + WATCH_LEASE);
        self.set_timer();
        let status = Box::new(self.status()?);
        Ok(Reply::Top { status, tasks: self.scheduler.busiest(tasks)? })
    }

    fn why(&mut self, pid: u32) -> Result<Reply> {
        match self.watched {
            Some((other, until)) if other != pid && until > Instant::now() => {
                bail!("the placements of process {other} are being watched: try again later")
            }
            Some((same, _)) if same == pid => {}
            _ => {
                // What is there is of another task, or from long ago.
                self.scheduler.placements()?;
                self.scheduler.watch_pid(Some(pid))?;
            }
        }
        self.watched = Some((pid, Instant::now() + WATCH_LEASE));
        self.set_timer();
        let (placements, lost) = self.scheduler.placements()?;
        Ok(Reply::Why { placements, lost })
    }

    /// Stops watching what nobody has asked for lately.
    fn end_leases(&mut self, now: Instant) -> Result<()> {
        if self.latency_until.is_some_and(|until| until <= now) {
            self.latency_until = None;
            self.scheduler.watch_latency(self.keeps_latency)?;
        }
        if self.watched.is_some_and(|(_, until)| until <= now) {
            self.watched = None;
            self.scheduler.watch_pid(None)?;
        }
        Ok(())
    }

    /// Measures wake-up latencies for good: for who asks too seldom for a lease.
    pub fn keep_latency(&mut self) -> Result<()> {
        self.keeps_latency = true;
        self.scheduler.watch_latency(true)
    }

    pub fn counters(&self) -> Result<Counters> {
        Ok(Counters::of(&self.scheduler.snapshot(&self.ranks)?))
    }

    /// Detaches. Fails if the kernel had ended the scheduler.
    pub fn end(self) -> Result<End> {
        match self.scheduler.stop() {
            None => {
                info!("detached: the kernel's own scheduler is back");
                Ok(End::Stopped)
            }
            Some(exit) if exit.restart => Ok(End::Restart),
            Some(exit) => {
                bail!("the kernel ended the scheduler and is back on its own: {}", exit.reason)
            }
        }
    }
}
