//! Two benchmarks, of two versions or kernels: what has become worse.

use std::fmt::Write;

use super::metric::{Better, Metric};
use super::results::Results;
use super::summary::{Difference, Summary};

/// What was found.
pub struct Comparison {
    pub text: String,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    NoneWorse,
    Worse,
    /// There was nothing to compare.
    NothingCommon,
}

/// Compares what both have: a figure is worse if it is so by more than `tolerance_pct`, and
/// not within the noise.
pub fn compare(before: &Results, after: &Results, tolerance_pct: f64) -> Comparison {
    let mut text = String::new();
    let (mut compared, mut worse, mut better) = (0, 0, 0);
    for remark in differences(before, after) {
        let _ = writeln!(text, "{remark}");
    }
    for (what, metric, was, is) in in_common(before, after) {
        compared += 1;
        let Some(is_better) = judge(metric, &was, &is, tolerance_pct) else { continue };
        let word = if is_better { "better" } else { "worse" };
        *(if is_better { &mut better } else { &mut worse }) += 1;
        let (title, was, is) = (metric.title(), was.show(metric), is.show(metric));
        let _ = writeln!(text, "{word:<7} {what}: {title} {was} -> {is}");
    }
    for failure in failures(before, after) {
        worse += 1;
        let _ = writeln!(text, "worse   {failure}");
    }
    let _ = writeln!(
        text,
        "{compared} figures compared: {worse} worse, {better} better, by more than {tolerance_pct} % \
         and the noise"
    );
    let outcome = match (worse, compared) {
        (0, 0) => Outcome::NothingCommon,
        (0, _) => Outcome::NoneWorse,
        _ => Outcome::Worse,
    };
    if outcome == Outcome::NothingCommon {
        text += "nothing in common: compare benchmarks of one suite and one set of systems\n";
    }
    Comparison { text, outcome }
}

/// Loads that fail more often, or were measured before and are not any more, though both were to be: a sentence each.
/// Of a run that failed there are no figures to compare.
fn failures(before: &Results, after: &Results) -> Vec<String> {
    let mut failures = vec![];
    for load in &before.loads {
        for system in &before.systems {
            let known = after.loads.iter().any(|other| other.name == load.name)
                && after.systems.iter().any(|other| other.name == system.name);
            let [was, is] = [before, after].map(|all| all.nr_failed(&load.name, &system.name));
            let [had, has] = [before, after].map(|all| all.of(&load.name, &system.name).count());
            let what = format!("{} under {}", load.name, system.name);
            // Of as many runs: there may have been more of them.
            if known && is * (was + had) > was * (is + has) {
                failures.push(format!(
                    "{what}: failed runs {was} of {} -> {is} of {}",
                    was + had,
                    is + has
                ));
            } else if known && had > 0 && has == 0 {
                failures.push(format!("{what}: not measured any more"));
            }
        }
    }
    failures
}

/// A load under a system, and a figure of it before and after.
type Pair = (String, Metric, Summary, Summary);

/// The figures that both have and of which one way is better.
fn in_common(before: &Results, after: &Results) -> Vec<Pair> {
    let mut pairs = vec![];
    let of_other_meters = meters_differ(before, after).is_some();
    for load in &before.loads {
        for system in &before.systems {
            let of = |results: &Results, metric| {
                Summary::of(results.values(&load.name, &system.name, metric))
            };
            let judged = |metric: &Metric| {
                metric.better() != Better::Neither && !(of_other_meters && metric.is_of_power())
            };
            for metric in Metric::ALL.into_iter().filter(judged) {
                if let (Some(was), Some(is)) = (of(before, metric), of(after, metric)) {
                    pairs.push((format!("{} under {}", load.name, system.name), metric, was, is));
                }
            }
        }
    }
    pairs
}

/// What measured power in both, where it is known to differ: a package's counters do not say what a battery does.
fn meters_differ<'a>(before: &'a Results, after: &'a Results) -> Option<(&'a str, &'a str)> {
    let meters = before.power_meter.as_deref().zip(after.power_meter.as_deref());
    meters.filter(|(was, is)| was != is)
}

/// Whether it has become better; `None` if it is as good as it was.
fn judge(metric: Metric, was: &Summary, is: &Summary, tolerance_pct: f64) -> Option<bool> {
    let gap_pct = (is.median / was.median - 1.0).abs() * 100.0;
    if was.differs(is, metric) == Difference::Noise || gap_pct <= tolerance_pct {
        return None;
    }
    metric.is_better(is.median, was.median)
}

/// Why the two may not be comparable, a sentence each.
fn differences(before: &Results, after: &Results) -> Vec<String> {
    let mut remarks = vec![];
    let mut differ = |what: &str, was: &str, is: &str| {
        if was != is {
            remarks.push(format!("note: {what} differs: {was}, {is}"));
        }
    };
    differ("the machine", &before.machine.model, &after.machine.model);
    differ("the kernel", &before.machine.kernel, &after.machine.kernel);
    differ("the version", &before.version, &after.version);
    let [was, is] = [before, after].map(|results| results.additions_per_s.to_string());
    differ("what fixed work is measured in, additions/s,", &was, &is);
    if let Some((was, is)) = meters_differ(before, after) {
        differ("what measured power, so that it is not compared,", was, is);
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cells::tests::benchmark;

    #[test]
    fn what_is_worse_is_found() {
        let comparison = compare(&benchmark(100.0), &benchmark(80.0), 5.0);
        assert_eq!(comparison.outcome, Outcome::Worse, "{}", comparison.text);
        assert!(comparison.text.contains("worse   light under packing: records/s 100 ->"));
        let outcome = |value, pct| compare(&benchmark(100.0), &benchmark(value), pct).outcome;
        assert_eq!([98.0, 120.0, 100.0].map(|value| outcome(value, 5.0)), [Outcome::NoneWorse; 3]);
        assert_eq!(outcome(98.0, 1.0), Outcome::Worse);
    }

    #[test]
    fn a_run_that_fails_is_worse_than_any_figure() {
        let (before, mut after) = (benchmark(100.0), benchmark(100.0));
        after.runs[1].failed = Some("it broke".into());
        let one = compare(&before, &after, 5.0);
        assert_eq!(one.outcome, Outcome::Worse);
        let said = "worse   light under packing: failed runs 0 of 2 -> 1 of 2";
        assert!(one.text.contains(said), "{}", one.text);
        assert_eq!(compare(&after, &before, 5.0).outcome, Outcome::NoneWorse);
        after.runs.retain(|run| run.system != "packing");
        let gone = compare(&before, &after, 5.0);
        assert_eq!(gone.outcome, Outcome::Worse);
        assert!(gone.text.contains("packing: not measured any more"), "{}", gone.text);
    }

    #[test]
    fn power_of_two_meters_is_not_compared() {
        let measured = |power_w, meter: Option<&str>| {
            let mut results = benchmark(100.0);
            for run in &mut results.runs {
                run.figures
                    .extend([(Metric::PowerW, power_w), (Metric::RecordsPerJ, 1.0 / power_w)]);
            }
            results.power_meter = meter.map(str::to_owned);
            results
        };
        let rapl = measured(5.0, Some("RAPL"));
        let of = |after| compare(&rapl, &after, 5.0);
        assert_eq!(of(measured(9.0, Some("RAPL"))).outcome, Outcome::Worse);
        assert_eq!(of(measured(9.0, None)).outcome, Outcome::Worse, "of an older version");
        let other = of(measured(9.0, Some("the battery")));
        assert_eq!(other.outcome, Outcome::NoneWorse, "{}", other.text);
        assert!(other.text.contains("not compared, differs: RAPL, the battery"), "{}", other.text);
    }

    #[test]
    fn nothing_in_common_is_no_success() {
        let mut other = benchmark(100.0);
        other.systems.clear();
        other.runs.clear();
        assert_eq!(compare(&benchmark(100.0), &other, 5.0).outcome, Outcome::NothingCommon);
        other.machine.kernel = "Linux 7".into();
        let text = compare(&benchmark(100.0), &other, 5.0).text;
        assert!(text.contains("note: the kernel differs"), "{text}");
    }
}
