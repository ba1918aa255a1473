//! `scx_powerpack config`: what the configuration file comes to.

use std::path::Path;

use anyhow::Result;

use crate::cli::ConfigCommand;
use crate::machine::record;
use crate::machine::topology::Ranks;
use crate::settings::config::ConfigFile;
use crate::settings::hints;

/// `scx_powerpack config ..`.
pub fn run(command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check { config } => {
            let file = ConfigFile::read(config.as_deref())?;
            file.policy(&Ranks::read()?)?;
            file.config.hints.check(&hints::root(), Path::new(record::HINTS))?;
            println!("{} is right", file.path.display());
        }
        ConfigCommand::Show { config } => {
            let file = ConfigFile::read(config.as_deref())?;
            let policy = file.policy(&Ranks::read()?)?;
            println!("# What {} and the defaults come to.", file.path.display());
            print!("{}", toml::to_string(&file.config.completed(policy))?);
        }
    }
    Ok(())
}
