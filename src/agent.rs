//! The agent's loop: it sleeps until a signal, a request, a question for
//! statistics or the end of the scheduler wakes it. It never polls.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, bounded, select, unbounded};
use log::{info, warn};
use scx_stats::prelude::*;

use crate::cli::Cli;
use crate::control::{Call, Reply, Request, Server};
use crate::host;
use crate::policy::{Mode, Policy};
use crate::scheduler::Scheduler;
use crate::stats::{self, Counters, StatusClock};
use crate::topology::Ranks;

/// How a run of the scheduler ended.
enum End {
    /// The user wants the kernel's scheduler back.
    Stopped,
    /// CPUs came or went while we were loading: begin anew.
    Restart,
}

/// Loads the scheduler and serves until it is told to stop.
/// Fails, with nothing attached, when it cannot be loaded or the kernel ends it.
pub fn run(cli: &Cli) -> Result<()> {
    let mode: Mode = cli.mode.parse()?;
    host::check_can_load()?;
    Policy::new(mode, cli.max_cores, &Ranks::read()?)?;
    let (calls_in, calls) = unbounded();
    let _server = Server::start(calls_in)?;
    let stop = stop_on_signals()?;
    let mut mode = mode;
    loop {
        match run_once(cli, &mut mode, &calls, &stop)? {
            End::Stopped => return Ok(()),
            End::Restart => info!("the set of CPUs changed while loading: starting again"),
        }
    }
}

fn run_once(
    cli: &Cli,
    mode: &mut Mode,
    calls: &Receiver<Call>,
    stop: &Receiver<()>,
) -> Result<End> {
    let ranks = Ranks::read()?;
    let policy = Policy::new(*mode, cli.max_cores, &ranks)?;
    let mut object = MaybeUninit::uninit();
    let scheduler = Scheduler::start(&ranks, policy, cli.verbose, &mut object)?;
    let exited = watch(scheduler.exit_fd()?)?;
    let clock = StatusClock::new(scheduler.snapshot(&ranks)?);
    let server =
        StatsServer::new(stats::server_data()).launch().context("cannot serve statistics")?;
    give_back_memory();
    info!(
        "attached: mode {mode}, {} CPUs in {} cores and {} LLCs; Ctrl-C to stop",
        ranks.cpus().len(),
        ranks.nr_cores(),
        ranks.llcs().len()
    );
    print_stats_every(cli);
    let (stats_out, stats_in) = server.channels();
    let mut session = Session { scheduler, ranks, policy, clock };
    loop {
        select! {
            recv(stop) -> _ => break,
            recv(exited) -> _ => break,
            recv(stats_in) -> asked => match asked {
                Ok(()) => stats_out.send(session.counters()?)?,
                Err(_) => bail!("the statistics server has ended"),
            },
            recv(calls) -> call => if let Ok((request, reply)) = call {
                // The client may have gone; that is its own affair.
                let _ = reply.send(session.answer(request));
            },
        }
    }
    *mode = session.policy.mode;
    session.end()
}

/// A loaded scheduler and what is known about it.
struct Session<'a> {
    scheduler: Scheduler<'a>,
    ranks: Ranks,
    policy: Policy,
    clock: StatusClock,
}

impl Session<'_> {
    fn answer(&mut self, request: Request) -> Reply {
        let reply = match request {
            Request::SetMode(name) => self.set_mode(&name),
            Request::Status => self.status(),
        };
        reply.unwrap_or_else(|err| Reply::Error(format!("{err:#}")))
    }

    fn set_mode(&mut self, name: &str) -> Result<Reply> {
        let policy = Policy { mode: name.parse()?, ..self.policy };
        let applied = self.scheduler.apply(policy, &self.ranks)?;
        self.policy = policy;
        let took_us = applied.took.as_secs_f64() * 1e6;
        info!(
            "switched to mode {} in {took_us:.0} us; {} CPUs active",
            policy.mode, applied.active
        );
        Ok(Reply::Mode { mode: policy.mode.to_string(), took_us })
    }

    fn status(&mut self) -> Result<Reply> {
        let now = self.scheduler.snapshot(&self.ranks)?;
        let status = self.clock.status(now, &self.ranks, self.policy, host::enable_seq());
        Ok(Reply::Status(Box::new(status)))
    }

    fn counters(&self) -> Result<Counters> {
        Ok(Counters::of(&self.scheduler.snapshot(&self.ranks)?))
    }

    fn end(self) -> Result<End> {
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

/// SIGINT, SIGTERM and SIGHUP.
fn stop_on_signals() -> Result<Receiver<()>> {
    let (sender, receiver) = bounded(1);
    ctrlc::set_handler(move || {
        // Full: it was told to stop already.
        let _ = sender.try_send(());
    })
    .context("cannot handle signals")?;
    Ok(receiver)
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
