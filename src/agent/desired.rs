//! What the user wants: the command line over the configuration file over the defaults, and
//! what was asked of the running scheduler since.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};
use log::warn;

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
    /// The knobs, with a ceiling that the machine can have now,
    pub args: PolicyArgs,
    /// and as they were asked for.
    asked: PolicyArgs,
    pub table: Table,
    pub rules: Rules,
    pub hints: Hints,
    /// Where OpenMetrics are to be served.
    pub metrics: Option<SocketAddr>,
    /// The configuration file's text as it was read last, taken or not.
    pub seen_config: Option<String>,
    /// The file that was taken had something in it.
    pub has_config: bool,
    /// A sentence for each thing that this machine cannot give now; the rest is in force.
    pub lacks: Vec<String>,
    /// That of them which is about the ceiling.
    ceiling_lack: Option<String>,
    /// The mode that is in force, or is to be.
    pub mode: Mode,
}

impl Desired {
    /// Reads the configuration file, and checks it as a whole. What is right in itself, but
    /// cannot be had on this machine now, is left out: an extra does not keep the scheduler
    /// from running. Fails with a sentence.
    pub fn new(cli: &Cli, ranks: &Ranks) -> Result<Self> {
        // First: if it changes in between it is read once more.
        let seen_config = config::text(cli.config.as_deref());
        let file = ConfigFile::read(cli.config.as_deref())?;
        file.policy(ranks)?;
        let has_config = file.has_contents();
        let mut wanted = file.config;
        wanted.hints.idle_latency_us = cli.idle_latency_us.or(wanted.hints.idle_latency_us);
        wanted.hints.irqs = cli.irqs.or(wanted.hints.irqs);
        let mut lacks = wanted.hints.lacks(&hints::root(), Path::new(record::HINTS))?;
        let asked = cli.policy.or(&wanted.policy);
        let (args, lack) = asked.within(ranks.nr_cores());
        lacks.extend(lack.clone());
        let named = cli.mode.as_deref().map(str::parse).transpose()?;
        let choice = named.or(wanted.mode).unwrap_or(Choice::Fixed(Mode::Packing));
        let mode = match choice {
            Choice::Fixed(mode) => mode,
            // Until there is evidence.
            Choice::Auto => Mode::Packing,
        };
        let desired = Desired {
            choice,
            args,
            asked,
            table: wanted.workloads,
            rules: wanted.auto,
            hints: wanted.hints,
            metrics: cli.metrics.or(wanted.metrics),
            seen_config,
            has_config,
            lacks,
            ceiling_lack: lack,
            mode,
        };
        desired.policy(ranks)?;
        Ok(desired)
    }

    /// Checks what the command line itself asks for against the machine: whoever starts it by
    /// hand is there to mend it. Fails with a sentence.
    pub fn check_given(cli: &Cli, ranks: &Ranks) -> Result<()> {
        let given =
            Hints { idle_latency_us: cli.idle_latency_us, irqs: cli.irqs, ..Hints::default() };
        let lacks = given.lacks(&hints::root(), Path::new(record::HINTS))?;
        if let Some(lack) = lacks.into_iter().next() {
            bail!(lack);
        }
        let ceiling = PolicyArgs { max_cores: cli.policy.max_cores, ..PolicyArgs::default() };
        Policy::of(Mode::Packing).with(Mode::Packing, &ceiling).checked(ranks)?;
        Ok(())
    }

    /// Has the ceiling be one that this machine can have, whose CPUs may be others by now.
    pub fn fit(&mut self, ranks: &Ranks) {
        self.lacks.retain(|lack| Some(lack) != self.ceiling_lack.as_ref());
        (self.args, self.ceiling_lack) = self.asked.within(ranks.nr_cores());
        self.lacks.extend(self.ceiling_lack.clone());
    }

    /// These knobs are asked for too; the machine can have them.
    pub fn ask(&mut self, args: &PolicyArgs) {
        self.args = args.or(&self.args);
        self.asked = args.or(&self.asked);
    }

    /// Warns of what cannot be had now, but for what was said `before`.
    pub fn warn_of_lacks(&self, before: &[String]) {
        let news = self.lacks.iter().filter(|lack| !before.contains(lack));
        news.for_each(|lack| warn!("{lack}"));
    }

    /// Why a file that has changed, and that nobody has asked to be read, is not to be
    /// obeyed: that all of it is gone is more likely a mistake than a request for the defaults.
    pub fn loss(&self, cli: &Cli) -> Option<String> {
        config::loss(cli.config.as_deref()).filter(|_| self.has_config)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::machine::topology::tests::flat;
    use crate::settings::policy::MaxCores;

    /// A configuration file, gone at the end; and a command line that names it.
    pub struct Named {
        path: std::path::PathBuf,
        cli: Cli,
    }

    impl Named {
        pub fn new(name: &str, text: &str) -> Self {
            let file = format!("powerpack-desired-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(file);
            fs::write(&path, text).unwrap();
            let cli = Cli::parse_from(["scx_powerpack", "--config", path.to_str().unwrap()]);
            Named { path, cli }
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.path);
        }
    }

    #[test]
    fn what_the_machine_has_not_is_left_out_unless_it_is_asked_for_by_hand() {
        let text = "mode = \"auto\"\n[policy]\nmax_cores = 9\nlatency_budget_ms = 7\n";
        let file = Named::new("lacks", text);
        let ranks = flat(4, 1);
        let mut desired = Desired::new(&file.cli, &ranks).unwrap();
        Desired::check_given(&file.cli, &ranks).unwrap();
        assert_eq!(desired.args.max_cores, Some(MaxCores::Cores(4)), "as auto takes it");
        assert_eq!(desired.args.latency_budget_ms, Some(7), "the rest");
        assert!(desired.lacks[0].starts_with("max_cores 9 is more"), "{:?}", desired.lacks);
        // A core has gone while it was loaded.
        desired.fit(&flat(3, 1));
        assert_eq!(desired.policy(&flat(3, 1)).unwrap().max_cores, Some(3));
        assert_eq!(desired.lacks.len(), 1, "of the four cores is no longer said");
        // All that are asked for have come.
        desired.fit(&flat(9, 1));
        assert_eq!(desired.policy(&flat(9, 1)).unwrap().max_cores, Some(9));
        assert!(desired.lacks.is_empty(), "{:?}", desired.lacks);
        desired.ask(&PolicyArgs { max_cores: Some(MaxCores::Cores(2)), ..PolicyArgs::default() });
        desired.fit(&flat(4, 1));
        assert_eq!(desired.args.max_cores, Some(MaxCores::Cores(2)));
        let config = file.path.to_str().unwrap();
        let cli = Cli::parse_from(["scx_powerpack", "--config", config, "--max-cores", "9"]);
        let err = Desired::check_given(&cli, &ranks).unwrap_err().to_string();
        assert!(err.starts_with("--max-cores 9 is out of range"), "{err}");
        // At a reload it is not in the way of what the file says.
        assert_eq!(Desired::new(&cli, &ranks).unwrap().policy(&ranks).unwrap().max_cores, Some(4));
        fs::write(&file.path, "[policy]\nmax_cores = 0\n").unwrap();
        assert!(Desired::new(&file.cli, &ranks).is_err(), "wrong in itself");
    }

    #[test]
    fn a_file_that_loses_its_contents_is_a_mistake() {
        let file = Named::new("loss", "mode = \"spread\"\n");
        let desired = Desired::new(&file.cli, &flat(4, 1)).unwrap();
        assert_eq!(desired.loss(&file.cli), None);
        fs::write(&file.path, "mode = \"balance\"\n").unwrap();
        assert_eq!(desired.loss(&file.cli), None, "another file is none");
        fs::write(&file.path, " \n").unwrap();
        let said = desired.loss(&file.cli).unwrap();
        assert!(said.contains(" is empty, ") && said.contains("'scx_powerpack reload'"), "{said}");
        let emptied = Desired::new(&file.cli, &flat(4, 1)).unwrap();
        assert_eq!(emptied.mode, Mode::Packing, "who asks for a reload has it");
        fs::remove_file(&file.path).unwrap();
        let said = desired.loss(&file.cli).unwrap();
        assert!(said.ends_with(" is gone, as by mistake: put it back"), "{said}");
        assert_eq!(emptied.loss(&file.cli), None, "nothing is lost of nothing");
    }
}
