//! `scx_powerpack why PID`: where a task was put, and why, as it happens.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::control::protocol::{Reply, Request, ask};
use crate::control::status::Status;
use crate::machine::names;
use crate::scheduler::placement::{Placement, Why};

/// How often placements are requested: more often than the ring fills up.
const POLL: Duration = Duration::from_millis(100);
/// How long to wait for a task that does nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the next `count` placements of a process or thread, or those of the next seconds.
/// Fails if there is no such process, no scheduler, or for anyone but root.
pub fn run(pid: u32, count: usize) -> Result<()> {
    let Some(name) = names::of_task(pid) else {
        bail!("there is no process or thread {pid}");
    };
    let Reply::Status(status) = ask(&Request::Status)? else {
        bail!("the running scheduler is of another version: restart it");
    };
    let mut log = PlacementLog::new(&status);
    println!("placements of {} ({pid}) from now on, mode {}", name, status.mode);
    println!("{:>9}  {:>7}  {:>4}  {:>4}  why", "s", "thread", "cpu", "rank");
    let begin = Instant::now();
    let (mut shown, mut lost_before) = (0, None);
    while shown < count && begin.elapsed() < PATIENCE {
        let Reply::Why { placements, lost } = ask(&Request::Why { pid, end: false })? else {
            bail!("the running scheduler is of another version: restart it");
        };
        let new = lost.saturating_sub(lost_before.replace(lost).unwrap_or(lost));
        if new > 0 {
            println!("    {new} are missing: they came too fast");
        }
        for line in log.lines(placements).into_iter().take(count - shown) {
            println!("{line}");
            shown += 1;
        }
        thread::sleep(POLL);
    }
    ask(&Request::Why { pid, end: true })?;
    if shown == 0 {
        println!("none in {} s: {}", PATIENCE.as_secs(), why_none(policy_of(pid)));
    }
    Ok(())
}

/// The scheduling policy of a process or thread, as the kernel numbers them; negative if it has gone.
fn policy_of(pid: u32) -> i32 {
    // SAFETY: no pointer is passed.
    let policy = unsafe { libc::sched_getscheduler(pid as i32) };
    if policy < 0 { policy } else { policy & !libc::SCHED_RESET_ON_FORK }
}

fn why_none(policy: i32) -> &'static str {
    match policy {
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE => {
            "it is a real-time task, which the kernel places by itself"
        }
        _ if policy < 0 => "it has ended",
        _ => "it sleeps, or goes on running without being placed again",
    }
}

/// Makes lines of placements; a placement is reported when the task has begun to run.
struct PlacementLog {
    rank_of_cpu: BTreeMap<usize, usize>,
    begin_ns: u64,
    /// Threads that were put somewhere and have not run there yet.
    waiting: BTreeMap<u32, Placement>,
}

impl PlacementLog {
    fn new(status: &Status) -> Self {
        let rank_of_cpu = status.ranks.iter().enumerate().map(|(rank, &cpu)| (cpu, rank)).collect();
        PlacementLog { rank_of_cpu, begin_ns: status.now_ns, waiting: BTreeMap::new() }
    }

    fn lines(&mut self, placements: Vec<Placement>) -> Vec<String> {
        let mut lines = Vec::new();
        for placement in placements {
            if placement.why != Why::Runs {
                self.waiting.insert(placement.pid, placement);
            } else if let Some(put) = self.waiting.remove(&placement.pid) {
                lines.push(self.line(&put, &placement));
            }
        }
        lines
    }

    fn line(&self, put: &Placement, runs: &Placement) -> String {
        let rank = self.rank_of_cpu.get(&runs.cpu).copied().unwrap_or(0);
        let waited_us = runs.now_ns.saturating_sub(put.now_ns) / 1000;
        let elsewhere = match put.why {
            // Any CPU of the set may take it from the queue.
            Why::Queued => String::new(),
            _ if runs.cpu == put.cpu => String::new(),
            _ => format!("; CPU {} took it", runs.cpu),
        };
        format!(
            "{:>9.3}  {:>7}  {:>4}  {:>4}  {}{elsewhere}; ran after {}",
            put.now_ns.saturating_sub(self.begin_ns) as f64 / 1e9,
            put.pid,
            runs.cpu,
            rank,
            reason(put),
            ms(waited_us)
        )
    }
}

fn ms(us: u64) -> String {
    format!("{:.2} ms", us as f64 / 1e3)
}

/// Why the task was put there.
fn reason(put: &Placement) -> String {
    let packed = if put.active { "active" } else { "surplus" };
    match put.why {
        Why::Waker => "with its waker, which is about to sleep".into(),
        Why::Idle if put.cpu == put.prev_cpu => format!("idle {packed} CPU, where it ran before"),
        Why::Idle => format!("idle {packed} CPU (it ran on CPU {})", put.prev_cpu),
        Why::Queued => format!(
            "waits for the active CPUs: {} expected, {} allowed",
            ms(put.expected_us),
            ms(put.budget_us)
        ),
        Why::Spilled if put.expected_us > put.budget_us => format!(
            "spilled: {} expected on the active CPUs, {} allowed",
            ms(put.expected_us),
            ms(put.budget_us)
        ),
        Why::Spilled => "spilled: the active CPUs have no room for it".into(),
        Why::Bound => "pinned: no other CPU is allowed now".into(),
        Why::ChosenIdle => "idle, of the CPUs that it is confined to".into(),
        Why::ChosenBusy => "all CPUs that it is confined to are busy: the shortest queue".into(),
        Why::Offline => "its CPU goes offline".into(),
        Why::Throttled => "its cgroup has used up its cpu.max: it waits for the next period".into(),
        Why::Runs => "runs".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(why: Why, cpu: usize, now_us: u64) -> Placement {
        Placement {
            now_ns: now_us * 1000,
            pid: 7,
            why,
            cpu,
            prev_cpu: 1,
            active: true,
            util: 100,
            expected_us: 7100,
            budget_us: 5000,
        }
    }

    fn log() -> PlacementLog {
        PlacementLog { rank_of_cpu: [(1, 0), (2, 1)].into(), begin_ns: 0, waiting: BTreeMap::new() }
    }

    #[test]
    fn a_placement_is_reported_once_the_task_runs() {
        let mut log = log();
        assert!(log.lines(vec![placement(Why::Spilled, 1, 1000)]).is_empty());
        let lines = log.lines(vec![
            placement(Why::Runs, 2, 3500),
            // It goes on without being placed.
            placement(Why::Runs, 2, 7000),
        ]);
        assert_eq!(lines.len(), 1);
        for part in [
            "0.001",
            "7.10 ms expected on the active CPUs, 5.00 ms allowed",
            "CPU 2 took it",
            "ran after 2.50 ms",
        ] {
            assert!(lines[0].contains(part), "{}", lines[0]);
        }
    }

    #[test]
    fn a_task_that_is_not_ours_is_said_to_be_so() {
        assert!(why_none(libc::SCHED_RR).contains("real-time"));
        assert!(why_none(libc::SCHED_BATCH).contains("sleeps"));
        assert_eq!(
            (policy_of(std::process::id()), policy_of(i32::MAX as u32)),
            (libc::SCHED_OTHER, -1)
        );
    }

    #[test]
    fn each_reason_has_a_sentence_of_its_own() {
        let all = [Why::Waker, Why::Idle, Why::Queued, Why::Spilled, Why::Bound]
            .into_iter()
            .chain([Why::ChosenIdle, Why::ChosenBusy, Why::Offline, Why::Throttled, Why::Runs]);
        let said: std::collections::BTreeSet<String> =
            all.map(|why| reason(&placement(why, 2, 0))).collect();
        assert_eq!(said.len(), 10);
        assert!(reason(&placement(Why::Idle, 1, 0)).contains("ran before"));
        let full = Placement { expected_us: 100, ..placement(Why::Spilled, 2, 0) };
        assert!(reason(&full).contains("no room"));
    }
}
