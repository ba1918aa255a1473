//! How one of our modes is named with its knobs where systems are listed to be compared.

use anyhow::{Context, Result};

use super::mode::Choice;
use super::policy::{MaxCores, Pack, PolicyArgs};

/// Packs small tasks alone, as `--pack small`.
const SMALL: &str = ":small";

/// A mode, or `auto`, with its knobs.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedMode {
    pub choice: Choice,
    pub knobs: PolicyArgs,
}

impl NamedMode {
    /// `MODE[:small][@CORES][/FILL_PCT/BUDGET_MS]`; `None` if it begins with no mode of ours, and
    /// so names something else. Fails with a sentence if a knob has no such value.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let end = text.find([':', '@', '/']).unwrap_or(text.len());
        let (mode, mut rest) = text.split_at(end);
        let Ok(choice) = mode.parse() else { return Ok(None) };
        let mut knobs = PolicyArgs::default();
        if let Some(after) = rest.strip_prefix(SMALL) {
            (knobs.pack, rest) = (Some(Pack::Small), after);
        }
        let (cores, fill_and_budget) = match rest.split_once('/') {
            Some((cores, after)) => (cores, Some(after)),
            None => (rest, None),
        };
        let wrong = || format!("'{text}' is not MODE[{SMALL}][@CORES][/FILL_PCT/BUDGET_MS]");
        if !cores.is_empty() {
            knobs.max_cores = Some(cores.strip_prefix('@').with_context(wrong)?.parse()?);
        }
        if let Some(text) = fill_and_budget {
            let (fill_pct, budget_ms) = text.split_once('/').with_context(wrong)?;
            knobs.fill_pct = Some(fill_pct.parse().with_context(wrong)?);
            knobs.latency_budget_ms = Some(budget_ms.parse().with_context(wrong)?);
        }
        Ok(Some(NamedMode { choice, knobs }))
    }

    /// The options of the command line that ask for it.
    pub fn options(&self) -> Vec<String> {
        let knobs = &self.knobs;
        let max_cores = knobs.max_cores.map(|cores| match cores {
            MaxCores::All => "all".to_owned(),
            MaxCores::Cores(nr) => nr.to_string(),
        });
        let pack = knobs.pack.map(|pack| match pack {
            Pack::All => "all".to_owned(),
            Pack::Small => "small".to_owned(),
        });
        let options = [
            ("--mode", Some(self.choice.to_string())),
            ("--pack", pack),
            ("--max-cores", max_cores),
            ("--fill-pct", knobs.fill_pct.map(|pct| pct.to_string())),
            ("--latency-budget-ms", knobs.latency_budget_ms.map(|ms| ms.to_string())),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_asks_for_what_the_options_do() {
        for (name, options) in [
            ("spread", "--mode spread"),
            ("auto", "--mode auto"),
            ("packing:small@3", "--mode packing --pack small --max-cores 3"),
            ("packing@all", "--mode packing --max-cores all"),
            ("packing/60/10", "--mode packing --fill-pct 60 --latency-budget-ms 10"),
            ("balance@2/70/5", "--mode balance --max-cores 2 --fill-pct 70 --latency-budget-ms 5"),
        ] {
            let named = NamedMode::parse(name).unwrap().unwrap();
            assert_eq!(named.options().join(" "), options, "{name}");
        }
    }

    #[test]
    fn what_is_no_mode_is_left_to_others_and_mistakes_are_reported() {
        for other in ["eevdf", "3.9@2", "/usr/bin/scx_lavd", "scx_lavd --powersave", ""] {
            assert_eq!(NamedMode::parse(other).unwrap(), None, "{other}");
        }
        for bad in ["packing@x", "packing:large", "packing/60", "packing/a/5", "spread@2:small"] {
            assert!(NamedMode::parse(bad).is_err(), "{bad}");
        }
    }
}
