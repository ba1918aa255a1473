//! `scx_powerpack why --cpu N`: what has woken a CPU.

use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use crossbeam::channel::{Receiver, bounded};
use powerpack_load::clock;
use powerpack_load::schedstat::Reading;

use crate::control::protocol::{Reply, Request, ask};
use crate::machine::cpu_counts::polling_state;
use crate::machine::kernel::{check_root, loaded_scheduler};
use crate::machine::topology::read_cpu_list;
use crate::signals::hear_signals;
use crate::wakes::Watch;
use crate::wakes::cause::{Cause, Wakeups};

/// How often the events are fetched: more often than the ring fills up.
const LOOK: Duration = Duration::from_millis(100);
/// Causes beyond are summed up: those that matter are first.
const ROWS_MAX: usize = 20;

/// Prints what has woken a CPU in the next `duration`, or until Ctrl-C. Fails if there is no such CPU,
/// the kernel cannot be traced, or for anyone but root.
pub fn run(cpu: usize, duration: Duration) -> Result<()> {
    check_root("watching what wakes a CPU")?;
    let online = check_online(cpu)?;
    let place = online.iter().position(|&other| other == cpu);
    let stopped = on_signal()?;
    // What looks does not wake it. Where there is no other CPU it does.
    let others: Vec<usize> = online.into_iter().filter(|&other| other != cpu).collect();
    let _ = clock::pin(&others);
    let what = describe(cpu);
    let mut object = MaybeUninit::uninit();
    let mut watch = Watch::start(cpu, &mut object)?;
    let mut wakeups = Wakeups::new(polling_state(Path::new("/"), cpu));
    let (begin, before) = (Instant::now(), Reading::now().ok());
    while begin.elapsed() < duration {
        let left = duration.saturating_sub(begin.elapsed()).min(LOOK);
        let ended = stopped.recv_timeout(left).is_ok();
        watch.look()?.into_iter().for_each(|event| wakeups.take(event));
        if ended {
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let non_idle_pct = before.zip(Reading::now().ok()).and_then(|(before, after)| {
        before.non_idle_until(&after).non_idle_pct.get(place?).copied()
    });
    println!("{}", title(&what, &wakeups, seconds, non_idle_pct));
    table(&wakeups, seconds).iter().for_each(|line| println!("{line}"));
    remarks(&wakeups, &watch).iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// The CPUs that are online, of which `cpu` must be one.
fn check_online(cpu: usize) -> Result<Vec<usize>> {
    let possible = read_cpu_list("possible")?;
    let last = possible.last().copied().unwrap_or(0);
    ensure!(possible.contains(&cpu), "there is no CPU {cpu}: they are numbered from 0 to {last}");
    let online = read_cpu_list("online")?;
    if !online.contains(&cpu) {
        bail!("CPU {cpu} is offline: nothing wakes it");
    }
    Ok(online)
}

/// A channel that gets something when the user wants an end.
fn on_signal() -> Result<Receiver<()>> {
    let (sender, stopped) = bounded(1);
    hear_signals(move |_| {
        // Once is enough.
        let _ = sender.try_send(());
    })?;
    Ok(stopped)
}

/// The CPU, and what it is to the scheduler.
fn describe(cpu: usize) -> String {
    let scheduler = match loaded_scheduler() {
        Some(name) => name,
        None => return format!("CPU {cpu}, no sched_ext scheduler"),
    };
    let status = match ask(&Request::Status) {
        Ok(Reply::Status(status)) => status,
        _ => return format!("CPU {cpu}, scheduler {scheduler}"),
    };
    let state =
        status.cpus.iter().find(|status| status.cpu == cpu).map_or("not known", |cpu| {
            match (cpu.isolated, cpu.active) {
                (true, _) => "isolated",
                (false, true) => "active",
                (false, false) => "surplus",
            }
        });
    format!("CPU {cpu}, {state} in mode {}", status.mode)
}

fn title(what: &str, wakeups: &Wakeups, seconds: f64, non_idle_pct: Option<f64>) -> String {
    let times: u64 = wakeups.counts().iter().map(|&(_, times)| times).sum();
    let ran =
        non_idle_pct.map_or(String::new(), |pct| format!("; tasks ran for {pct:.1} % of that"));
    format!(
        "{what}: woken {times} times in {seconds:.1} s, {:.1} a second{ran}",
        times as f64 / seconds
    )
}

fn table(wakeups: &Wakeups, seconds: f64) -> Vec<String> {
    let counts = wakeups.counts();
    if counts.is_empty() {
        return vec![];
    }
    let total: u64 = counts.iter().map(|&(_, times)| times).sum();
    let row = |times: u64, cause: String| {
        let share_pct = times as f64 / total as f64 * 100.0;
        let per_s = times as f64 / seconds;
        format!("{times:>7}  {per_s:>9.1}  {share_pct:>5.1}  {cause}")
    };
    let mut lines = vec![format!("{:>7}  {:>9}  {:>5}  cause", "times", "a second", "%")];
    let shown = counts.iter().take(ROWS_MAX);
    lines.extend(shown.map(|&(cause, times)| row(times, cause.to_string())));
    if let Some(rest) = counts.get(ROWS_MAX..).filter(|rest| !rest.is_empty()) {
        let times = rest.iter().map(|&(_, times)| times).sum();
        lines.push(row(times, format!("{} other causes", rest.len())));
    }
    lines
}

/// What the table cannot say.
fn remarks(wakeups: &Wakeups, watch: &Watch<'_>) -> Vec<String> {
    let mut lines = vec![];
    if wakeups.polled() > 0 {
        lines.push(format!(
            "{} times something came while it polled, before it slept",
            wakeups.polled()
        ));
    }
    if watch.lost() > 0 {
        lines.push(format!("{} events are missing: they came too fast", watch.lost()));
    }
    let is_reschedule = |cause: &Cause| matches!(cause, Cause::Reschedule);
    let has_any = wakeups.counts().iter().any(|&(cause, _)| is_reschedule(cause));
    if has_any && !watch.sees_kicks() && loaded_scheduler().is_some() {
        lines.push(
            "whose reschedule interrupts they are is not known: this kernel has no kprobes".into(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakes::event::{Event, Interrupt, What};

    /// Woken by each of `nr` devices, by the n-th one n times.
    fn woken_by(nr: u32) -> Wakeups {
        let mut wakeups = Wakeups::new(None);
        for nr in (1..=nr).flat_map(|nr| (0..nr).map(move |_| nr)) {
            let interrupt = Interrupt::Numbered { nr, name: "disk".into() };
            for what in [What::Sleeps(1), What::Interrupt(interrupt), What::Leaves] {
                wakeups.take(Event { now_ns: 0, what });
            }
        }
        wakeups.take(Event { now_ns: 0, what: What::Sleeps(1) });
        wakeups
    }

    #[test]
    fn a_row_has_count_rate_and_share() {
        let wakeups = woken_by(3);
        assert_eq!(
            title("CPU 3", &wakeups, 2.0, Some(1.25)),
            "CPU 3: woken 6 times in 2.0 s, 3.0 a second; tasks ran for 1.2 % of that"
        );
        assert_eq!(
            table(&wakeups, 2.0)[..2],
            ["  times   a second      %  cause", "      3        1.5   50.0  interrupt 3 disk"]
        );
    }

    #[test]
    fn what_is_rare_is_summed_up() {
        let lines = table(&woken_by(22), 1.0);
        assert_eq!(lines.len(), 1 + ROWS_MAX + 1);
        assert_eq!(lines[1 + ROWS_MAX], "      3        3.0    1.2  2 other causes");
        assert!(table(&woken_by(0), 1.0).is_empty());
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let said = check_online(99_999).unwrap_err().to_string();
        assert!(said.starts_with("there is no CPU 99999: they are numbered from 0 to "), "{said}");
    }
}
