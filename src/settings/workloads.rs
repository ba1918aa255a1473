//! The table of workloads: cgroups that the user wants treated differently from what
//! the mode says.

use glob::{MatchOptions, Pattern};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::bpf_intf as intf;

/// How a workload is treated, in every mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As the mode says.
    None,
    /// On few CPUs.
    Pack,
    /// On any idle CPU.
    Spread,
    /// On the efficient cores alone.
    Efficient,
}

impl Treatment {
    /// `enum pp_workload`.
    pub fn to_bpf(self) -> u32 {
        match self {
            Treatment::None => intf::pp_workload_PP_WORKLOAD_NONE,
            Treatment::Pack => intf::pp_workload_PP_WORKLOAD_PACK,
            Treatment::Spread => intf::pp_workload_PP_WORKLOAD_SPREAD,
            Treatment::Efficient => intf::pp_workload_PP_WORKLOAD_EFFICIENT,
        }
    }
}

/// Patterns of cgroups by treatment. A name matches a cgroup of that name wherever it
/// is, one with a `/` a path from the root on; `*` ends at a `/`, `**` does not.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Table {
    #[serde(deserialize_with = "patterns", serialize_with = "texts")]
    pack: Vec<Pattern>,
    #[serde(deserialize_with = "patterns", serialize_with = "texts")]
    spread: Vec<Pattern>,
    #[serde(deserialize_with = "patterns", serialize_with = "texts")]
    efficient: Vec<Pattern>,
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse = |text: String| {
        Pattern::new(text.trim_start_matches('/'))
            .map_err(|err| de::Error::custom(format!("'{text}' is no pattern: {}", err.msg)))
    };
    texts.into_iter().map(parse).collect()
}

fn texts<S: Serializer>(patterns: &[Pattern], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(patterns.iter().map(Pattern::as_str))
}

const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

impl Table {
    pub fn is_empty(&self) -> bool {
        self.pack.is_empty() && self.spread.is_empty() && self.efficient.is_empty()
    }

    /// How the cgroup at `path`, from the root on, is treated. The strictest treatment
    /// wins if several patterns match.
    pub fn treatment(&self, path: &str) -> Treatment {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lists = [
            (&self.efficient, Treatment::Efficient),
            (&self.pack, Treatment::Pack),
            (&self.spread, Treatment::Spread),
        ];
        let matches = |pattern: &Pattern| {
            let text = if pattern.as_str().contains('/') { path } else { name };
            pattern.matches_with(text, MATCH)
        };
        lists
            .into_iter()
            .find(|(patterns, _)| patterns.iter().any(matches))
            .map_or(Treatment::None, |(_, treatment)| treatment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_name_matches_anywhere_and_a_path_from_the_root_on() {
        let table =
            table("efficient = ['backup.service', '/a.slice/*']\nspread = ['user-*.slice']");
        for (path, treatment) in [
            ("system.slice/backup.service", Treatment::Efficient),
            ("backup.service", Treatment::Efficient),
            ("a.slice/x", Treatment::Efficient),
            ("a.slice/x/y", Treatment::None),
            ("b/a.slice/x", Treatment::None),
            ("user.slice/user-1000.slice", Treatment::Spread),
            ("user.slice", Treatment::None),
        ] {
            assert_eq!(table.treatment(path), treatment, "{path}");
        }
    }

    #[test]
    fn the_strictest_treatment_wins() {
        let table = table("efficient = ['a*']\npack = ['ab*']\nspread = ['*']");
        let of = |path| table.treatment(path);
        assert_eq!([of("abc"), of("b")], [Treatment::Efficient, Treatment::Spread]);
        assert!(Table::default().is_empty() && !table.is_empty());
    }
}
