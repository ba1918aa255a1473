//! What clients and the agent say to each other over the control socket: a JSON request and
//! a JSON reply a connection, a line each. docs/control-protocol.md describes it for other programs.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::control::status::Status;
use crate::scheduler::placement::{Placement, TaskStatus};
use crate::settings::policy::{Choice, PolicyArgs};

/// Where the agent listens.
pub const SOCKET: &str = "/run/scx_powerpack/control.sock";
/// How long either side waits for the other.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// What a client requests.
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
    /// Report everything.
    Status,
    /// Report everything, and at most `tasks` of the busiest tasks; wake-up latencies are
    /// measured from now on for as long as such requests come.
    Top { tasks: usize },
    /// Report why the thread or process was put where it was, since the last such request;
    /// with `end` for the last time.
    Why {
        pid: u32,
        #[serde(default)]
        end: bool,
    },
}

impl Request {
    /// Whether only root may request this: all that changes something, or shows one task.
    pub fn is_for_root(&self) -> bool {
        !matches!(self, Request::Status | Request::Top { .. })
    }
}

/// What it is sent back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The mode in force, why the agent chose it if it did, and how long the switch to it
    /// took (us).
    Mode {
        mode: String,
        reason: Option<String>,
        took_us: f64,
        /// After a reload: what of the configuration this machine cannot have now, a sentence
        /// each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lacks: Vec<String>,
    },
    Status(Box<Status>),
    Top {
        status: Box<Status>,
        /// The busiest first.
        tasks: Vec<TaskStatus>,
    },
    /// The oldest first, and how many were lost since the scheduler was loaded, because they
    /// were not requested in time.
    Why {
        placements: Vec<Placement>,
        lost: u64,
    },
    Error(String),
}

/// Asks the running scheduler. Fails when none runs or it refuses.
pub fn ask(request: &Request) -> Result<Reply> {
    let mut stream = match UnixStream::connect(SOCKET) {
        Ok(stream) => stream,
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            bail!("scx_powerpack is not running: start it with 'scx_powerpack --mode packing'")
        }
        Err(err) => bail!("cannot connect to {SOCKET}: {err}"),
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut text = serde_json::to_vec(request)?;
    text.push(b'\n');
    // A peer that refuses may have closed already; its reply is still to be read.
    let _ = stream.write_all(&text);
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
    use crate::settings::policy::{MaxCores, Mode};

    #[test]
    fn requests_read_as_documented_and_nothing_else_does() {
        let set = |mode, policy| Request::SetPolicy { mode, policy };
        let spread = Some(Choice::Fixed(Mode::Spread));
        let four = PolicyArgs { max_cores: Some(MaxCores::Cores(4)), ..PolicyArgs::default() };
        for (text, request) in [
            (r#"{"set_policy":{"mode":"spread"}}"#, set(spread, PolicyArgs::default())),
            (r#"{"set_policy":{"policy":{"max_cores":4}}}"#, set(None, four)),
            (r#""reload""#, Request::Reload),
            (r#""status""#, Request::Status),
            (r#"{"top":{"tasks":5}}"#, Request::Top { tasks: 5 }),
            (r#"{"why":{"pid":7}}"#, Request::Why { pid: 7, end: false }),
        ] {
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
            let documented = include_str!("../../docs/control-protocol.md");
            assert!(documented.contains(text), "{text} is not documented");
        }
        for bad in [
            "",
            "{}",
            r#"{"set_policy":1}"#,
            r#"{"set_policy":{"mode":"turbo"}}"#,
            r#"{"set_policy":{"max_cores":1}}"#,
            r#""stop""#,
            r#"{"set_policy":{},"b":1}"#,
            r#"{"why":{"pid":-1}}"#,
        ] {
            assert!(serde_json::from_str::<Request>(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn what_is_lacking_is_in_a_reply_if_anything_is() {
        let reply =
            |lacks| Reply::Mode { mode: "spread".into(), reason: None, took_us: 1.5, lacks };
        let text = serde_json::to_string(&reply(vec![])).unwrap();
        assert_eq!(text, r#"{"mode":{"mode":"spread","reason":null,"took_us":1.5}}"#);
        let text = serde_json::to_string(&reply(vec!["no port".into()])).unwrap();
        assert!(text.ends_with(r#","lacks":["no port"]}}"#), "{text}");
    }

    #[test]
    fn who_is_not_root_may_look_and_no_more() {
        let set = Request::SetPolicy { mode: None, policy: PolicyArgs::default() };
        assert!(
            [set, Request::Reload, Request::Why { pid: 1, end: false }]
                .iter()
                .all(Request::is_for_root)
        );
        assert!(!Request::Status.is_for_root() && !Request::Top { tasks: 1 }.is_for_root());
    }
}
