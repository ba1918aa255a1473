//! What figures must be, and whether they are.

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cells::{Cell, Table};
use super::metric::Metric;
use super::results::{Results, of_metric};
use super::summary::{SIGNIFICANCE, Summary};
use crate::statistics::{std_dev, student_bound};

/// What a figure of a load must be.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub figure: Metric,
    /// The systems of which it must be so.
    pub of: Vec<String>,
    /// One of these, in the figure's unit,
    pub at_most: Option<f64>,
    pub at_least: Option<f64>,
    /// or in what this system has,
    pub times: Option<String>,
    /// or in what the same system has of this load.
    pub times_load: Option<String>,
}

/// What is to be said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Met,
    /// It is closer than the noise.
    Undecided,
    Missed,
}

impl Limit {
    /// Fails with a sentence if it cannot be judged.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.of.is_empty(), "a limit is `of` one or more systems");
        ensure!(
            self.at_most.is_some() != self.at_least.is_some(),
            "a limit is either at_most or at_least"
        );
        ensure!(
            self.times.is_none() || self.times_load.is_none(),
            "a limit is in what another system has, or in what another load has"
        );
        Ok(())
    }

    /// "packing at most 0.1", "packing, spread at most 1.1 x eevdf", ".. 1.05 x its pipe".
    pub fn text(&self) -> String {
        let times = match (&self.times, &self.times_load) {
            (Some(system), _) => format!(" x {system}"),
            (_, Some(load)) => format!(" x its {load}"),
            _ => String::new(),
        };
        let which = if self.at_most.is_some() { "at most" } else { "at least" };
        format!("{} {which} {}{times}", self.of.join(", "), self.bound())
    }

    /// The worst of its systems, and what each has; `None` if one was not measured.
    pub fn judge(&self, results: &Results, load: &str) -> Option<(Verdict, String)> {
        let judged: Option<Vec<(Verdict, String)>> =
            self.of.iter().map(|system| self.judge_one(results, load, system)).collect();
        let judged = judged?;
        let words: Vec<&str> = judged.iter().map(|(_, word)| word.as_str()).collect();
        let words = words.join(", ") + &self.others(results, load);
        Some((judged.iter().map(|(verdict, _)| *verdict).max()?, words))
    }

    /// What the systems have of which it need not be so, where no table says it: multiples of
    /// another load.
    fn others(&self, results: &Results, load: &str) -> String {
        let systems = results.systems.iter().map(|system| &system.name);
        let others = systems.filter(|name| self.times_load.is_some() && !self.of.contains(name));
        let words = others.filter_map(|name| Some(self.judge_one(results, load, name)?.1));
        let words: Vec<String> = words.collect();
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }

    fn bound(&self) -> f64 {
        self.at_most.or(self.at_least).unwrap_or_default()
    }

    /// A run that failed is not met: what it would have shown is not known.
    fn judge_one(&self, results: &Results, load: &str, system: &str) -> Option<(Verdict, String)> {
        let failed = results.nr_failed(load, system);
        let of = failed + results.of(load, system).count();
        match self.judge_measured(results, load, system) {
            judged if failed == 0 => judged,
            None => Some((Verdict::Undecided, format!("{system} ({failed} of {of} failed)"))),
            Some((verdict, word)) => {
                Some((verdict.max(Verdict::Undecided), format!("{word} ({failed} of {of} failed)")))
            }
        }
    }

    fn judge_measured(
        &self,
        results: &Results,
        load: &str,
        system: &str,
    ) -> Option<(Verdict, String)> {
        let values = results.values(load, system, self.figure);
        let median = Summary::of(values.clone())?.median;
        let (other_load, other) = match (&self.times_load, &self.times) {
            (Some(other_load), _) => (other_load.as_str(), system),
            (_, Some(other)) => (load, other.as_str()),
            _ => {
                // A promise to users has no noise.
                let word = format!("{system} {}", self.figure.format(median));
                return Some((self.verdict(self.bound() - median, 0.0), word));
            }
        };
        let others = results.values(other_load, other, self.figure);
        let base = Summary::of(others.clone())?.median;
        let (ratio, margin, noise) =
            match results.paired_ratios(load, system, other, of_metric(self.figure)) {
                Some(ratios) => {
                    let ratio = Summary::of(ratios.clone())?.median;
                    (ratio, self.bound() - ratio, noise(&[(&ratios, 1.0)]))
                }
                None => {
                    let noise = noise(&[(&values, 1.0), (&others, self.bound())]);
                    (median / base, self.bound() * base - median, noise)
                }
            };
        // Of nothing there are no multiples.
        let word = if base == 0.0 { self.figure.format(median) } else { format!("{ratio:.2} x") };
        Some((self.verdict(margin, noise), format!("{system} {word}")))
    }

    /// `margin` is how much the bound is above what was measured.
    fn verdict(&self, margin: f64, noise: f64) -> Verdict {
        let margin = if self.at_most.is_some() { margin } else { -margin };
        match margin {
            _ if margin.abs() < noise => Verdict::Undecided,
            _ if margin >= 0.0 => Verdict::Met,
            _ => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// As a page has it.
    fn name(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Undecided => "undecided",
            Verdict::Missed => "**missed**",
        }
    }

    /// As a [`Cell`] has it.
    fn class(self) -> &'static str {
        match self {
            Verdict::Met => "better",
            Verdict::Undecided => "unknown",
            Verdict::Missed => "worse",
        }
    }
}

/// A row for each limit; `None` if there are none.
pub fn table(results: &Results) -> Option<Table> {
    let mut rows = vec![];
    for load in &results.loads {
        for limit in &load.limits {
            let judged = limit.judge(results, &load.name);
            let (text, verdict) = match judged {
                None => ("not measured".to_owned(), ""),
                Some((verdict, words)) => (format!("{}: {words}", verdict.name()), verdict.class()),
            };
            let verdict = Cell { text, verdict, ..Cell::default() };
            let names = [&*load.name, limit.figure.title(), &limit.text()].map(Cell::of);
            rows.push(names.into_iter().chain([verdict]).collect());
        }
    }
    let heading = ["", "", "must be", ""].map(str::to_owned).to_vec();
    let (title, about) = ("What must hold".to_owned(), String::new());
    let table = Table { title, about, names: heading.len(), heading, rows, notes: vec![] };
    (!table.rows.is_empty()).then_some(table)
}

/// What chance makes of a sum of medians, each with its factor, in all but one of twenty cases: Student's t, with
/// Welch and Satterthwaite's degrees of freedom. Of one round it is not known, in virtual time neither: what is
/// repeated there are instructions, not where a scheduler's history has led it.
fn noise(parts: &[(&[f64], f64)]) -> f64 {
    if parts.iter().any(|(values, _)| values.len() < 2) {
        return f64::INFINITY;
    }
    let variances = || {
        parts.iter().map(|(values, factor)| ((factor * median_error(values)).powi(2), values.len()))
    };
    let sum: f64 = variances().map(|(variance, _)| variance).sum();
    if sum == 0.0 {
        return 0.0;
    }
    let freedom = sum.powi(2)
        / variances().map(|(variance, len)| variance.powi(2) / (len - 1) as f64).sum::<f64>();
    student_bound(SIGNIFICANCE, freedom) * sum.sqrt()
}

/// The standard error of the median.
pub fn median_error(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { 1.25 * std_dev(values) / (values.len() as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cells::tests::benchmark;
    use crate::bench::results::Run;

    /// A benchmark of one load whose systems, in the order of the runs, had these figures.
    fn results(pairs: bool, runs: &[(&str, f64)]) -> Results {
        let run = |&(system, value): &(&str, f64)| Run {
            load: "light".into(),
            system: system.into(),
            figures: [(Metric::ElapsedS, value)].into(),
            ..Run::default()
        };
        Results { pairs, runs: runs.iter().map(run).collect(), ..benchmark(1.0) }
    }

    fn of<'a>(system: &'a str, values: &[f64]) -> Vec<(&'a str, f64)> {
        values.iter().map(|&value| (system, value)).collect()
    }

    fn limit(text: &str) -> Limit {
        toml::from_str(&format!("figure = \"elapsed_s\"\n{text}")).unwrap()
    }

    fn said(limit: &Limit, results: &Results) -> String {
        let judged = limit.judge(results, "light");
        judged.map_or("not measured".into(), |(verdict, words)| {
            format!("{}: {words}", verdict.name())
        })
    }

    #[test]
    fn the_median_counts_not_the_best() {
        let limit = limit("of = ['packing']\nat_most = 0.1");
        assert_eq!(limit.text(), "packing at most 0.1");
        let runs = of("packing", &[0.0, 0.2, 0.3]);
        assert_eq!(said(&limit, &results(false, &runs)), "**missed**: packing 0.20");
        assert_eq!(said(&limit, &results(false, &runs[..1])), "met: packing 0.00");
    }

    #[test]
    fn of_another_load_the_other_systems_are_said_too() {
        let limit = limit("of = ['packing']\nat_most = 1.05\ntimes_load = 'alone'");
        assert_eq!(limit.text(), "packing at most 1.05 x its alone");
        let runs = [("eevdf", 120.0), ("packing", 106.0), ("eevdf", 100.0), ("packing", 100.0)];
        let mut results = results(false, &runs.map(|run| [run; 2]).concat());
        assert_eq!(said(&limit, &results), "not measured");
        results.runs[4..].iter_mut().for_each(|run| run.load = "alone".into());
        assert_eq!(said(&limit, &results), "**missed**: packing 1.06 x (eevdf 1.20 x)");
        let both = Limit { times: Some("eevdf".into()), ..limit };
        assert!(both.check().unwrap_err().to_string().contains("or in what another load has"));
    }

    #[test]
    fn all_that_it_is_of_must_hold() {
        let limit = limit("of = ['packing', 'spread']\nat_most = 1.1\ntimes = 'eevdf'");
        assert_eq!(limit.text(), "packing, spread at most 1.1 x eevdf");
        let mut runs = [of("eevdf", &[100.0; 2]), of("packing", &[90.0; 2])].concat();
        assert_eq!(said(&limit, &results(false, &runs)), "not measured");
        runs.extend(of("spread", &[111.0; 2]));
        let missed = "**missed**: packing 0.90 x, spread 1.11 x";
        assert_eq!(said(&limit, &results(false, &runs)), missed);
        let without_eevdf = results(false, &runs[2..]);
        assert_eq!(said(&limit, &without_eevdf), "not measured");
    }

    #[test]
    fn in_pairs_a_run_is_compared_with_its_neighbours() {
        let work = [("eevdf", 100.0), ("packing", 99.0), ("eevdf", 120.0), ("spread", 60.0)];
        let results = results(true, &[&work[..], &[("eevdf", 120.0)]].concat());
        let ratios =
            |system| results.paired_ratios("light", system, "eevdf", of_metric(Metric::ElapsedS));
        assert_eq!(ratios("packing"), Some(vec![0.9]));
        assert_eq!(ratios("spread"), Some(vec![0.5]));
        let limit = limit("of = ['packing']\nat_least = 0.9\ntimes = 'eevdf'");
        assert_eq!(said(&limit, &results), "undecided: packing 0.90 x", "one pair");
    }

    #[test]
    fn noise_is_not_taken_for_a_verdict() {
        let limit = limit("of = ['packing']\nat_least = 0.99\ntimes = 'eevdf'");
        let in_pairs = |ratios: &[f64]| {
            let pairs = ratios.iter().flat_map(|&ratio| [("packing", ratio), ("eevdf", 1.0)]);
            results(true, &[("eevdf", 1.0)].into_iter().chain(pairs).collect::<Vec<_>>())
        };
        let verdict = |ratios: &[f64]| limit.judge(&in_pairs(ratios), "light").unwrap().0;
        assert_eq!(verdict(&[0.90, 0.995, 1.10]), Verdict::Undecided);
        assert_eq!(verdict(&[0.970, 0.971, 0.972]), Verdict::Missed);
        // Two standard errors; of three rounds 5 % are beyond 4.3.
        assert_eq!(verdict(&[0.970, 0.977, 0.988]), Verdict::Undecided);
    }

    #[test]
    fn one_round_decides_nothing_that_is_relative() {
        let limit = limit("of = ['packing']\nat_most = 1.1\ntimes = 'eevdf'");
        let one = results(false, &[("eevdf", 100.0), ("packing", 300.0)]);
        assert_eq!(said(&limit, &one), "undecided: packing 3.00 x");
    }

    #[test]
    fn a_difference_within_the_noise_is_no_miss() {
        let limit = limit("of = ['spread']\nat_most = 1\ntimes = 'eevdf'");
        let with = |values: &[f64]| {
            results(false, &[of("eevdf", &[14.4, 15.0, 15.8]), of("spread", values)].concat())
        };
        assert_eq!(said(&limit, &with(&[14.7, 15.1, 15.5])), "undecided: spread 1.01 x");
        assert_eq!(said(&limit, &with(&[17.9, 18.0, 18.1])), "**missed**: spread 1.20 x");
    }

    #[test]
    fn a_failed_run_leaves_it_undecided() {
        let limit = limit("of = ['packing']\nat_most = 1");
        let mut results = results(false, &of("packing", &[0.5, 0.5, 0.5]));
        results.runs[1].failed = Some("it broke".into());
        assert_eq!(said(&limit, &results), "undecided: packing 0.50 (1 of 3 failed)");
        results.runs.iter_mut().for_each(|run| run.failed = Some("it broke".into()));
        assert_eq!(said(&limit, &results), "undecided: packing (3 of 3 failed)");
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        assert!(limit("of = []\nat_most = 1").check().is_err());
        assert!(limit("of = ['packing']\nat_most = 1\nat_least = 1").check().is_err());
        assert!(limit("of = ['packing']\ntimes = 'eevdf'").check().is_err());
        assert!(limit("of = ['packing']\nat_least = 1").check().is_ok());
    }
}
