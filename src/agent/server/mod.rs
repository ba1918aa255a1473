//! The control socket's server. Root may ask everything, others may look. What a client does
//! wrong is answered, and is nobody else's affair.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crossbeam::channel::Sender;
use log::debug;

use crate::agent::events::{Call, Event};
use crate::control::peer::{holder, peer, runs_already};
use crate::control::protocol::{Reply, Request, SOCKET, TIMEOUT};
use crate::machine::record;

/// The longest request that is read; real ones have some tens of bytes.
const REQUEST_MAX_BYTES: usize = 4096;
/// So many clients at a time, root or half as many others: each has a thread, for at most
/// two timeouts.
const CLIENTS_MAX: usize = 16;
/// For how long another start is waited for, which holds the lock for some ms.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// After a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Requests a second of root's: a script that switches as fast as it can is not in need of
/// more, and the agent has time left.
const ROOT_PER_S: f64 = 200.0;
/// And of all others together: some clients that look every second.
const OTHERS_PER_S: f64 = 20.0;

/// The listening socket; dropping it removes the file.
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Listens, and hands each request to the agent.
    /// Fails when something other than a dead socket of ours is in the way.
    pub fn start(events: Sender<Event>) -> Result<Self> {
        let path = PathBuf::from(SOCKET);
        let listener = listen(&path)?;
        let shared = Arc::new(Shared::new(events));
        thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                listener.incoming().for_each(|stream| match stream {
                    Ok(stream) => receive(&shared, stream),
                    // It fails again and again until a file descriptor is free.
                    Err(_) => thread::sleep(ACCEPT_PAUSE),
                })
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

/// A lock that is held while a socket in `dir` is looked at and replaced: else, of two that start where a killed
/// agent has left one, the second could remove that of the first. Fails if another start has it for long.
fn lock(dir: &Path) -> Result<File> {
    let file = File::open(dir).with_context(|| format!("cannot open {}", dir.display()))?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(err)) => {
                return Err(err).with_context(|| format!("cannot lock {}", dir.display()));
            }
        }
    }
    bail!("another scx_powerpack is about to start: look whether it runs, and start this one again")
}

fn listen(path: &Path) -> Result<UnixListener> {
    let dir = path.parent().context("no directory")?;
    record::make_dir(dir).map_err(|err| anyhow!("cannot create {}: {err}", dir.display()))?;
    let _lock = lock(dir)?;
    if let Ok(meta) = fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            bail!("{} is in the way and is no socket: remove it", path.display());
        }
        if let Some(pid) = holder() {
            bail!("{}", runs_already(pid));
        }
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))?;
    // Any user may connect; which one it is is looked at.
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// What all clients share.
struct Shared {
    events: Sender<Event>,
    root: Mutex<TokenBucket>,
    others: Mutex<TokenBucket>,
}

impl Shared {
    fn new(events: Sender<Event>) -> Self {
        Shared {
            events,
            root: Mutex::new(TokenBucket::new(ROOT_PER_S)),
            others: Mutex::new(TokenBucket::new(OTHERS_PER_S)),
        }
    }

    /// The reply to user `uid`, who has sent `line`.
    fn reply(&self, uid: u32, line: Result<Vec<u8>>) -> Reply {
        let asked = line.and_then(|line| {
            let bucket = if uid == 0 { &self.root } else { &self.others };
            let taken = bucket.lock().map_err(|_| anyhow!("no clock"))?.take(Instant::now());
            ensure!(taken, "too many requests: wait a second");
            let request: Request =
                serde_json::from_slice(&line).map_err(|err| anyhow!("not a request: {err}"))?;
            ensure!(uid == 0 || !request.is_for_root(), "this needs root: run it with sudo");
            self.ask_agent(request)
        });
        asked.unwrap_or_else(|err| Reply::Error(format!("{err:#}")))
    }

    fn ask_agent(&self, request: Request) -> Result<Reply> {
        let (call, receiver) = Call::new(request);
        self.events.send(Event::Call(call)).map_err(|_| anyhow!("the agent is gone"))?;
        receiver.recv_timeout(TIMEOUT).context("the agent is busy")
    }
}

/// Lets `per_s` a second pass, and as many at once after a pause.
struct TokenBucket {
    per_s: f64,
    left: f64,
    last: Instant,
}

impl TokenBucket {
    fn new(per_s: f64) -> Self {
        TokenBucket { per_s, left: per_s, last: Instant::now() }
    }

    fn take(&mut self, now: Instant) -> bool {
        let since_s = now.saturating_duration_since(self.last).as_secs_f64();
        self.left = (self.left + since_s * self.per_s).min(self.per_s);
        self.last = now;
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }
}

/// A client has come: a thread for it, unless there are too many.
fn receive(shared: &Arc<Shared>, mut stream: UnixStream) {
    let is_root = peer(&stream).is_ok_and(|peer| peer.uid == 0);
    let most = if is_root { CLIENTS_MAX } else { CLIENTS_MAX / 2 };
    // The listener has one of them, each client another.
    if Arc::strong_count(shared) > most {
        let _ = stream.set_write_timeout(Some(Duration::from_millis(1)));
        return drop(write_reply(&mut stream, &Reply::Error("too many clients: try again".into())));
    }
    let shared = Arc::clone(shared);
    let serve = move || {
        if let Err(err) = serve(stream, &shared) {
            debug!("control socket: {err:#}");
        }
    };
    if let Err(err) = thread::Builder::new().name("client".into()).spawn(serve) {
        debug!("control socket: no thread for a client: {err}");
    }
}

fn serve(mut stream: UnixStream, shared: &Shared) -> Result<()> {
    let uid = peer(&stream)?.uid;
    let line = read_line(&mut stream, Instant::now() + TIMEOUT);
    // It has come long ago, if we were stopped: nothing may change after a client has given up.
    ensure!(!has_hung_up(&stream), "the client is gone");
    let reply = shared.reply(uid, line);
    stream.set_write_timeout(Some(TIMEOUT))?;
    write_reply(&mut stream, &reply)
}

/// Whether the other side has closed its end, and not only the half that it writes to.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut end = libc::pollfd { fd: stream.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one structure, that lives as long as the call.
    let nr = unsafe { libc::poll(&raw mut end, 1, 0) };
    nr == 1 && end.revents & libc::POLLHUP != 0
}

fn write_reply(stream: &mut UnixStream, reply: &Reply) -> Result<()> {
    let mut text = serde_json::to_vec(reply)?;
    text.push(b'\n');
    stream.write_all(&text)?;
    Ok(())
}

/// A line, or what came before the other side stopped writing. Fails with a sentence for
/// the client when it takes until `deadline`, byte by byte or not, or is too long.
fn read_line(stream: &mut UnixStream, deadline: Instant) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut buffer = [0; REQUEST_MAX_BYTES];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "no request within {} s", TIMEOUT.as_secs());
        stream.set_read_timeout(Some(left))?;
        let read = match stream.read(&mut buffer) {
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                continue;
            }
            read => read.context("cannot read the request")?,
        };
        line.extend_from_slice(&buffer[..read]);
        let end = line.iter().position(|&byte| byte == b'\n');
        ensure!(
            end.unwrap_or(line.len()) < REQUEST_MAX_BYTES,
            "the request is longer than {REQUEST_MAX_BYTES} bytes"
        );
        if end.is_some() || read == 0 {
            line.truncate(end.unwrap_or(line.len()));
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests;
