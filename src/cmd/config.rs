//! `scx_powerpack config`: what the configuration file comes to.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use anyhow::Result;

use crate::cli::ConfigCommand;
use crate::control::peer::holder;
use crate::machine::topology::Ranks;
use crate::settings::config::ConfigFile;

/// `scx_powerpack config ..`.
pub fn run(command: &ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check { config } => {
            let file = ConfigFile::read(config.as_deref())?;
            let ranks = Ranks::read()?;
            file.policy(&ranks)?;
            let mut lacks = file.lacks(&ranks)?;
            lacks.extend(file.config.metrics.and_then(|address| metrics_lack(address, holder())));
            println!("{}", file.verdict());
            lacks.iter().for_each(|sentence| println!("{}", lack(sentence)));
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

/// The line on something of the configuration that the machine cannot have now.
pub fn lack(sentence: &str) -> String {
    format!("not available on this machine now: {sentence}")
}

/// Why metrics cannot be served on `address` now, where the process `running` is a scheduler
/// of ours.
fn metrics_lack(address: SocketAddr, running: Option<i32>) -> Option<String> {
    let err = TcpListener::bind(address).err()?;
    match err.kind() {
        // By the scheduler itself, most likely.
        ErrorKind::AddrInUse if running.is_some() => None,
        // Whoever checks need not be root.
        ErrorKind::PermissionDenied => None,
        _ => Some(format!("cannot serve metrics on {address}: {err}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_metrics_is_tried() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = held.local_addr().unwrap();
        let said = metrics_lack(taken, None).unwrap();
        assert!(said.starts_with(&format!("cannot serve metrics on {taken}: ")), "{said}");
        assert_eq!(metrics_lack(taken, Some(1)), None, "taken by the scheduler itself");
        drop(held);
        assert_eq!(metrics_lack(taken, None), None);
        // For documentation: no machine's own.
        let foreign = metrics_lack("192.0.2.1:9994".parse().unwrap(), Some(1)).unwrap();
        assert!(foreign.contains("192.0.2.1:9994"), "{foreign}");
    }
}
