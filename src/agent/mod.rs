//! The agent's loop: it sleeps until a signal, a request, a question for
//! statistics or the end of the scheduler wakes it. It looks around by itself only if it
//! was asked to choose the mode, to treat cgroups that may yet come, or to watch for a
//! client, and notifies systemd that it lives if that is asked for.

mod config_watch;
mod desired;
mod energy_choice;
pub mod events;
mod evidence_file;
pub mod hints;
mod load;
mod metrics;
mod power_profile;
mod proof;
pub mod server;
mod services;
mod session;
pub mod stats;
mod systemd;

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Once;
use std::thread;

use anyhow::{Context, Error, Result, anyhow, ensure};
use crossbeam::channel::{Receiver, Sender, bounded, never, select, tick, unbounded};
use log::{info, warn};
use scx_stats::prelude::*;

use crate::cli::Cli;
use crate::control::preflight;
use crate::control::status::StatusClock;
use crate::machine::borrowed;
use crate::machine::cgroups::{self, CpuMaxLimits};
use crate::machine::kernel::check_root;
use crate::machine::record;
use crate::machine::seen_cpus::SeenCpus;
use crate::scheduler::Scheduler;
use crate::scheduler::counters::Counters;
use crate::settings::config;
use crate::settings::hints as settings_hints;
use config_watch::watch_config;
use desired::Desired;
use events::{Event, watch_signals};
use hints::InForce;
use power_profile::watch_profile;
use server::Server;
use services::Services;
use session::{End, Kept, Session};

/// Loads the scheduler and serves until it is asked to stop.
/// Fails, with nothing attached, when it cannot be loaded or the kernel ends it.
pub fn run(cli: &Cli) -> Result<()> {
    let (news, events) = unbounded();
    // Before it is read: what changes while we load is news too.
    if let Err(err) = watch_config(&config::path(cli.config.as_deref()), news.clone()) {
        warn!("{err:#}: say 'scx_powerpack reload' when it has changed");
    }
    check_root("loading a scheduler")?;
    let _server = Server::start(news.clone())?;
    watch_signals(news.clone())?;
    // The socket is ours: no other agent runs. Before anything that may end this start, as
    // what a killed one has left would stay in force until a start that succeeds.
    hints::recover(Path::new(record::HINTS));
    borrowed::recover(Path::new("/"));
    let (mut seen, mut desired) = what_is_wanted(cli)?;
    watch_profile(news.clone())?;
    let hints =
        InForce::new(desired.hints.clone(), &settings_hints::root(), Path::new(record::HINTS))?;
    let mut services = Services::new(news)?;
    if let Err(err) = services.serve_metrics(desired.metrics) {
        ensure!(cli.metrics.is_none(), err);
        desired.lacks.push(format!("{err:#}"));
    }
    desired.warn_of_lacks(&[]);
    let mut kept = Kept::new(desired, hints, services);
    loop {
        match run_once(cli, seen, &mut kept, &events)? {
            End::Stopped => return Ok(()),
            End::Restart => info!("the set of CPUs has changed: loading again"),
        }
        seen = SeenCpus::read_settled()?;
        let before = kept.desired.lacks.clone();
        kept.desired.fit(&seen.ranks);
        kept.desired.warn_of_lacks(&before);
    }
}

/// Fails with the first reason why it cannot be on this machine.
fn what_is_wanted(cli: &Cli) -> Result<(SeenCpus, Desired)> {
    let seen = SeenCpus::read()?;
    let desired = Desired::new(cli, &seen.ranks)?;
    Desired::check_given(cli, &seen.ranks)?;
    preflight::check_can_load()?;
    if cli.require_cpu_max {
        preflight::check_cpu_max()?;
    }
    Ok((seen, desired))
}

/// Loads the scheduler and serves until it is detached.
fn run_once(cli: &Cli, seen: SeenCpus, kept: &mut Kept, events: &Receiver<Event>) -> Result<End> {
    let policy = kept.desired.policy(&seen.ranks)?;
    let mut object = MaybeUninit::uninit();
    let scheduler = Scheduler::start(&seen, policy, cli.verbose, &mut object)?;
    // If CPUs came or went meanwhile the kernel attaches it and ends it at once: then neither the log nor
    // systemd may have that it is attached.
    if scheduler.has_ended() {
        return session::detach(scheduler);
    }
    if !seen.are_online_still() {
        session::detach(scheduler)?;
        return Ok(End::Restart);
    }
    let ranks = seen.ranks;
    let exited = watch(scheduler.exit_fd()?)?;
    let clock = StatusClock::new(scheduler.snapshot(&ranks)?);
    let failure = scheduler.failure();
    let server = StatsServer::new(stats::server_data())
        .launch()
        .inspect_err(|err| warn!("no statistics are served: {err:#}"))
        .ok();
    if cgroups::is_cpu_v1() {
        warn!("{}", cgroups::IGNORED_V1);
    }
    if let Some(sentence) = cgroups::ignored_cpu_max(CpuMaxLimits::of_kernel()?.paths()) {
        warn!("{sentence}");
    }
    info!(
        "attached: mode {}, {} CPUs in {} cores and {} LLCs; Ctrl-C to stop",
        policy.mode,
        ranks.cpus().len(),
        ranks.nr_cores(),
        ranks.llcs().len()
    );
    print_stats_every(cli);
    let mut session = Session::new(cli, scheduler, ranks, policy, clock, kept)?;
    give_back_memory();
    systemd::ready(&session.summary());
    match serve(&mut session, events, &exited, &failure, server.as_ref())? {
        // It may be loaded again: systemd would kill who goes on after it has said that it stops.
        Ended::ByKernel => session.end(),
        Ended::ByUser => {
            systemd::stopping();
            // Nor is it loaded again if a CPU comes at that moment.
            session.end().map(|_| End::Stopped)
        }
    }
}

/// Why it is served no more.
enum Ended {
    ByUser,
    ByKernel,
}

/// Until the user wants it to end, or the kernel has ended it. Fails if what the scheduler needs of this process has
/// ended; statistics are an extra.
fn serve(
    session: &mut Session<'_>,
    events: &Receiver<Event>,
    exited: &Receiver<()>,
    failure: &Receiver<Error>,
    server: Option<&StatsServer<(), Counters>>,
) -> Result<Ended> {
    let (stats_out, mut stats_in) =
        server.map_or_else(|| (bounded(1).0, never()), StatsServer::channels);
    let heartbeat = systemd::heartbeat().map_or_else(never, tick);
    // It may have been a while: the scheduler has been loaded.
    systemd::alive();
    loop {
        select! {
            recv(exited) -> _ => return Ok(Ended::ByKernel),
            recv(failure) -> err => {
                let err = err.unwrap_or_else(|_| anyhow!("its thread has ended"));
                return Err(err.context("throttled tasks are not released any more"));
            }
            recv(events) -> event => match event {
                Ok(Event::Stop) | Err(_) => return Ok(Ended::ByUser),
                Ok(event) => session.take(event),
            },
            recv(stats_in) -> asked => {
                let answer = session.counters()?;
                if asked.is_err() || stats_out.send(answer).is_err() {
                    warn!("statistics are not served any more: their server has ended");
                    stats_in = never();
                }
            }
            recv(session.timer()) -> _ => session.look_around(),
            recv(heartbeat) -> _ => systemd::alive(),
        }
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

/// `--stats`: a client of our own server, as `--monitor` is. It goes on after the scheduler is loaded again.
fn print_stats_every(cli: &Cli) {
    static ONCE: Once = Once::new();
    let Some(interval) = cli.stats else { return };
    ONCE.call_once(|| {
        thread::spawn(move || {
            if let Err(err) = stats::monitor(Some(interval)) {
                warn!("statistics have ended: {err:#}");
            }
        });
    });
}

/// Loading needs the kernel's BTF in memory, running does not.
fn give_back_memory() {
    // SAFETY: releases free memory of this process only.
    unsafe { libc::malloc_trim(0) };
}
