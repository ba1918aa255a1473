//! Threads that keep CPUs busy, or wake them, until they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;
use powerpack_load::clock;

/// Additions in a piece of work: less than a tenth of a millisecond, so that it ends soon.
const PIECE: u64 = 20_000;

/// What runs.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Load {
    /// A thread on each CPU of `busy` that computes without a pause; and on each of `waking`, with its
    /// period (ns), one that wakes and does nothing.
    pub fn start(busy: &[usize], waking: Option<(usize, u64)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads: Vec<_> = busy
            .iter()
            .map(|&cpu| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || compute(cpu, &stop))
            })
            .collect();
        threads.extend(waking.map(|(cpu, period_ns)| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || wake(cpu, period_ns, &stop))
        }));
        Load { stop, threads }
    }

    /// Ends it. Fails with a sentence if a thread could not run where it was to.
    pub fn end(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            result = result.and(thread.join().expect("a load thread panicked"));
        }
        result
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Whoever drops it has an error already.
        let _ = self.join();
    }
}

fn compute(cpu: usize, stop: &AtomicBool) -> Result<()> {
    clock::pin(&[cpu])?;
    while !stop.load(Ordering::Relaxed) {
        clock::work(PIECE);
    }
    Ok(())
}

fn wake(cpu: usize, period_ns: u64, stop: &AtomicBool) -> Result<()> {
    clock::pin(&[cpu])?;
    clock::exact_timers();
    let mut next = clock::now_ns();
    while !stop.load(Ordering::Relaxed) {
        next += period_ns;
        clock::sleep_until(next);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_until_it_is_ended_and_says_where_it_cannot() {
        let load = Load::start(&[0], Some((0, 1_000_000)));
        thread::sleep(std::time::Duration::from_millis(20));
        load.end().unwrap();
        assert!(Load::start(&[1023], None).end().is_err());
    }
}
