//! HTTP as far as a scrape goes: one request for each connection, and none is waited for for long. At most
//! [`CONNECTIONS_MAX`] at a time: an HTTP library that takes all leaves the agent without file descriptors.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use log::debug;

use crate::control::protocol::TIMEOUT;

/// The longest request that is read; a scraper's headers have some hundred bytes.
const REQUEST_MAX_BYTES: usize = 8192;
/// So many headers; Prometheus sends half a dozen.
const HEADERS_MAX: usize = 64;
/// Each has a thread, for at most two timeouts.
const CONNECTIONS_MAX: usize = 16;
/// After a connection could not be accepted: it fails again until a file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// For a connection to ourselves.
const UNBLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
}

/// What is answered.
pub struct Response {
    pub code: u16,
    pub content_type: &'static str,
    pub text: String,
}

impl Response {
    pub fn plain(code: u16, text: &str) -> Self {
        Response { code, content_type: "text/plain; charset=utf-8", text: text.to_owned() }
    }
}

/// What makes answers.
pub trait Answers: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Response;
}

/// A thread that accepts connections; it ends soon after this is dropped.
pub struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Server {
    /// Answers who connects to `listener`. Fails if there can be no thread.
    pub fn start(listener: TcpListener, answers: impl Answers) -> Result<Self> {
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let (ending, answers) = (Arc::clone(&ends), Arc::new(answers));
        thread::Builder::new()
            .name("metrics".into())
            .spawn(move || accept(&listener, &ending, &answers))
            .context("cannot start a thread for metrics")?;
        Ok(Server { address, ends })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // It waits for a connection. The socket itself may be systemd's, which is to stay as it is.
        let _ = TcpStream::connect_timeout(&self.address, UNBLOCK_TIMEOUT);
    }
}

fn accept(listener: &TcpListener, ends: &AtomicBool, answers: &Arc<impl Answers>) {
    for stream in listener.incoming() {
        if ends.load(Ordering::Acquire) {
            break;
        }
        match stream {
            Ok(stream) => receive(stream, answers),
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// A thread for a connection, unless there are too many: then it is closed.
fn receive(mut stream: TcpStream, answers: &Arc<impl Answers>) {
    // Whoever accepts has one of them, each connection another.
    if Arc::strong_count(answers) > CONNECTIONS_MAX {
        return;
    }
    let answers = Arc::clone(answers);
    let serve = move || {
        if let Err(err) = serve(&mut stream, &*answers) {
            debug!("metrics: {err:#}");
        }
    };
    if let Err(err) = thread::Builder::new().name("scrape".into()).spawn(serve) {
        debug!("metrics: no thread for a connection: {err}");
    }
}

fn serve(stream: &mut TcpStream, answers: &impl Answers) -> Result<()> {
    let response = match read_request(stream, Instant::now() + TIMEOUT) {
        Ok(request) => answers.answer(&request),
        Err(err) => Response::plain(400, &format!("{err:#}\n")),
    };
    stream.set_write_timeout(Some(TIMEOUT))?;
    let Response { code, content_type, text } = response;
    let head = format!(
        "HTTP/1.1 {code} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        reason(code),
        text.len()
    );
    stream.write_all((head + &text).as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    Ok(())
}

/// The phrase of RFC 9110 for a status that is used here.
fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Service Unavailable",
    }
}

/// Reads until the headers end; a body is left alone. Fails with a sentence for the client when it takes
/// until `deadline`, byte by byte or not, or is too long, or is no HTTP.
fn read_request(stream: &mut TcpStream, deadline: Instant) -> Result<Request> {
    let (mut text, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        if let Some(request) = parse(&text)? {
            return Ok(request);
        }
        ensure!(text.len() < REQUEST_MAX_BYTES, "longer than {REQUEST_MAX_BYTES} bytes");
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "no request within {} s", TIMEOUT.as_secs());
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => bail!("the request has no end"),
            Ok(read) => text.extend_from_slice(&buffer[..read]),
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(err) => return Err(err).context("cannot read the request"),
        }
    }
}

/// The request that `text` begins with; `None`: more is to come.
fn parse(text: &[u8]) -> Result<Option<Request>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(text).context("not a request")?.is_partial() {
        return Ok(None);
    }
    let words = request.method.zip(request.path);
    Ok(words.map(|(method, path)| Request { method: method.to_owned(), path: path.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Answers with what was asked.
    struct Echo;

    impl Answers for Echo {
        fn answer(&self, request: &Request) -> Response {
            Response::plain(200, &format!("{} {}", request.method, request.path))
        }
    }

    fn server() -> Server {
        Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), Echo).unwrap()
    }

    /// What `server` answers to these bytes; `None`: it has closed the connection.
    fn answer(server: &Server, bytes: &[u8]) -> Option<String> {
        let mut stream = TcpStream::connect(server.address).unwrap();
        // It may have been refused, and the connection closed, before all is written.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        (!text.is_empty()).then_some(text)
    }

    #[test]
    fn what_is_asked_is_answered_and_what_is_no_request_too() {
        let server = server();
        let said = answer(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let all = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
                   Content-Length: 12\r\nConnection: close\r\n\r\nGET /metrics";
        assert_eq!(said, all);
        for (bytes, why) in [
            (&b"GET /metrics HTTP/1.1\r\nHost: x\r\n"[..], "no end"),
            (b"{}\r\n\r\n", "not a request"),
            (b"\xff\xfe\x00\r\n", "not a request"),
            (b"", "no end"),
        ] {
            let said = answer(&server, bytes).unwrap();
            assert!(said.starts_with("HTTP/1.1 400 Bad Request") && said.contains(why), "{said}");
        }
        let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; REQUEST_MAX_BYTES]].concat();
        assert!(answer(&server, &long).is_none_or(|said| said.contains("longer than 8192 bytes")));
    }

    #[test]
    fn so_many_connections_are_had_at_a_time_and_those_that_say_nothing_end() {
        let server = server();
        let connect = || TcpStream::connect(server.address).unwrap();
        let mut held: Vec<_> = (1..CONNECTIONS_MAX).map(|_| connect()).collect();
        let asked = b"GET /metrics HTTP/1.1\r\n\r\n";
        assert!(answer(&server, asked).is_some(), "no room for one more");
        // That one's thread may not have ended, so it may take some more.
        let is_full = (0..10).any(|_| {
            held.push(connect());
            answer(&server, asked).is_none()
        });
        assert!(is_full, "{} connections are held", held.len());
        drop(held);
        let again = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            answer(&server, asked).is_some()
        });
        assert!(again, "no connection after too many are gone");
        let began = Instant::now();
        let mut idle = connect();
        let mut text = String::new();
        idle.read_to_string(&mut text).unwrap();
        assert!(text.contains("no request within"), "{text}");
        assert!(began.elapsed() >= TIMEOUT);
    }

    #[test]
    fn a_server_that_is_dropped_leaves_its_port() {
        let server = server();
        let address = server.address;
        drop(server);
        let is_free = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            TcpListener::bind(address).is_ok()
        });
        assert!(is_free);
    }

    proptest! {
        /// Nothing that is sent makes it fail.
        #[test]
        fn any_bytes_can_be_parsed(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
            let _ = parse(&bytes);
        }
    }
}
