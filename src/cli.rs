//! Every flag and subcommand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::settings::hints::{IdleLatency, Irqs};
use crate::settings::policy::PolicyArgs;

/// On loopback: to be reached from elsewhere takes an explicit address. Prometheus' list of
/// exporters has no other for this port.
const METRICS_DEFAULT: &str = "127.0.0.1:9994";

/// Pack the work of this machine on the fewest CPUs whose capacity carries it.
///
/// Runs until Ctrl-C, then the kernel's own scheduler is back. Change the mode
/// of the running scheduler from another terminal with `scx_powerpack mode`.
#[derive(Debug, Parser)]
#[command(name = "scx_powerpack", version, disable_version_flag = true)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// How to place tasks: `packing` (the fewest CPUs that carry the load), `balance`
    /// (the fewest last-level caches, spread inside them), `spread` (the idlest CPU), `energy` (as
    /// few CPUs or as many as take the least), or `auto` (by power profile, battery and load)
    /// [default: packing]
    #[arg(long)]
    pub mode: Option<String>,

    #[command(flatten)]
    pub policy: PolicyArgs,

    /// Keep the active CPUs out of idle states that take longer than US microseconds to leave,
    /// so that packed tasks wake quickly; or `any`
    #[arg(long, value_name = "US")]
    pub idle_latency_us: Option<IdleLatency>,

    /// Where the interrupts of devices that may move are to come [default: keep]
    #[arg(long, value_name = "WHERE")]
    pub irqs: Option<Irqs>,

    /// Read this configuration file [default: /etc/scx_powerpack/config.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Serve OpenMetrics over HTTP on this address [default if none is given: 127.0.0.1:9994]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = METRICS_DEFAULT)]
    pub metrics: Option<SocketAddr>,

    /// On a kernel without CONFIG_EXT_GROUP_SCHED: load nothing while a cgroup has a limit in cpu.max, which would not be enforced
    #[arg(long)]
    pub require_cpu_max: bool,

    /// Print statistics every SECONDS while running
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub stats: Option<Duration>,

    /// Print the statistics of the running scheduler every SECONDS; load nothing
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub monitor: Option<Duration>,

    /// Describe the statistics and exit
    #[arg(long)]
    pub help_stats: bool,

    /// Print more, libbpf's messages included
    #[arg(short, long)]
    pub verbose: bool,

    /// Print the version and exit
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What there is to do with a running scheduler, or without one.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure what packing does to this machine: workloads under the kernel's scheduler,
    /// our modes, and others
    Bench(BenchArgs),
    /// Measure this machine's power, while it is idle, for mode `energy` and for the simulator
    Calibrate(CalibrateArgs),
    /// Check the configuration file, or show the settings that it leads to
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the completions of a shell: for packagers
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Show the running scheduler's mode, or switch it and its knobs
    Mode {
        /// The mode to switch to: packing, balance, spread, energy or auto
        mode: Option<String>,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Have the running scheduler read its configuration file again
    Reload,
    /// Write what a report of a bug needs into one file, with nothing private in it
    Report {
        /// The file to write, which must not be there yet, or `-` for the standard output [default: scx_powerpack-report-DATE-TIME.txt]
        file: Option<PathBuf>,
    },
    /// Show what it would do on another machine, in a simulation; loads nothing
    Sim(SimArgs),
    /// Show what the running scheduler does: mode, active set, CPUs, counters
    Status {
        /// Print it as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Watch the running scheduler
    Top,
    /// Show this machine's CPUs in the order in which they are filled
    Topology,
    /// Show where a process's threads, or one thread, are put, and why; or what wakes a CPU
    Why {
        /// The id of a process or of a thread
        #[arg(value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "cpu")]
        pid: Option<u32>,
        /// End after this many placements
        #[arg(long, value_name = "N", default_value_t = 20, alias = "most")]
        count: usize,
        /// Show what wakes CPU N: tasks, timers, interrupts, kicks of the scheduler
        #[arg(long, value_name = "N", conflicts_with_all = ["pid", "count"])]
        cpu: Option<usize>,
        /// With --cpu: for how long; Ctrl-C ends it early
        #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, requires = "cpu")]
        seconds: Duration,
    },
}

/// What can be done with the configuration file; nothing is changed by it.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the file, and say what of it this machine cannot have now
    Check {
        /// The file to read [default: /etc/scx_powerpack/config.toml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print all settings: those of the file, and the defaults of the rest
    Show {
        /// The file to read [default: /etc/scx_powerpack/config.toml]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// Parse an interval: seconds, at least 0.1, with a fraction if wanted.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let seconds: f64 =
        number.parse().map_err(|_| format!("'{text}' is not a number of seconds"))?;
    if !(0.1..=86400.0).contains(&seconds) {
        return Err(format!("{seconds} is not between 0.1 and 86400 seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// `scx_powerpack bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub command: Option<BenchCommand>,

    /// What to run: quick, seeds, latency, throughput, waits, costs, stairs, on-off, knobs, evacuation, baseline, saturation, hard, sizes, loading, containers, programs, power, or a TOML file: a suite, or a workload
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    pub suite: String,

    /// What to compare: `eevdf` (the kernel's own), a mode of ours (`packing:small`, `MODE@N`
    /// for at most N cores, `MODE/PCT/MS` for --fill-pct and --latency-budget-ms), or the command
    /// of another scheduler, as "scx_lavd --powersave"
    #[arg(long, value_name = "SYSTEM,..", value_delimiter = ',', default_values = ["eevdf", "packing", "spread"])]
    pub against: Vec<String>,

    /// How many rounds; in each the systems take turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,

    /// Write results.json and report.html into this directory [default: powerpack-bench-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What else can be done with a benchmark.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Compare two results.json; the exit status is 3 if anything is worse in the later one
    Compare {
        /// The earlier results.json
        before: PathBuf,
        /// The later results.json
        after: PathBuf,
        /// Ignore what is worse by less than this (%)
        #[arg(long, value_name = "PCT", default_value_t = 5.0)]
        tolerance: f64,
    },
    /// Make report.html again from a results.json, beside it
    Report {
        /// The results.json to read; several, of one suite on several machines, make one report
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// Print it as a page of Markdown instead
        #[arg(long)]
        markdown: bool,
    },
    /// Run a workload once, as it is: for the benchmark itself
    #[command(hide = true)]
    Load {
        #[arg(long)]
        seconds: f64,
        #[arg(long)]
        settle: f64,
        #[arg(long)]
        additions_per_s: u64,
        workload: String,
    },
}

/// `scx_powerpack calibrate`.
#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Write the machine's model into FILE, for `sim --machine FILE` [default: /var/lib/scx_powerpack/machine.toml, which mode energy goes by too]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `scx_powerpack sim`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SimArgs {
    #[command(subcommand)]
    pub command: Option<SimCommand>,

    /// A machine that comes with the simulator, `here` for this one, or a TOML file
    #[arg(long, default_value = "vm4")]
    pub machine: String,

    /// A workload that comes with the simulator, RUN/PERIOD in ms, or a TOML file
    #[arg(long, default_value = "light")]
    pub workload: String,

    /// The systems to compare: a mode, `packing:small`, `MODE@N` on at most N cores,
    /// `MODE/PCT/MS` for --fill-pct and --latency-budget-ms, `eevdf` or `eas` (the kernel's own),
    /// or an earlier system; with `+GOVERNOR` for another frequency governor than the machine's own
    #[arg(long, value_name = "POLICY,..", value_delimiter = ',', default_values = ["packing", "spread"])]
    pub policy: Vec<String>,

    /// How long to simulate, in seconds, as 30 or 30s
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub until: Duration,

    /// The seed of the lengths that a workload lets vary at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Write what happens to FILE, for ui.perfetto.dev; with one policy
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// What else the simulator does.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Make a published table again; without a name, list them
    Table {
        /// The name of a table, as `ebizzy`
        name: Option<String>,

        /// Draw what `draws` says, machine by machine, into FILE, as SVG
        #[arg(long, value_name = "FILE")]
        picture: Option<PathBuf>,
    },
    /// Simulate a machine and a load of a table that draws machines, as JSON: for that table
    #[command(hide = true)]
    Draw { table: String, machine: String, load: String },
    /// Print what a VM of the laboratory needs to be like this machine: for scripts/vm
    #[command(hide = true)]
    Lab { machine: String },
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
    fn an_interval_must_be_sane() {
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        for bad in ["0", "-1", "nan", "inf", "x", "1e9"] {
            assert!(seconds(bad).is_err(), "{bad} was taken");
        }
    }
}
