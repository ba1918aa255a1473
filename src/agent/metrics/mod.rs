//! OpenMetrics over HTTP, for Prometheus and others that speak its language. Every scrape asks the
//! agent and looks at the machine; nothing else is kept here.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use crossbeam::channel::{Sender, bounded};
use log::{debug, info};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::agent::events::Event;
use crate::control::protocol::{self, Reply, TIMEOUT};

mod families;
mod machine;

use machine::Machine;

/// As prometheus-client writes it.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long a port may take to close behind the server that had it, in steps of
/// [`CLOSE_STEP`]: its threads end one after another.
const CLOSE_STEPS: u32 = 20;
const CLOSE_STEP: Duration = Duration::from_millis(25);

/// The server; soon after it is dropped its port is closed.
pub struct Metrics {
    pub address: SocketAddr,
    server: Arc<Server>,
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
        let server = Server::from_listener(listener, None)
            .map_err(|err| anyhow!("cannot serve metrics on {address}: {err}"))?;
        let server = Arc::new(server);
        let serving = Arc::clone(&server);
        let started = SystemTime::now();
        thread::Builder::new().name("metrics".into()).spawn(move || {
            let mut machine = Machine::begin();
            for request in serving.incoming_requests() {
                let response = respond(&request, &events, &mut machine, started);
                if let Err(err) = request.respond(response) {
                    debug!("metrics: {err}");
                }
            }
        })?;
        info!("metrics are served on http://{address}/metrics");
        Ok(Metrics { address, server })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.server.unblock();
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

type Text = Response<std::io::Cursor<Vec<u8>>>;

fn respond(
    request: &Request,
    events: &Sender<Event>,
    machine: &mut Machine,
    started: SystemTime,
) -> Text {
    match (request.method(), request.url()) {
        (Method::Get, "/metrics") => {}
        (Method::Get, _) => return plain(404, "metrics are at /metrics\n"),
        _ => return plain(405, "only GET\n"),
    }
    let age = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    match status(events).and_then(|status| Ok(families::text(&status, machine.look(), age)?)) {
        Ok(text) => {
            let header = Header::from_bytes("Content-Type", CONTENT_TYPE);
            let response = Response::from_string(text);
            header.into_iter().fold(response, Response::with_header)
        }
        Err(err) => plain(503, &format!("{err:#}\n")),
    }
}

fn plain(code: u16, text: &str) -> Text {
    Response::from_string(text).with_status_code(code)
}

fn status(events: &Sender<Event>) -> Result<crate::control::status::Status> {
    let (sender, receiver) = bounded(1);
    let call = Event::Call((protocol::Request::Status, sender));
    events.send(call).map_err(|_| anyhow!("the agent is gone"))?;
    match receiver.recv_timeout(TIMEOUT)? {
        Reply::Status(status) => Ok(*status),
        other => Err(anyhow!("unexpected reply {other:?}")),
    }
}
