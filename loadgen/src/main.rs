//! powerpack-load: the loads with which scx_powerpack is measured and shown.
//! Each burns its own CPU time or does a fixed amount of work; none is
//! calibrated, because calibrated loops drift under emulation.

mod table;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::{Parser, Subcommand};
use powerpack_workload::{Phases, Workload};
use serde::Serialize;

use powerpack_load::engine::{self, Course};
use powerpack_load::periodic::TaskSpec;
use powerpack_load::{command, drain, hogs, interrupts, pipe, record, workload};
use table::Table;

/// Eight threads that run 28.0 % of one CPU; with their wake-ups, 28.4 %.
const LIGHT: &str = "3/20 1.5/25 0.5/33*2 0.1/10*4";
/// Forty that run a tenth of one.
const TINY: &str = "0.05/20*40";
/// A big one among six small ones.
const MIXED: &str = "10/50 0.2/10*6";
/// Short ones, of which the wake-up latency is all that matters.
const WAKE: &str = "0.1/10*4 1/25*2";

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
    /// The light load: eight threads, 28.4 % of one CPU
    Light {
        #[arg(long, default_value_t = 15.0)]
        seconds: f64,
    },
    /// Many tiny threads: 40 of 0.05 ms in 20
    Tiny {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
    /// One big thread (10 ms in 50) among six small ones
    Mixed {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
    /// Short threads only, for their wake-up latency
    Wake {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
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
    /// What a workload of the simulator says, for real
    Workload {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Measure only after this many of them, when the scheduler knows the load
        #[arg(long, default_value_t = 0.0)]
        settle: f64,
        /// One that comes with the simulator, or a TOML file
        workload: String,
    },
    /// Any other program, until it ends
    Command {
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// No load at all: count timer and rescheduling interrupts
    Interrupts {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
    /// Under a periodic load, run a command that switches the scheduler's mode,
    /// and see when the surplus CPUs are left alone
    Drain {
        #[arg(long, default_value_t = 4.0)]
        seconds: f64,
        /// A CPU is drained once it has been left alone for this long
        #[arg(long, default_value_t = 200)]
        settle_ms: u64,
        /// The load, as for `periodic`
        #[arg(long, value_delimiter = ' ', default_value = LIGHT)]
        tasks: Vec<TaskSpec>,
        /// The command, run in the middle
        #[arg(last = true, required = true)]
        command: Vec<String>,
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
    let preset = |seconds, tasks: &str, phases| -> Result<String> {
        let course = Course { seconds, phases, ..Course::default() };
        show(&periodic(&specs(tasks)?, course)?, json)
    };
    match load {
        Load::Periodic { seconds, settle, phases, tasks } => {
            show(&periodic(&tasks, Course { seconds, settle, phases, ..Course::default() })?, json)
        }
        Load::Light { seconds } => preset(seconds, LIGHT, Phases::Together),
        Load::Tiny { seconds } => preset(seconds, TINY, Phases::Even),
        Load::Mixed { seconds } => preset(seconds, MIXED, Phases::Together),
        Load::Wake { seconds } => preset(seconds, WAKE, Phases::Even),
        Load::Hogs { seconds, count, nice, pin } => {
            show(&hogs::run(seconds, count, &nice, pin)?, json)
        }
        Load::Pipe { rounds, pin } => show(&pipe::run(rounds, pin)?, json),
        Load::Workload { seconds, settle, workload } => {
            let workload = Workload::find(&workload)?;
            let course = Course { seconds, settle, phases: workload.phases, ..Course::default() };
            show(&engine::run(&workload::kinds(&workload)?, course.checked()?)?, json)
        }
        Load::Command { command } => show(&command::run(&command)?, json),
        Load::Interrupts { seconds } => show(&interrupts::run(seconds)?, json),
        Load::Drain { seconds, settle_ms, tasks, command } => {
            show(&drain::run(&tasks, seconds, settle_ms, &command)?, json)
        }
    }
}

fn periodic(tasks: &[TaskSpec], course: Course) -> Result<record::Report> {
    let kinds: Vec<_> = tasks.iter().map(TaskSpec::kind).collect();
    engine::run(&kinds, course.checked()?)
}

fn show(report: &(impl Serialize + Table), json: bool) -> Result<String> {
    Ok(if json { serde_json::to_string(report)? } else { report.table() })
}

fn specs(text: &str) -> Result<Vec<TaskSpec>> {
    text.split_whitespace().map(|task| task.parse().map_err(Error::msg)).collect()
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

    #[test]
    fn the_light_load_is_that_of_the_published_figures() {
        let share = |load| specs(load).unwrap().iter().map(TaskSpec::cpu_pct).sum::<f64>();
        assert!((share(LIGHT) - 28.03).abs() < 0.01, "{}", share(LIGHT));
        assert!((share(TINY) - 10.0).abs() < 0.01, "{}", share(TINY));
    }
}
