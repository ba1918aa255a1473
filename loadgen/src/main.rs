//! powerpack-load: the loads with which scx_powerpack is measured and shown.
//! Each burns its own CPU time or does a fixed amount of work; none is
//! calibrated, because calibrated loops drift under emulation.

mod table;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use powerpack_workload::{Phases, Workload};
use serde::Serialize;

use powerpack_load::engine::{self, Course};
use powerpack_load::periodic::TaskSpec;
use powerpack_load::{audio, hogs, pipe, workload};
use table::Table;

/// Loads for measuring schedulers. Prints a table on a terminal, else one JSON
/// object.
#[derive(Parser)]
struct Cli {
    /// Print JSON on a terminal too
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    load: Load,
}

#[derive(Subcommand)]
enum Load {
    /// Threads that run RUN ms every PERIOD ms of CPU time
    Periodic {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Measure only after this many of them, when the scheduler knows the load
        #[arg(long, default_value_t = 0.0)]
        settle: f64,
        /// Begin together, evenly apart in their periods (even), or anywhere in them (random)
        #[arg(long, default_value = "together")]
        phases: Phases,
        /// RUN/PERIOD[*COUNT] in ms
        #[arg(required = true)]
        tasks: Vec<TaskSpec>,
    },
    /// Threads that compute without a pause
    Hogs {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        #[arg(long, default_value_t = 8)]
        count: usize,
        /// Nice values, one for each thread in turn
        #[arg(long, value_delimiter = ',', allow_negative_numbers = true)]
        nice: Vec<i32>,
        /// Bind all of them to this CPU
        #[arg(long)]
        pin: Option<usize>,
    },
    /// Two processes that send a byte to and fro
    Pipe {
        #[arg(long, default_value_t = 2000)]
        rounds: u32,
        /// Bind both to this CPU
        #[arg(long)]
        pin: Option<usize>,
    },
    /// Sound: each 5.3 ms a thread wakes a real-time one, which must be done before the next
    Audio {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// CPU time in each period of the thread that wakes (us)
        #[arg(long, default_value_t = 300)]
        application_us: u64,
        /// CPU time in each period of the real-time thread (us)
        #[arg(long, default_value_t = 700)]
        server_us: u64,
    },
    /// The threads of a workload
    Workload {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Measure only after this many of them, when the scheduler knows the load
        #[arg(long, default_value_t = 0.0)]
        settle: f64,
        /// One that comes with it, as light, RUN/PERIOD in ms, or a TOML file
        workload: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.load, cli.json || !std::io::stdout().is_terminal()) {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(err) => {
            eprintln!("powerpack-load: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(load: Load, json: bool) -> Result<String> {
    match load {
        Load::Periodic { seconds, settle, phases, tasks } => {
            let kinds: Vec<_> = tasks.iter().map(TaskSpec::kind).collect();
            let course = Course { seconds, settle, phases, ..Course::default() };
            show(&engine::run(&kinds, course.checked()?)?, json)
        }
        Load::Hogs { seconds, count, nice, pin } => {
            show(&hogs::run(seconds, count, &nice, pin)?, json)
        }
        Load::Pipe { rounds, pin } => show(&pipe::run(rounds, pin)?, json),
        Load::Audio { seconds, application_us, server_us } => {
            show(&audio::run(seconds, [application_us, server_us])?, json)
        }
        Load::Workload { seconds, settle, workload } => {
            let workload = Workload::find(&workload)?;
            let course = Course { seconds, settle, phases: workload.phases, ..Course::default() };
            show(&engine::run(&workload::kinds(&workload)?, course.checked()?)?, json)
        }
    }
}

fn show(report: &(impl Serialize + Table), json: bool) -> Result<String> {
    Ok(if json { serde_json::to_string(report)? } else { report.table() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// clap checks the definition for contradictions only when asked to.
    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
