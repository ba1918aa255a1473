//! The schedulers that are compared: starting one, and getting rid of it for certain.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::programs::is_installed;
use super::results::SystemInfo;
use crate::control::protocol::{self, Request};
use crate::machine::kernel;
use crate::settings::mode::{Choice, Mode};
use crate::settings::named::NamedMode;
use crate::settings::policy::{MaxCores, PolicyArgs};

/// The kernel's own scheduler.
pub const EEVDF: &str = "eevdf";
/// Loading takes half a second, more in a VM that emulates its CPUs.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time that a scheduler has after it was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked whether it is there.
const POLL: Duration = Duration::from_millis(2);

/// A scheduler with its settings.
#[derive(Clone, Debug)]
pub struct System {
    pub name: String,
    /// Empty: the kernel's own.
    command: Vec<String>,
    /// Ours.
    named: Option<NamedMode>,
}

impl System {
    /// `eevdf`, one of our modes (see [`NamedMode`]), else a command. Fails with a sentence.
    pub fn parse(text: &str) -> Result<Self> {
        let name = text.trim().to_owned();
        if name == EEVDF {
            return Ok(System { name, command: vec![], named: None });
        }
        let Some(named) = NamedMode::parse(&name)? else { return Self::other(name) };
        let own = env::current_exe().context("cannot find this program")?;
        let mut command = vec![own.to_string_lossy().into_owned()];
        command.extend(named.options());
        Ok(System { name, command, named: Some(named) })
    }

    /// Another sched_ext scheduler, by its command.
    fn other(name: String) -> Result<Self> {
        let command = shell_words::split(&name).with_context(|| format!("'{name}'"))?;
        let modes = Mode::ALL.map(Mode::name).join(", ");
        ensure!(
            command.first().is_some_and(|name| name.starts_with("scx_") || is_installed(name)),
            "unknown system '{name}': choose {EEVDF}, {modes}, auto, or the command of another \
             sched_ext scheduler, as 'scx_lavd --powersave'"
        );
        Ok(System { name, command, named: None })
    }

    /// It takes a number of cores to use: ours, if its name does not say one.
    pub fn takes_ceilings(&self) -> bool {
        self.named.as_ref().is_some_and(|named| named.knobs.max_cores.is_none())
    }

    /// The mode, of ours.
    pub fn mode(&self) -> Option<Choice> {
        self.named.as_ref().map(|named| named.choice)
    }

    /// Whether it is what runs if nothing is loaded.
    pub fn is_kernels_own(&self) -> bool {
        self.command.is_empty()
    }

    /// As it is written down.
    pub fn info(&self) -> SystemInfo {
        let program = self.command.first().map(Path::new).and_then(Path::file_name);
        let command = program.map(|program| {
            let words = [program.to_string_lossy().into_owned()];
            shell_words::join(words.iter().chain(&self.command[1..]))
        });
        SystemInfo { name: self.name.clone(), command, failed: None }
    }

    /// Gets it in charge; what it prints goes to `log`. Fails with the last line that it printed.
    pub fn start(&self, log: PathBuf) -> Result<Running> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(Running(None));
        };
        let output =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(output.try_clone()?).stderr(output);
        own_group(&mut command, libc::SIGINT);
        let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        let mut running = Running(Some(Loaded { child, log }));
        running.wait_until_in_charge()?;
        Ok(running)
    }
}

/// The child is no part of the terminal's group, so that Ctrl-C is ours alone, and ends
/// with us, by `signal`.
pub fn own_group(command: &mut Command, signal: i32) {
    command.process_group(0);
    // SAFETY: prctl is async-signal-safe, and changes the child alone.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        })
    };
}

/// A scheduler in charge, or the kernel's own. Dropping it gets the kernel's back.
pub struct Running(Option<Loaded>);

struct Loaded {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn wait_until_in_charge(&mut self) -> Result<()> {
        let Some(loaded) = &mut self.0 else { return Ok(()) };
        let begin = Instant::now();
        while !kernel::is_enabled() {
            if loaded.child.try_wait()?.is_some() {
                bail!("it did not start: {}", loaded.last_line());
            }
            ensure!(begin.elapsed() < START_TIMEOUT, "it did not start within a minute");
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Stops it and starts it again, as `system` says; how long until it was in charge.
    pub fn restart(&mut self, system: &System) -> Result<Duration> {
        let loaded = self.0.take().context("the kernel's own scheduler is always there")?;
        let log = loaded.log.clone();
        loaded.stop()?;
        let begin = Instant::now();
        *self = system.start(log)?;
        Ok(begin.elapsed())
    }

    /// Its process, if it has one.
    pub fn pid(&self) -> Option<u32> {
        self.0.as_ref().map(|loaded| loaded.child.id())
    }

    /// Fails if it is not in charge any more.
    pub fn check(&mut self, system: &System) -> Result<()> {
        let Some(loaded) = &mut self.0 else {
            ensure!(system.is_kernels_own(), "it did not start again");
            ensure!(kernel::loaded_scheduler().is_none(), "another scheduler was loaded meanwhile");
            return Ok(());
        };
        let ended = loaded.child.try_wait()?.is_some();
        ensure!(
            !ended && kernel::is_enabled(),
            "it is not in charge any more: {}",
            loaded.last_line()
        );
        Ok(())
    }

    /// Limits what takes ceilings to that number of cores; `None`: not any more.
    pub fn set_max_cores(&self, cores: Option<usize>) -> Result<()> {
        let max_cores = Some(cores.map_or(MaxCores::All, MaxCores::Cores));
        let policy = PolicyArgs { max_cores, ..PolicyArgs::default() };
        protocol::ask(&Request::SetPolicy { mode: None, policy }).map(drop)
    }

    /// The kernel's own scheduler is back when this returns. Fails if it is not.
    pub fn stop(mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Loaded::stop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(Err(err)) = self.0.take().map(Loaded::stop) {
            log::error!("{err:#}");
        }
    }
}

impl Loaded {
    fn stop(mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            signal(&self.child, libc::SIGINT);
        }
        if wait(&mut self.child, STOP_TIMEOUT)?.is_none() {
            // The kernel takes over when the last of it is gone.
            signal(&self.child, libc::SIGKILL);
            self.child.wait()?;
        }
        let begin = Instant::now();
        while kernel::loaded_scheduler().is_some() {
            ensure!(
                begin.elapsed() < STOP_TIMEOUT,
                "the scheduler has ended, but the kernel's own is not back: see the kernel's log"
            );
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn last_line(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let line =
            text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        format!("{} (all of it is in {})", line.trim(), self.log.display())
    }
}

/// Signals `child` and all that it has started.
pub fn signal(child: &Child, signal: i32) {
    // SAFETY: a group of its own; at worst it is gone already.
    unsafe { libc::kill(-(child.id() as i32), signal) };
}

/// Waits for its end, but not longer than `timeout`.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    while begin.elapsed() < timeout {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(POLL);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_have_names_and_commands() {
        let command = |text: &str| System::parse(text).unwrap().info().command;
        assert_eq!(command("eevdf"), None);
        assert_eq!(command("scx_lavd --powersave").unwrap(), "scx_lavd --powersave");
        let own = command("packing:small@3").unwrap();
        assert!(own.ends_with(" --mode packing --pack small --max-cores 3"), "{own}");
        assert!(System::parse("spread").unwrap().takes_ceilings());
        // It would be without its own afterwards.
        assert!(!System::parse("packing@3").unwrap().takes_ceilings());
        // Whether it is a scheduler is seen when it is started.
        assert!(System::parse("scx_none").is_ok() && System::parse("sh -c x").is_ok());
        for bad in ["lavd", "", "packing@x", "turbo", "scx_x '", "/nonexistent/scx"] {
            assert!(System::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_does_not_start_has_its_last_line_reported() {
        let log = env::temp_dir().join(format!("scx-words-{}", std::process::id()));
        let words = ["sh", "-c", "echo first; echo no such thing; exit 1"].map(str::to_owned);
        let system = System { name: "x".into(), command: words.to_vec(), named: None };
        let err = system.start(log.clone()).err().unwrap().to_string();
        assert!(err.starts_with("it did not start: no such thing"), "{err}");
        fs::remove_file(log).unwrap();
    }
}
