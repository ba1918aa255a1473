//! The control socket, for root only: one JSON request and one JSON reply a
//! connection, a line each. scx_stats beside it only reads.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use crossbeam::channel::{Sender, bounded};
use log::debug;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::policy::{Choice, PolicyArgs};
use crate::stats::Status;

/// Below it only root may look.
const SOCKET_DIR: &str = "/run/scx_powerpack";
const SOCKET_NAME: &str = "control.sock";
/// The longest request that is read; real ones have some ten bytes.
const REQUEST_MAX_BYTES: u64 = 4096;
/// How long either side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a client asks.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Switch the mode, its knobs, or both; what is left out stays.
    SetPolicy {
        #[serde(default)]
        mode: Option<Choice>,
        #[serde(default)]
        policy: PolicyArgs,
    },
    /// Read the configuration file again.
    Reload,
    /// Tell everything.
    Status,
}

/// What it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The mode in force, why the agent chose it if it did, and how long the switch to it
    /// took (us).
    Mode {
        mode: String,
        reason: Option<String>,
        took_us: f64,
    },
    Status(Box<Status>),
    Error(String),
}

/// A request on its way to the agent, with where the reply goes.
pub type Call = (Request, Sender<Reply>);

/// The listening socket; dropping it removes the file.
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Listens, and hands each request to `calls`.
    /// Fails when something other than a dead socket of ours is in the way.
    pub fn start(calls: Sender<Call>) -> Result<Self> {
        let path = Path::new(SOCKET_DIR).join(SOCKET_NAME);
        let listener = listen(&path)?;
        thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    if let Err(err) = serve(stream, &calls) {
                        debug!("control socket: {err:#}");
                    }
                }
            })
            .context("cannot start a thread for the control socket")?;
        Ok(Server { path })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    match DirBuilder::new().mode(0o700).create(SOCKET_DIR) {
        Err(err) if err.kind() != ErrorKind::AlreadyExists => {
            bail!("cannot create {SOCKET_DIR}: {err}");
        }
        _ => {}
    }
    if let Ok(meta) = fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            bail!("{} is in the way and is no socket: remove it", path.display());
        }
        if UnixStream::connect(path).is_ok() {
            bail!("another scx_powerpack listens on {}: stop it first", path.display());
        }
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn serve(mut stream: UnixStream, calls: &Sender<Call>) -> Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_MAX_BYTES)).read_line(&mut line)?;
    let reply = match serde_json::from_str(&line) {
        Ok(request) => ask_agent(request, calls)?,
        Err(err) => Reply::Error(format!("not a request: {err}")),
    };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    stream.write_all(&text)?;
    Ok(())
}

fn ask_agent(request: Request, calls: &Sender<Call>) -> Result<Reply> {
    let (sender, receiver) = bounded(1);
    calls.send((request, sender)).map_err(|_| anyhow!("the agent is gone"))?;
    Ok(receiver.recv_timeout(TIMEOUT)?)
}

/// Asks the running scheduler. Fails when none runs or it refuses.
pub fn ask(request: &Request) -> Result<Reply> {
    host::check_root("asking the running scheduler")?;
    let path = Path::new(SOCKET_DIR).join(SOCKET_NAME);
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            bail!("scx_powerpack is not running: start it with 'scx_powerpack --mode packing'")
        }
        Err(err) => bail!("cannot connect to {}: {err}", path.display()),
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut text = serde_json::to_vec(request)?;
    text.push(b'\n');
    stream.write_all(&text)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("the running scheduler did not answer")?;
    match serde_json::from_str(&line).context("the running scheduler's answer is no reply")? {
        Reply::Error(message) => Err(anyhow!(message)),
        reply => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{MaxCores, Mode};

    #[test]
    fn requests_read_as_documented_and_nothing_else_does() {
        let set = |mode, policy| Request::SetPolicy { mode, policy };
        let spread = Some(Choice::Fixed(Mode::Spread));
        let four = PolicyArgs { max_cores: Some(MaxCores::Cores(4)), ..PolicyArgs::default() };
        for (text, request) in [
            (r#"{"set_policy":{"mode":"spread"}}"#, set(spread, PolicyArgs::default())),
            (r#"{"set_policy":{"policy":{"max_cores":4}}}"#, set(None, four)),
            (r#""reload""#, Request::Reload),
        ] {
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        assert_eq!(serde_json::from_str::<Request>(r#""status""#).unwrap(), Request::Status);
        for bad in [
            "",
            "{}",
            r#"{"set_policy":1}"#,
            r#"{"set_policy":{"mode":"turbo"}}"#,
            r#"{"set_policy":{"max_cores":1}}"#,
            r#""stop""#,
            r#"{"set_policy":{},"b":1}"#,
        ] {
            assert!(serde_json::from_str::<Request>(bad).is_err(), "{bad} was taken");
        }
    }
}
