//! powerpack-load: the loads with which scx_powerpack is measured and shown.
//! Each burns its own CPU time or does a fixed amount of work; none is
//! calibrated, because calibrated loops drift under emulation.

mod clock;
mod hogs;
mod interrupts;
mod periodic;
mod pipe;
mod samples;
mod schedstat;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use periodic::TaskSpec;

/// Loads for measuring schedulers; prints one JSON object.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    load: Load,
}

#[derive(Subcommand)]
enum Load {
    /// Threads that run RUN ms every PERIOD ms of CPU time
    Periodic {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Start the threads evenly apart in their periods rather than together
        #[arg(long)]
        stagger: bool,
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
    /// No load at all: count timer and rescheduling interrupts
    Interrupts {
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().load) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(err) => {
            eprintln!("powerpack-load: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(load: Load) -> Result<String> {
    let periodic = |seconds, tasks: &str, stagger| -> Result<String> {
        let tasks: Result<Vec<TaskSpec>, String> =
            tasks.split_whitespace().map(str::parse).collect();
        let tasks = tasks.map_err(anyhow::Error::msg)?;
        Ok(serde_json::to_string(&periodic::run(&tasks, seconds, stagger)?)?)
    };
    match load {
        Load::Periodic { seconds, stagger, tasks } => {
            Ok(serde_json::to_string(&periodic::run(&tasks, seconds, stagger)?)?)
        }
        Load::Light { seconds } => periodic(seconds, "3/20 1.5/25 0.5/33*2 0.1/10*4", false),
        Load::Tiny { seconds } => periodic(seconds, "0.05/20*40", true),
        Load::Mixed { seconds } => periodic(seconds, "10/50 0.2/10*6", false),
        Load::Wake { seconds } => periodic(seconds, "0.1/10*4 1/25*2", true),
        Load::Hogs { seconds, count, nice, pin } => {
            Ok(serde_json::to_string(&hogs::run(seconds, count, &nice, pin)?)?)
        }
        Load::Pipe { rounds, pin } => Ok(serde_json::to_string(&pipe::run(rounds, pin)?)?),
        Load::Interrupts { seconds } => Ok(serde_json::to_string(&interrupts::run(seconds)?)?),
    }
}
