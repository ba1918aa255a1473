//! What the user wants: the command line over the configuration file over the defaults, and
//! what was asked of the running scheduler since.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use crate::cli::Cli;
use crate::machine::record;
use crate::machine::topology::Ranks;
use crate::settings::auto::Rules;
use crate::settings::config::{self, ConfigFile};
use crate::settings::hints::{self, Hints};
use crate::settings::policy::{Choice, Mode, Policy, PolicyArgs};
use crate::settings::workloads::Table;

/// Kept while the scheduler is loaded again.
pub struct Desired {
    pub choice: Choice,
    pub args: PolicyArgs,
    pub table: Table,
    pub rules: Rules,
    pub hints: Hints,
    /// Where OpenMetrics are to be served.
    pub metrics: Option<SocketAddr>,
    /// The configuration file's text as it was read last, taken or not.
    pub seen_config: Option<String>,
    /// The mode that is in force, or is to be.
    pub mode: Mode,
}

impl Desired {
    /// Reads the configuration file, and checks it as a whole, for this machine too. Fails
    /// with a sentence.
    pub fn new(cli: &Cli, ranks: &Ranks) -> Result<Self> {
        // First: if it changes in between it is read once more.
        let seen_config = config::text(cli.config.as_deref());
        let file = ConfigFile::read(cli.config.as_deref())?;
        file.policy(ranks)?;
        let mut wanted = file.config;
        wanted.hints.idle_latency_us = cli.idle_latency_us.or(wanted.hints.idle_latency_us);
        wanted.hints.irqs = cli.irqs.or(wanted.hints.irqs);
        wanted.hints.check(&hints::root(), Path::new(record::HINTS))?;
        let named = cli.mode.as_deref().map(str::parse).transpose()?;
        let choice = named.or(wanted.mode).unwrap_or(Choice::Fixed(Mode::Packing));
        let mode = match choice {
            Choice::Fixed(mode) => mode,
            // Until there is evidence.
            Choice::Auto => Mode::Packing,
        };
        let desired = Desired {
            choice,
            args: cli.policy.or(&wanted.policy),
            table: wanted.workloads,
            rules: wanted.auto,
            hints: wanted.hints,
            metrics: cli.metrics.or(wanted.metrics),
            seen_config,
            mode,
        };
        desired.policy(ranks)?;
        Ok(desired)
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
