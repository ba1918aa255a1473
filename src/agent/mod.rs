//! The agent's loop: it sleeps until a signal, a request, a question for
//! statistics or the end of the scheduler wakes it. It looks around by itself only if it
//! was asked to choose the mode, to treat cgroups that may yet come, or to watch for a
//! client, and tells systemd that it lives if that wants to know.

mod config_watch;
mod desired;
pub mod events;
pub mod hints;
mod load;
mod metrics;
mod power_profile;
pub mod server;
mod session;
pub mod stats;
mod systemd;

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, bounded, never, select, tick, unbounded};
use log::{error, info, warn};
use scx_stats::prelude::*;
use scx_utils::autopower::PowerProfile;

use crate::cli::Cli;
use crate::control::preflight;
use crate::control::protocol::Request;
use crate::control::status::StatusClock;
use crate::machine::cgroups::{self, CpuMaxLimits};
use crate::machine::topology::Ranks;
use crate::scheduler::Scheduler;
use crate::scheduler::counters::Counters;
use crate::settings::config;
use crate::settings::hints as settings_hints;
use config_watch::watch_config;
use desired::Desired;
use events::{Event, watch_signals};
use hints::InForce;
use metrics::Metrics;
use power_profile::watch_profile;
use server::Server;
use session::{End, Session};

/// Loads the scheduler and serves until it is asked to stop.
/// Fails, with nothing attached, when it cannot be loaded or the kernel ends it.
pub fn run(cli: &Cli) -> Result<()> {
    let (news, events) = unbounded();
    // Before it is read: what changes while we load is news too.
    if let Err(err) = watch_config(&config::path(cli.config.as_deref()), news.clone()) {
        warn!("{err:#}: say 'scx_powerpack reload' when it has changed");
    }
    let mut ranks = Ranks::read()?;
    let desired = Desired::new(cli, &ranks)?;
    preflight::check_can_load()?;
    let _server = Server::start(news.clone())?;
    watch_signals(news.clone())?;
    watch_profile(news.clone())?;
    // The socket is ours: no other agent runs.
    hints::recover(Path::new(hints::RECORD));
    let hints =
        InForce::new(desired.hints.clone(), &settings_hints::root(), Path::new(hints::RECORD))?;
    let mut agent = Agent { cli, desired, hints, events, services: Services::new(news)? };
    agent.services.serve_metrics(agent.desired.metrics)?;
    loop {
        match agent.run_once(ranks)? {
            End::Stopped => return Ok(()),
            End::Restart => info!("the set of CPUs changed while loading: starting again"),
        }
        ranks = Ranks::read()?;
    }
}

/// What stays when the scheduler is loaded again.
struct Agent<'a> {
    cli: &'a Cli,
    desired: Desired,
    /// Put back when this is dropped.
    hints: InForce,
    events: Receiver<Event>,
    services: Services,
}

impl Agent<'_> {
    fn run_once(&mut self, ranks: Ranks) -> Result<End> {
        let policy = self.desired.policy(&ranks)?;
        let mut object = MaybeUninit::uninit();
        let scheduler = Scheduler::start(&ranks, policy, self.cli.verbose, &mut object)?;
        let exited = watch(scheduler.exit_fd()?)?;
        let clock = StatusClock::new(scheduler.snapshot(&ranks)?);
        let server =
            StatsServer::new(stats::server_data()).launch().context("cannot serve statistics")?;
        info!(
            "attached: mode {}, {} CPUs in {} cores and {} LLCs; Ctrl-C to stop",
            policy.mode,
            ranks.cpus().len(),
            ranks.nr_cores(),
            ranks.llcs().len()
        );
        if let Some(sentence) = cgroups::ignored_cpu_max(CpuMaxLimits::default().paths()) {
            warn!("{sentence}");
        }
        print_stats_every(self.cli);
        let mut session = Session::new(
            self.cli,
            scheduler,
            ranks,
            policy,
            clock,
            &mut self.desired,
            &mut self.hints,
        );
        session.note_profile(self.services.profile);
        session.classify()?;
        self.services.follow(&mut session);
        give_back_memory();
        systemd::ready(&session.summary());
        serve(&mut session, &mut self.services, &self.events, &exited, &server)?;
        systemd::stopping();
        session.end()
    }
}

/// Until the user wants it to end, or the kernel has ended it.
fn serve(
    session: &mut Session<'_>,
    services: &mut Services,
    events: &Receiver<Event>,
    exited: &Receiver<()>,
    server: &StatsServer<(), Counters>,
) -> Result<()> {
    let (stats_out, stats_in) = server.channels();
    let heartbeat = systemd::heartbeat().map_or_else(never, tick);
    loop {
        select! {
            recv(exited) -> _ => return Ok(()),
            recv(events) -> event => match event {
                Ok(Event::Stop) | Err(_) => return Ok(()),
                Ok(event) => services.take(event, session),
            },
            recv(stats_in) -> asked => match asked {
                Ok(()) => stats_out.send(session.counters()?)?,
                Err(_) => bail!("the statistics server has ended"),
            },
            recv(session.timer()) -> _ => {
                session.look_around();
                services.follow(session);
            }
            recv(heartbeat) -> _ => systemd::alive(),
        }
    }
}

/// What the agent serves and asks beside the kernel: metrics, systemd, the power profile.
struct Services {
    /// For those who have news for the agent.
    news: Sender<Event>,
    metrics: Option<Metrics>,
    /// systemd has opened the port for metrics: it is not ours to change.
    has_socket: bool,
    /// As it was last reported.
    profile: PowerProfile,
    /// The status that systemd was last sent.
    sent_status: String,
}

impl Services {
    fn new(news: Sender<Event>) -> Result<Self> {
        let listen = |listener| Metrics::listen(listener, news.clone());
        let metrics = systemd::metrics_socket().map(listen).transpose()?;
        let has_socket = metrics.is_some();
        Ok(Services {
            news,
            metrics,
            has_socket,
            profile: PowerProfile::Unknown,
            sent_status: String::new(),
        })
    }

    /// Serves metrics there, and nowhere else.
    fn serve_metrics(&mut self, wanted: Option<SocketAddr>) -> Result<()> {
        let served = self.metrics.as_ref().map(|metrics| metrics.address);
        if !self.has_socket && served != wanted {
            // The port first: the new address may differ in no more than the host.
            self.metrics = None;
            let serve = |address| Metrics::serve(address, self.news.clone());
            self.metrics = wanted.map(serve).transpose()?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event, session: &mut Session<'_>) {
        match event {
            Event::Stop => {}
            Event::Reload => self.reload(session),
            Event::ConfigChanged if session.has_seen_config() => {}
            Event::ConfigChanged => self.reload(session),
            Event::Profile(profile) => {
                self.profile = profile;
                session.note_profile(profile);
            }
            Event::Call((request, reply)) => {
                let rereads = matches!(request, Request::Reload);
                let answer = session.answer(request);
                if rereads {
                    self.move_metrics(session);
                }
                // The client may have gone; that is its own affair.
                let _ = reply.send(answer);
            }
        }
        self.follow(session);
    }

    /// What depends on the mode, and on who looks.
    fn follow(&mut self, session: &mut Session<'_>) {
        // A scrape comes too seldom for a lease.
        if let Err(err) = session.keep_latency(self.metrics.is_some()) {
            error!("{err:#}");
        }
        let summary = session.summary();
        if self.sent_status != summary {
            systemd::status(&summary);
            self.sent_status = summary;
        }
    }

    /// Serves them where the configuration says, if that can be had.
    fn move_metrics(&mut self, session: &Session<'_>) {
        if let Err(err) = self.serve_metrics(session.metrics()) {
            error!("{err:#}");
        }
    }

    /// Reads the configuration file again, where nobody waits for the outcome.
    fn reload(&mut self, session: &mut Session<'_>) {
        systemd::reloading();
        match session.reload() {
            Ok(_) => info!("the configuration was read again"),
            Err(err) => error!("the configuration stays as it was: {err:#}"),
        }
        self.move_metrics(session);
        systemd::ready(&session.summary());
    }
}

/// A channel that speaks when `fd` becomes readable.
fn watch(fd: OwnedFd) -> Result<Receiver<()>> {
    let (sender, receiver) = bounded(1);
    thread::Builder::new()
        .name("exit-watch".into())
        .spawn(move || wait_readable(&fd, &sender))
        .context("cannot start a thread")?;
    Ok(receiver)
}

fn wait_readable(fd: &OwnedFd, sender: &Sender<()>) {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd. A negative result is an interruption.
    while unsafe { libc::poll(&raw mut poll, 1, -1) } <= 0 {}
    let _ = sender.send(());
}

/// `--stats`: a client of our own server, as `--monitor` is.
fn print_stats_every(cli: &Cli) {
    let Some(interval) = cli.stats else { return };
    thread::spawn(move || {
        if let Err(err) = stats::monitor(Some(interval)) {
            warn!("statistics have ended: {err:#}");
        }
    });
}

/// Loading needs the kernel's BTF in memory, running does not.
fn give_back_memory() {
    // SAFETY: releases free memory of this process only.
    unsafe { libc::malloc_trim(0) };
}
