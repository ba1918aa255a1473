//! Sound, as an application gives it to a sound server: a thread of the application, of no
//! priority, wakes at each period and then wakes a real-time thread, which has to be done before
//! the period is over. If it is not, that is heard (an xrun).

use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::clock;
use crate::samples::{Summary, summarize};
use crate::threads;

/// 256 frames of 48 kHz, a usual size of a buffer.
const PERIOD_NS: u64 = 5_333_333;
/// Priority of the real-time thread, as JACK and PipeWire have it at least.
const PRIORITY: i32 = 60;
/// Periods before it counts, for the scheduler to know the threads.
const WARM_UP: u64 = 100;

/// Whether the sound had gaps.
#[derive(Debug, Serialize)]
pub struct Report {
    pub periods: usize,
    /// Periods that were over before their work was.
    pub xruns: usize,
    /// From a period's planned begin until its work is done.
    pub response: Summary,
}

/// Plays for `seconds`; the application and the real-time thread use `run_us` of CPU time in each
/// period. Fails without the right to be a real-time task.
pub fn run(seconds: f64, run_us: [u64; 2]) -> Result<Report> {
    let [application_ns, server_ns] = run_us.map(|us| us * 1000);
    ensure!(application_ns + server_ns < PERIOD_NS, "a period has 5,333 us for both");
    // One period may be behind: then the application waits, as for a full buffer.
    let (sender, receiver) = sync_channel(1);
    let server = threads::start(move || serve(&receiver, server_ns))?;
    clock::exact_timers();
    let begin_ns = clock::now_ns() + PERIOD_NS;
    let periods = WARM_UP + (seconds * 1e9) as u64 / PERIOD_NS;
    for planned_ns in (0..periods).map(|nth| begin_ns + nth * PERIOD_NS) {
        clock::sleep_until(planned_ns);
        clock::burn(application_ns);
        if sender.send(planned_ns).is_err() {
            break;
        }
    }
    drop(sender);
    let responses = server.join().ok().context("the real-time thread has panicked")??;
    Ok(report(&responses))
}

fn report(responses_ns: &[u64]) -> Report {
    let counted = responses_ns.get(WARM_UP as usize..).unwrap_or_default();
    let xruns = counted.iter().filter(|&&response| response > PERIOD_NS).count();
    Report { periods: counted.len(), xruns, response: summarize(counted.to_vec()) }
}

/// The real-time thread: how long after its begin each period was done (ns).
fn serve(planned: &Receiver<u64>, run_ns: u64) -> Result<Vec<u64>> {
    clock::set_fifo(PRIORITY)?;
    let mut responses = vec![];
    for planned_ns in planned {
        clock::burn(run_ns);
        responses.push(clock::now_ns() - planned_ns);
    }
    Ok(responses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_by_more_than_a_period_is_heard() {
        let mut responses = vec![PERIOD_NS * 3; WARM_UP as usize];
        responses.extend([1_000_000, PERIOD_NS, PERIOD_NS + 1]);
        let report = report(&responses);
        assert_eq!((report.periods, report.xruns), (3, 1));
        assert_eq!(report.response.p50_us, 5333.333);
    }

    #[test]
    fn more_work_than_a_period_has_is_refused() {
        assert!(run(1.0, [3000, 2500]).unwrap_err().to_string().contains("5,333 us"));
    }
}
