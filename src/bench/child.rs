//! The process that is the load: started, followed, and ended for certain.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use powerpack_load::clock;
use powerpack_load::record::Report;

use super::system::{own_group, signal};

/// What a workload prints, each on a line of its own, when its measurement begins and ends.
pub const SETTLED: &str = "settled";
pub const OVER: &str = "over";

/// What a load reports.
#[derive(Debug)]
pub enum Message {
    Settled,
    Over,
    /// A workload's report.
    Report(Box<Report>),
    /// All else that it printed, at its end.
    Output(String),
}

/// A load that runs; dropping it kills it.
pub struct LoadProcess {
    child: Child,
    messages: Receiver<Message>,
    /// Its number may be another's by now.
    has_ended: bool,
}

impl LoadProcess {
    /// A workload, run by this program itself in the cgroup at that directory. Fails if that cannot
    /// be.
    pub fn workload(
        name: &str,
        [seconds, settle_s]: [f64; 2],
        additions_per_s: u64,
        cgroup: Option<&Path>,
    ) -> Result<Self> {
        let mut command = Command::new(env::current_exe().context("cannot find this program")?);
        command
            .args(["bench", "load", "--seconds", &(seconds + settle_s).to_string()])
            .args(["--settle", &settle_s.to_string()])
            .args(["--additions-per-s", &additions_per_s.to_string(), "--", name]);
        Self::start(command, cgroup, follow_workload)
    }

    /// Another program; what it prints counts when it ends. Fails if it cannot be run.
    pub fn program(words: &[String], cgroup: Option<&Path>) -> Result<Self> {
        let (program, arguments) = words.split_first().context("no command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        Self::start(command, cgroup, follow_program)
    }

    fn start(
        mut command: Command,
        cgroup: Option<&Path>,
        follow: fn(PipeReader, &Sender<Message>),
    ) -> Result<Self> {
        let (output, input) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        own_group(&mut command, libc::SIGKILL);
        cgroup.map_or(Ok(()), |dir| begin_in(&mut command, dir))?;
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot run {name}"))?;
        // It holds the other ends of the pipe, and would keep them open.
        drop(command);
        let (sender, messages) = channel();
        thread::spawn(move || follow(output, &sender));
        Ok(LoadProcess { child, messages, has_ended: false })
    }

    /// What it reports next; `None` if that is nothing within `timeout`. Fails after its last
    /// message.
    pub fn next_message(&self, timeout: Duration) -> Result<Option<Message>> {
        match self.messages.recv_timeout(timeout) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("it ended without a report"),
        }
    }

    /// Fails if it has ended.
    pub fn check_runs(&mut self) -> Result<()> {
        self.has_ended = self.child.try_wait()?.is_some();
        ensure!(!self.has_ended, "it has ended");
        Ok(())
    }

    /// Waits for its end; the CPU time of all its processes (s). Fails if it did.
    pub fn finish(mut self) -> Result<f64> {
        let before = clock::children_cpu_s();
        let status = self.child.wait()?;
        self.has_ended = true;
        ensure!(status.success(), "it ended with {status}");
        Ok(clock::children_cpu_s() - before)
    }
}

/// The child moves itself into the cgroup at `dir` before it is the command. Fails if there is none.
fn begin_in(command: &mut Command, dir: &Path) -> Result<()> {
    let path = dir.join("cgroup.procs");
    let procs = File::options().write(true).open(&path);
    let procs = procs.with_context(|| format!("cannot open {}", path.display()))?;
    // SAFETY: write(2) is async-signal-safe; "0" is the process that writes it.
    unsafe { command.pre_exec(move || (&procs).write_all(b"0")) };
    Ok(())
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        if !self.has_ended {
            signal(&self.child, libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

fn follow_workload(output: PipeReader, sender: &Sender<Message>) {
    let mut rest = String::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let message = match line.as_str() {
            SETTLED => Message::Settled,
            OVER => Message::Over,
            line => match serde_json::from_str(line) {
                Ok(report) => Message::Report(report),
                Err(_) => {
                    rest = rest + line + "\n";
                    continue;
                }
            },
        };
        // Its receiver is gone when a load is about to be killed.
        let _ = sender.send(message);
    }
    let _ = sender.send(Message::Output(rest));
}

fn follow_program(mut output: PipeReader, sender: &Sender<Message>) {
    let mut bytes = Vec::new();
    // What is no text is no figure either.
    let _ = output.read_to_end(&mut bytes);
    let _ = sender.send(Message::Over);
    let _ = sender.send(Message::Output(String::from_utf8_lossy(&bytes).into_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str, follow: fn(PipeReader, &Sender<Message>)) -> LoadProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        LoadProcess::start(command, None, follow).unwrap()
    }

    #[test]
    fn a_workload_is_followed() {
        let load = shell("echo settled; echo over; echo 'oh no' >&2; exit 3", follow_workload);
        assert!(matches!(load.next_message(SOON).unwrap(), Some(Message::Settled)));
        assert!(matches!(load.next_message(SOON).unwrap(), Some(Message::Over)));
        assert!(
            matches!(load.next_message(SOON).unwrap(), Some(Message::Output(text)) if text == "oh no\n")
        );
        assert!(load.next_message(SOON).is_err());
        assert!(load.finish().unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn a_program_that_is_dropped_is_gone_with_its_children() {
        let load = shell("sleep 1000 & echo $!; wait", follow_program);
        assert!(load.next_message(Duration::from_millis(100)).unwrap().is_none());
        let group = -(load.child.id() as i32);
        drop(load);
        // What was killed may still be there for a moment, until init has reaped it.
        let gone = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(20));
            // SAFETY: signal 0 only asks.
            unsafe { libc::kill(group, 0) != 0 }
        });
        assert!(gone);
    }
}
