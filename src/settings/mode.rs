//! Modes by their names, and whether the user or the agent chooses one.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::bpf_intf as intf;

/// What the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The idlest CPU: idle cores before SMT siblings, near in cache.
    Spread,
    /// Whole LLCs, the fewest whose capacity carries the load, spread inside them.
    Balance,
    /// The fewest CPUs whose capacity carries the load.
    Packing,
    /// What spends the least energy: the fewest CPUs for short runs, whole groups for long ones.
    Energy,
}

impl Mode {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Mode; 4] = [Mode::Spread, Mode::Balance, Mode::Packing, Mode::Energy];

    /// The mode's name, the same everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Spread => "spread",
            Mode::Balance => "balance",
            Mode::Packing => "packing",
            Mode::Energy => "energy",
        }
    }

    /// `enum pp_mode`.
    pub fn to_bpf(self) -> intf::pp_mode {
        match self {
            Mode::Spread => intf::pp_mode_PP_MODE_SPREAD,
            Mode::Balance => intf::pp_mode_PP_MODE_BALANCE,
            Mode::Packing => intf::pp_mode_PP_MODE_PACKING,
            Mode::Energy => intf::pp_mode_PP_MODE_ENERGY,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    /// Fails with a sentence that lists the modes.
    fn from_str(text: &str) -> Result<Self> {
        match Mode::ALL.into_iter().find(|mode| mode.name() == text) {
            Some(mode) => Ok(mode),
            None => bail!(
                "unknown mode '{text}': choose one of {}",
                Mode::ALL.map(Mode::name).join(", ")
            ),
        }
    }
}

/// A mode, or that the agent is to choose one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By power profile, power source and load: see auto.rs.
    Auto,
    Fixed(Mode),
}

const AUTO: &str = "auto";

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => f.write_str(AUTO),
            Choice::Fixed(mode) => mode.fmt(f),
        }
    }
}

impl FromStr for Choice {
    type Err = anyhow::Error;

    /// Fails with a sentence that lists what there is.
    fn from_str(text: &str) -> Result<Self> {
        if text == AUTO {
            return Ok(Choice::Auto);
        }
        text.parse().map(Choice::Fixed).map_err(|err| anyhow!("{err}, or {AUTO}"))
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_parse_by_the_name_they_print() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse::<Mode>().unwrap(), mode);
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
        }
        let err = "turbo".parse::<Mode>().unwrap_err().to_string();
        assert!(err.contains("spread, balance, packing"), "{err}");
    }
}
