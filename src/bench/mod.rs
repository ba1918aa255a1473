//! `scx_powerpack bench`: what packing does to the machine at hand, in numbers.

mod beside;
mod cells;
mod cgroups;
mod child;
mod compare;
mod course;
mod drain;
mod governor;
mod html;
mod idle;
mod join;
mod limit;
mod machine;
mod markdown;
mod meter;
mod metric;
mod plot;
mod probe;
mod programs;
mod results;
mod run;
mod suite;
mod summary;
mod switches;
mod system;
mod table;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use powerpack_load::engine::{self, Course, Phase};
use powerpack_workload::Workload;

use crate::cli::{BenchArgs, BenchCommand};
use crate::machine::borrowed;
use crate::signals::EXIT_INTERRUPTED;
use compare::Outcome;
use results::Results;

/// The exit status of `bench compare` when something is worse: 1 is an error, 2 a wrong
/// command line.
const EXIT_WORSE: u8 = 3;

/// What `scx_powerpack bench` was asked for. Fails with a sentence.
pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    match &args.command {
        None => measure(args),
        Some(BenchCommand::Compare { before, after, tolerance }) => {
            let comparison =
                compare::compare(&Results::read(before)?, &Results::read(after)?, *tolerance);
            print!("{}", comparison.text);
            Ok(match comparison.outcome {
                Outcome::NoneWorse => ExitCode::SUCCESS,
                Outcome::Worse => ExitCode::from(EXIT_WORSE),
                Outcome::NothingCommon => ExitCode::FAILURE,
            })
        }
        Some(BenchCommand::Report { results, markdown }) => {
            let dir = results[0].parent().unwrap_or(Path::new("."));
            let all = results.iter().map(|path| Results::read(path)).collect::<Result<Vec<_>>>()?;
            if *markdown {
                print!("{}", markdown::page(all));
            } else {
                println!("{}", write_report(&join::join(all), dir)?.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(BenchCommand::Load { seconds, settle, additions_per_s, workload }) => {
            let course = Course {
                seconds: *seconds,
                settle: *settle,
                additions_per_s: *additions_per_s,
                ..Course::default()
            };
            load(course, workload).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Measures, prints, and writes results.json and report.html.
fn measure(args: &BenchArgs) -> Result<ExitCode> {
    // A governor that a killed benchmark left is not to be measured.
    borrowed::recover(Path::new("/"));
    let course::Outcome { results, dir, interrupted } = course::run(args)?;
    print!("{}", table::all(&results));
    let report = write_report(&results, &dir)?;
    println!("\n{}\n{}", dir.join(course::RESULTS_FILE).display(), report.display());
    Ok(if interrupted { ExitCode::from(EXIT_INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn write_report(results: &Results, dir: &Path) -> Result<PathBuf> {
    let path = dir.join("report.html");
    let html = html::page(results)?;
    std::fs::write(&path, html).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The load itself, in a process of its own: says when the measurement begins and ends.
fn load(course: Course, workload: &str) -> Result<()> {
    let workload = Workload::find(workload)?;
    let course = Course { phases: workload.phases, ..course }.checked()?;
    let print = |phase| {
        let line = match phase {
            Phase::Settled => child::SETTLED,
            Phase::Over => child::OVER,
        };
        println!("{line}");
        // If the reader has gone away, this process is about to be killed.
        let _ = io::stdout().flush();
    };
    let report =
        engine::run_reporting(&powerpack_load::workload::kinds(&workload)?, course, print)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
