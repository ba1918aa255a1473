//! The agent's loop: it sleeps until a signal, a request, a question for
//! statistics or the end of the scheduler wakes it. It looks around by itself only if it
//! was asked to choose the mode, or to treat cgroups that may yet come.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, Sender, bounded, select, unbounded};
use log::{info, warn};
use scx_stats::prelude::*;

use crate::cli::Cli;
use crate::control::{Call, Server};
use crate::host;
use crate::scheduler::Scheduler;
use crate::session::{End, Session, Wish};
use crate::stats;
use crate::status::StatusClock;
use crate::topology::Ranks;

/// Loads the scheduler and serves until it is told to stop.
/// Fails, with nothing attached, when it cannot be loaded or the kernel ends it.
pub fn run(cli: &Cli) -> Result<()> {
    let mut wish = Wish::new(cli)?;
    host::check_can_load()?;
    let mut ranks = Ranks::read()?;
    wish.policy(&ranks)?;
    let (calls_in, calls) = unbounded();
    let _server = Server::start(calls_in)?;
    let stop = stop_on_signals()?;
    loop {
        match run_once(cli, ranks, &mut wish, &calls, &stop)? {
            End::Stopped => return Ok(()),
            End::Restart => info!("the set of CPUs changed while loading: starting again"),
        }
        ranks = Ranks::read()?;
    }
}

fn run_once(
    cli: &Cli,
    ranks: Ranks,
    wish: &mut Wish,
    calls: &Receiver<Call>,
    stop: &Receiver<()>,
) -> Result<End> {
    let policy = wish.policy(&ranks)?;
    let mut object = MaybeUninit::uninit();
    let scheduler = Scheduler::start(&ranks, policy, cli.verbose, &mut object)?;
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
    print_stats_every(cli);
    let (stats_out, stats_in) = server.channels();
    let mut session = Session::new(cli, scheduler, ranks, policy, clock, wish);
    session.classify()?;
    give_back_memory();
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
            recv(session.timer()) -> _ => session.look_around(),
        }
    }
    session.end()
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
