//! How long a live switch takes: from the request to the moment from which the surplus CPUs are
//! left alone.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use powerpack_load::clock::{self, NS_PER_MS};
use powerpack_load::schedstat;

use super::child::LoadProcess;

/// The load, and for how long it runs before the switch and after it (s).
const LOAD: &str = "light";
const HALF_S: u64 = 2;
/// How often the CPUs' run times are read (ms): finer, and reading them would
/// be most of the load.
const WINDOW_MS: u64 = 10;
/// A CPU that ran for longer in a window was used (ns). Shorter is the
/// housekeeping of its own kernel threads; the shortest task runs for 0.1 ms.
const USED_NS: u64 = 50_000;
/// A CPU is drained once it has been left alone for this long (ms).
const QUIET_MS: u64 = 200;

/// What the switch did.
pub struct Drained<T> {
    pub switched: T,
    /// When all CPUs but the busiest were left alone; the end of the load where they never were
    /// (ms after the request).
    pub drained_ms: u64,
}

/// How long all of it takes (s).
pub const SECONDS: f64 = 2.0 * HALF_S as f64;

/// Runs a load and, in the middle, `switch`.
pub fn run<T: Send>(switch: impl FnOnce() -> Result<T> + Send) -> Result<Drained<T>> {
    // Dropped, it ends; a second more, so that it does not end by itself.
    let load = LoadProcess::workload(LOAD, [SECONDS + 1.0, 0.0], 0, None)?;
    load.next_message(Duration::from_secs(HALF_S))?;
    thread::sleep(Duration::from_secs(HALF_S));
    let begin = clock::now_ns();
    let (switched, readings) = thread::scope(|scope| {
        let switch = scope.spawn(switch);
        let readings = watch(begin, begin + HALF_S * 1000 * NS_PER_MS as u64);
        (switch.join().expect("the switching thread panicked"), readings)
    });
    let drained_ms = drained(&readings?, QUIET_MS / WINDOW_MS).unwrap_or(HALF_S * 1000);
    Ok(Drained { switched: switched?, drained_ms })
}

/// The CPUs' run times, as their tasks leave them, every `WINDOW_MS` from `begin` to `end`.
fn watch(begin: u64, end: u64) -> Result<Vec<Vec<u64>>> {
    clock::exact_timers();
    let mut readings = vec![schedstat::counted_ns()?];
    let mut next = begin;
    loop {
        next += WINDOW_MS * NS_PER_MS as u64;
        if next > end {
            return Ok(readings);
        }
        clock::sleep_until(next);
        readings.push(schedstat::counted_ns()?);
    }
}

/// When (ms) all but the busiest together were left alone for `settle` windows for the first
/// time.
fn drained(readings: &[Vec<u64>], settle: u64) -> Option<u64> {
    let cpus = readings[0].len();
    let total = |cpu: usize| readings[readings.len() - 1][cpu] - readings[0][cpu];
    let busiest = (0..cpus).max_by_key(|&cpu| total(cpu)).unwrap_or(0);
    let any = readings
        .windows(2)
        .map(|w| (0..cpus).any(|cpu| cpu != busiest && w[1][cpu] - w[0][cpu] > USED_NS));
    first_quiet(any, settle)
}

/// The beginning (ms) of the first `settle` windows in a row without use.
fn first_quiet(used: impl Iterator<Item = bool>, settle: u64) -> Option<u64> {
    let mut quiet = 0;
    for (window, used) in (1..).zip(used) {
        quiet = if used { 0 } else { quiet + 1 };
        if quiet == settle.max(1) {
            return Some((window - quiet) * WINDOW_MS);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drained_is_when_the_quiet_begins_not_when_it_is_noticed() {
        // CPU 0 works on; CPU 1 stops after two windows, with a hiccup before;
        // CPU 2 never rests for two windows. The last step is housekeeping.
        let ms = 1_000_000;
        let readings = [
            vec![0, 0, 0],
            vec![9 * ms, 0, ms],
            vec![18 * ms, ms, ms],
            vec![27 * ms, ms, 2 * ms],
            vec![36 * ms, ms + 1000, 2 * ms],
            vec![45 * ms, ms + 2000, 3 * ms],
        ];
        assert_eq!(drained(&readings, 2), None);
        let without_two: Vec<_> = readings.iter().map(|r| r[..2].to_vec()).collect();
        assert_eq!(drained(&without_two, 2), Some(20));
    }
}
