//! `scx_powerpack config`: what the configuration file comes to.

use anyhow::Result;

use crate::cli::ConfigCommand;
use crate::machine::topology::Ranks;
use crate::settings::config::ConfigFile;

/// `scx_powerpack config ..`.
pub fn run(command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check { config } => {
            let file = ConfigFile::read(config.as_deref())?;
            let ranks = Ranks::read()?;
            file.policy(&ranks)?;
            let lacks = file.lacks(&ranks)?;
            println!("{} is right", file.path.display());
            lacks.iter().for_each(|lack| println!("but cannot all be had here now: {lack}"));
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
