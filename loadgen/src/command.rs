//! Any other program as a load: how long it takes, and which CPUs it keeps awake.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::clock::{self, NS_PER_S};
use crate::schedstat::{Meter, NonIdle};

/// What the command took.
#[derive(Debug, Serialize)]
pub struct Report {
    /// From its start to its end (s).
    pub elapsed_s: f64,
    #[serde(flatten)]
    pub non_idle: Option<NonIdle>,
}

/// Runs `command` until it ends; what it prints is left out. Fails if it does.
pub fn run(command: &[String]) -> Result<Report> {
    let (program, arguments) = command.split_first().context("no command")?;
    let meter = Meter::start()?;
    let begin = clock::now_ns();
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    let elapsed_s = (clock::now_ns() - begin) as f64 / NS_PER_S;
    ensure!(status.success(), "{program} ended with {status}");
    Ok(Report { elapsed_s, non_idle: meter.stop()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_timed_and_a_failed_one_is_reported() {
        let run = |words: &[&str]| run(&words.iter().map(|&word| word.into()).collect::<Vec<_>>());
        let elapsed_s = run(&["sleep", "0.2"]).unwrap().elapsed_s;
        assert!((0.2..2.0).contains(&elapsed_s), "{elapsed_s}");
        assert!(run(&["false"]).unwrap_err().to_string().contains("false ended with"));
        assert!(run(&["/no/such/program"]).is_err());
    }
}
