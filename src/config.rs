//! The configuration file: what the command line can say of the policy, and the table
//! of workloads.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::policy::{Choice, PolicyArgs};
use crate::workloads::Table;

/// Read if it is there and `--config` names no other.
pub const DEFAULT_PATH: &str = "/etc/scx_powerpack/config.toml";

/// The file's contents; everything may be left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A mode's name, or `auto`.
    pub mode: Option<Choice>,
    #[serde(default)]
    pub policy: PolicyArgs,
    /// Which cgroups are treated differently from what the mode says.
    #[serde(default)]
    pub workloads: Table,
}

impl Config {
    /// Reads `path`, or the default file if there is one. Fails with a sentence that
    /// names the file, the line and the field.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let file = path.unwrap_or(Path::new(DEFAULT_PATH));
        let text = match fs::read_to_string(file) {
            Err(err) if err.kind() == ErrorKind::NotFound && path.is_none() => String::new(),
            text => text.with_context(|| format!("cannot read {}", file.display()))?,
        };
        Self::parse(&text).with_context(|| format!("in {}", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        parse_toml(text)
    }
}

/// Parses a file of the user's. Fails with a sentence that names the line and the field.
pub fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|err| {
        let line = err.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow::anyhow!("line {line}: {}", err.message().replace('\n', " "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{MaxCores, Mode, Pack};

    #[test]
    fn the_file_that_is_installed_is_read() {
        let text = include_str!("../packaging/config.toml");
        let config = Config::parse(text).unwrap();
        assert_eq!(config.mode, Some(Choice::Fixed(Mode::Packing)));
        // All that is commented out there is right too.
        let text: String = text
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.policy.max_cores, Some(MaxCores::Cores(4)));
        assert_eq!(config.policy.pack, Some(Pack::All));
        assert!(!config.workloads.is_empty());
    }

    #[test]
    fn a_mistake_is_named_by_line_and_field() {
        for (text, said) in [
            ("mode = \"turbo\"\n", "line 1: unknown mode 'turbo'"),
            ("mode = \"packing\"\n[policy]\nfill = 80\n", "line 3: unknown field `fill`"),
            ("[workloads]\nefficient = [\"[\"]\n", "line 2: '[' is no pattern"),
            ("mode = \n", "line 1: "),
        ] {
            let text = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(text.starts_with(said) && text.lines().count() == 1, "{text}");
        }
        assert_eq!(
            Config::parse("mode = \"spread\"").unwrap().mode,
            Some(Choice::Fixed(Mode::Spread))
        );
    }

    #[test]
    fn only_a_file_that_was_named_must_be_there() {
        let missing = Path::new("/nonexistent/config.toml");
        let text = format!("{:#}", Config::read(Some(missing)).unwrap_err());
        assert!(text.contains("cannot read /nonexistent/config.toml"), "{text}");
    }
}
