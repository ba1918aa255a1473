//! OpenMetrics over HTTP, for Prometheus and others that speak its language. Every scrape asks the
//! agent and looks at the machine; nothing else is kept here.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow};
use crossbeam::channel::Sender;
use http::{Answers, Request, Response, Server};
use log::info;

use crate::agent::events::{Call, Event};
use crate::control::protocol::{self, Reply, TIMEOUT};

mod families;
mod http;
mod machine;

use machine::Machine;

/// As prometheus-client writes it.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long a port may take to close behind the server that had it, in steps of
/// [`CLOSE_STEP`]: its threads end one after another.
const CLOSE_STEPS: u32 = 20;
const CLOSE_STEP: Duration = Duration::from_millis(25);
/// An answer is good for so long: whoever asks again and again does not keep the agent from what it is for.
const ANSWER_AGE_MAX: Duration = Duration::from_millis(200);

/// The server; soon after it is dropped its port is closed.
pub struct Metrics {
    pub address: SocketAddr,
    _server: Server,
}

impl Metrics {
    /// Serves on `address`, asking the agent through `events`. Fails with a sentence if the
    /// address cannot be had.
    pub fn serve(address: SocketAddr, events: Sender<Event>) -> Result<Self> {
        let mut listener = TcpListener::bind(address);
        for _ in 0..CLOSE_STEPS {
            match &listener {
                Err(err) if err.kind() == io::ErrorKind::AddrInUse => thread::sleep(CLOSE_STEP),
                _ => break,
            }
            listener = TcpListener::bind(address);
        }
        Self::listen(listener.map_err(|err| explain(address, &err))?, events)
    }

    /// Serves on a socket that systemd has opened.
    pub fn listen(listener: TcpListener, events: Sender<Event>) -> Result<Self> {
        let address = listener.local_addr()?;
        let (machine, started) = (Mutex::new(Machine::begin()), SystemTime::now());
        let scrapes = Scrapes { events, machine, last: Mutex::new(None), started };
        let server = Server::start(listener, scrapes)?;
        info!("metrics are served on http://{address}/metrics");
        Ok(Metrics { address, _server: server })
    }
}

/// Why the address cannot be had.
fn explain(address: SocketAddr, err: &io::Error) -> anyhow::Error {
    match err.raw_os_error() {
        // Its sandbox allows no network.
        Some(libc::EAFNOSUPPORT) => anyhow!(
            "cannot serve metrics on {address}: the service may not listen itself; enable \
             scx_powerpack-metrics.socket instead, and leave 'metrics' out"
        ),
        _ => anyhow!("cannot serve metrics on {address}: {err}"),
    }
}

/// What answers are made from.
struct Scrapes {
    events: Sender<Event>,
    machine: Mutex<Machine>,
    last: Mutex<Option<(Instant, String)>>,
    started: SystemTime,
}

impl Scrapes {
    /// The last answer, or a new one. Those who ask meanwhile wait for that.
    fn recent_text(&self) -> Result<String> {
        let mut last = self.last.lock().map_err(|_| anyhow!("there is no answer"))?;
        if let Some((made, text)) = &*last
            && made.elapsed() < ANSWER_AGE_MAX
        {
            return Ok(text.clone());
        }
        let text = self.text()?;
        *last = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    fn text(&self) -> Result<String> {
        let age = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let status = status(&self.events)?;
        let mut machine = self.machine.lock().map_err(|_| anyhow!("the machine cannot be read"))?;
        Ok(families::text(&status, machine.look(), age)?)
    }
}

impl Answers for Scrapes {
    fn answer(&self, request: &Request) -> Response {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/metrics") => {}
            ("GET", _) => return Response::plain(404, "metrics are at /metrics\n"),
            _ => return Response::plain(405, "only GET\n"),
        }
        match self.recent_text() {
            Ok(text) => Response { code: 200, content_type: CONTENT_TYPE, text },
            Err(err) => Response::plain(503, &format!("{err:#}\n")),
        }
    }
}

fn status(events: &Sender<Event>) -> Result<crate::control::status::Status> {
    let (call, receiver) = Call::new(protocol::Request::Status);
    events.send(Event::Call(call)).map_err(|_| anyhow!("the agent is gone"))?;
    match receiver.recv_timeout(TIMEOUT)? {
        Reply::Status(status) => Ok(*status),
        other => Err(anyhow!("unexpected reply {other:?}")),
    }
}
