//! scx_powerpack: a sched_ext scheduler that packs tasks on the fewest CPUs
//! whose capacity carries them. This file parses and dispatches, nothing else.

mod agent;
mod bench;
mod bpf_intf;
mod calibrate;
mod cli;
mod cmd;
mod control;
mod machine;
mod plot;
mod published;
#[cfg(test)]
mod pure;
mod scheduler;
mod settings;
mod signals;
mod sim;
mod statistics;
mod wakes;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use simplelog::{ColorChoice, ConfigBuilder, LevelFilter, TermLogger, TerminalMode};

use cli::{Cli, Command};
use scheduler::kernel_exit::{STAYS_AWAY_STATUS, StaysAway};

fn main() -> ExitCode {
    let cli = Cli::parse();
    init_logging(cli.verbose);
    match run(&cli) {
        Ok(status) => status,
        Err(err) => {
            eprintln!("scx_powerpack: {err:#}");
            if err.is::<StaysAway>() { STAYS_AWAY_STATUS.into() } else { ExitCode::FAILURE }
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Some(Command::Bench(args)) => return bench::run(args),
        Some(Command::Calibrate(args)) => return calibrate::run(args),
        _ => (),
    }
    // Top has a terminal to restore first.
    let prints = match &cli.command {
        Some(command) => !matches!(command, Command::Top),
        None => cli.help_stats || cli.monitor.is_some(),
    };
    if prints {
        die_of_broken_pipes();
    }
    match &cli.command {
        Some(Command::Bench(_) | Command::Calibrate(_)) => {
            unreachable!("they have exit statuses of their own")
        }
        Some(Command::Config { command }) => cmd::config::run(command),
        Some(Command::Completions { shell }) => cmd::completions::print(*shell),
        Some(Command::Mode { mode, policy }) => cmd::status::mode(mode.as_deref(), policy),
        Some(Command::Reload) => cmd::status::reload(),
        Some(Command::Status { json }) => cmd::status::status(*json),
        Some(Command::Report { file }) => cmd::report::run(file.as_deref()),
        Some(Command::Sim(args)) => sim::run(args),
        Some(Command::Top) => cmd::top::run(),
        Some(Command::Topology) => cmd::status::topology(),
        Some(Command::Why { cpu: Some(cpu), seconds, .. }) => cmd::wakes::run(*cpu, *seconds),
        Some(Command::Why { pid, count, .. }) => {
            cmd::why::run(pid.expect("clap requires it without --cpu"), *count)
        }
        None if cli.help_stats => agent::stats::describe(),
        None if cli.monitor.is_some() => agent::stats::monitor_running(cli.monitor),
        None => agent::run(cli),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// What prints and ends may be piped into `head`: Rust would panic there.
fn die_of_broken_pipes() {
    // SAFETY: before any thread is started.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Logs go to stderr, as the other scx schedulers' do.
fn init_logging(verbose: bool) {
    let level = if verbose { LevelFilter::Debug } else { LevelFilter::Info };
    let config = ConfigBuilder::new()
        .set_time_level(LevelFilter::Off)
        .set_target_level(LevelFilter::Off)
        .set_thread_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off)
        .build();
    // Fails only if a logger is set already, and then logging works.
    let _ = TermLogger::init(level, config, TerminalMode::Stderr, ColorChoice::Auto);
}
