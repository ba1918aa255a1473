use std::io::{BufRead, BufReader};
use std::net::Shutdown;

use crossbeam::channel::unbounded;
use proptest::prelude::*;

use super::*;
use crate::machine::kernel::is_root;

/// A server whose agent answers everything with an error that says what was asked.
fn shared() -> Shared {
    let (sender, calls) = unbounded::<Event>();
    thread::spawn(move || {
        for event in calls {
            let Event::Call(call) = event else { continue };
            let _ = call.reply.send(Reply::Error(format!("asked {:?}", call.request)));
        }
    });
    Shared::new(sender)
}

/// What is answered to these bytes by a server that is not busy.
fn answer(shared: &Shared, bytes: &[u8]) -> String {
    let (ours, theirs) = UnixStream::pair().unwrap();
    *shared.root.lock().unwrap() = TokenBucket::new(1e6);
    *shared.others.lock().unwrap() = TokenBucket::new(1e6);
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(theirs, shared));
        // It may have been refused, and the socket closed, before all is written.
        let _ = (&ours).write_all(bytes);
        let _ = ours.shutdown(Shutdown::Write);
        let mut line = String::new();
        // Reset, if it was closed with bytes unread: those who write too much may miss why.
        let _ = BufReader::new(&ours).read_line(&mut line);
        let _ = server.join().expect("the server panicked");
        line
    })
}

#[test]
fn what_is_no_request_is_answered() {
    let shared = shared();
    for bytes in [&b"\n"[..], b"", b"{}", b"\xff\xfe\n", b"[[[[[[\n", b"\"status"] {
        let said = answer(&shared, bytes);
        assert!(said.contains("not a request"), "{said}");
    }
    assert!(answer(&shared, b"\"status\"\n\"reload\"\n").contains("asked Status"));
    assert!(answer(&shared, &[b'['; REQUEST_MAX_BYTES]).contains("longer than 4096 bytes"));
    assert!(answer(&shared, &[&b"[".repeat(4000)[..], b"\n"].concat()).contains("not a request"));
}

proptest! {
    /// Anything at all gets one line of JSON and harms nobody.
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let said = answer(&shared(), &bytes);
        prop_assert!(serde_json::from_str::<Reply>(&said).is_ok(), "{said}");
    }

    /// So does what is nearly a request.
    #[test]
    fn nearly_requests_are_answered(
        text in r#"\{?"(set_policy|status|reload|top|why|x)"(:\{"(mode|pid|tasks|policy)":("[a-z]{0,9}"|-?[0-9]{0,20}|\{\}|null)\}\}?)?"#
    ) {
        let said = answer(&shared(), text.as_bytes());
        prop_assert!(serde_json::from_str::<Reply>(&said).is_ok(), "{text}: {said}");
    }
}

#[test]
fn others_than_root_may_look() {
    let shared = shared();
    let said = |uid, text: &str| format!("{:?}", shared.reply(uid, Ok(text.into())));
    assert!(said(1000, "\"reload\"").contains("needs root"));
    assert!(said(1000, "\"status\"").contains("asked Status"));
    assert!(said(0, "\"reload\"").contains("asked Reload"));
}

#[test]
fn who_asks_too_often_is_told_so_and_no_other_is() {
    let shared = shared();
    let said = |uid| format!("{:?}", shared.reply(uid, Ok(b"\"status\"".to_vec())));
    let begin = Instant::now();
    let answered = (0..100).filter(|_| !said(1000).contains("too many requests")).count() as f64;
    // Those of one second at once, and then as time goes on: on a busy machine that is a while.
    let most = OTHERS_PER_S * (1.0 + begin.elapsed().as_secs_f64());
    assert!((OTHERS_PER_S..=most.max(OTHERS_PER_S)).contains(&answered), "{answered} of 100");
    assert!(said(0).contains("asked Status"));
    let mut bucket = TokenBucket::new(2.0);
    let now = Instant::now();
    assert!(bucket.take(now) && bucket.take(now) && !bucket.take(now));
    assert!(bucket.take(now + Duration::from_secs(1)));
}

#[test]
fn so_many_clients_are_served_at_a_time_and_one_more_is_refused() {
    let shared = Arc::new(shared());
    let connect = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        receive(&shared, theirs);
        ours
    };
    let said = |mut client: UnixStream| {
        // It may have been refused before.
        let _ = client.write_all(b"\"status\"\n");
        let mut line = String::new();
        BufReader::new(client).read_line(&mut line).unwrap();
        line
    };
    let most = if is_root() { CLIENTS_MAX } else { CLIENTS_MAX / 2 };
    let clients: Vec<UnixStream> = (0..most).map(|_| connect()).collect();
    assert!(said(connect()).contains("too many clients"));
    drop(clients);
    let begin = Instant::now();
    while !said(connect()).contains("asked Status") {
        assert!(begin.elapsed() < TIMEOUT, "those who are gone still have their places");
    }
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    let (_ours, mut theirs) = UnixStream::pair().unwrap();
    let begin = Instant::now();
    let said = read_line(&mut theirs, begin + Duration::from_millis(50)).unwrap_err().to_string();
    assert!(said.contains("no request within"), "{said}");
    assert!(begin.elapsed() < TIMEOUT);
}

/// Its request may have waited while the agent was stopped.
#[test]
fn who_has_gone_is_not_served() {
    let shared = shared();
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&ours).write_all(b"\"status\"\n").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    assert!(!has_hung_up(&theirs), "it waits for the answer");
    drop(ours);
    assert_eq!(serve(theirs, &shared).unwrap_err().to_string(), "the client is gone");
}
