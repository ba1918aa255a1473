//! Programs that know what no file says.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crossbeam::channel::{RecvTimeoutError, bounded};

/// Longer than systemd takes on a busy machine. A report must end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `program` prints, whatever its exit status is: some say "inactive" by it. Fails with the reason.
pub fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|err| format!("cannot run {program}: {err}"))?;
    let mut stdout = child.stdout.take().expect("it is piped");
    let (sender, receiver) = bounded(1);
    thread::spawn(move || {
        let mut bytes = vec![];
        let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
        let _ = sender.send(read);
    });
    let read = receiver.recv_timeout(PATIENCE);
    if matches!(read, Err(RecvTimeoutError::Timeout)) {
        // It may have ended just now.
        let _ = child.kill();
    }
    let _ = child.wait();
    match read {
        Ok(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(err)) => Err(format!("cannot read what {program} prints: {err}")),
        Err(_) => Err(format!("{program} did not end within {} s", PATIENCE.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_counts_and_a_program_that_is_missing_is_named() {
        assert_eq!(output("sh", &["-c", "echo inactive; exit 3"]).unwrap(), "inactive\n");
        assert!(output("no-such-program", &[]).unwrap_err().contains("cannot run no-such-program"));
    }
}
