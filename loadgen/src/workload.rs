//! Workloads, for real.

use anyhow::{Result, ensure};
use powerpack_workload::{Rhythm, TaskKind, Workload, ns, parse_cpu_list};

use crate::engine::{Kind, Work};

/// The threads of a workload. Fails if it asks for what only the simulator has. Whose
/// tasks a device wakes there are woken by their timers.
pub fn kinds(workload: &Workload) -> Result<Vec<Kind>> {
    workload.task.iter().map(kind).collect()
}

fn kind(task: &TaskKind) -> Result<Kind> {
    let name = task.label();
    ensure!(
        task.cgroup_weight.is_none() && task.workload.is_none(),
        "task {name}: only the simulator makes cgroups; put this program into one"
    );
    Ok(Kind {
        count: task.count,
        nice: task.nice,
        cpus: task.cpus.as_deref().map_or(Ok(vec![]), parse_cpu_list)?,
        jitter_pct: task.jitter_pct,
        fixed_work: task.fixed_work,
        work: work(task),
        name,
    })
}

fn work(task: &TaskKind) -> Work {
    let every = |period_ms: f64| Rhythm::every(ns(period_ms));
    if let Some(spec) = task.periodic {
        Work::Periodic { run_ns: ns(spec.run_ms), rhythm: spec.rhythm() }
    } else if let Some(spec) = task.bursts {
        Work::Periodic { run_ns: ns(spec.run_ms), rhythm: spec.rhythm() }
    } else if let Some(spec) = &task.pipeline {
        let runs_ns = spec.run_ms.iter().map(|&run_ms| ns(run_ms)).collect();
        Work::Pipeline { runs_ns, rhythm: every(spec.period_ms) }
    } else if let Some(spec) = task.fork_join {
        Work::ForkJoin {
            workers: spec.workers,
            run_ns: ns(spec.run_ms),
            leader_ns: ns(spec.leader_ms),
            period_ns: ns(spec.period_ms),
        }
    } else if let Some(spec) = task.client {
        Work::Client { run_ns: ns(spec.run_ms), think_ns: ns(spec.think_ms) }
    } else if let Some(spec) = task.exchange {
        Work::Exchange { tasks: spec.tasks, messages: spec.messages, run_ns: ns(spec.run_ms) }
    } else {
        Work::Hog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Course, run};
    use crate::record::TaskReport;

    /// What one kind of task does within `seconds`.
    fn report(task: &str, seconds: f64) -> TaskReport {
        report_of(task, Course { seconds, ..Course::default() })
    }

    fn report_of(task: &str, course: Course) -> TaskReport {
        let text = format!("name=''\nabout=''\n[[task]]\n{task}\n");
        let kinds = kinds(&Workload::parse(&text).unwrap()).unwrap();
        run(&kinds, course).unwrap().tasks.into_iter().next().unwrap()
    }

    /// Where a CPU is taken away below the kernel (a VM's host), a thread is billed for it.
    const TRIES: usize = 10;

    /// What `task` does within a second, having burnt `expected_s` an activation. CPU time is
    /// the kernel's count, what it is to be is the workload's: setting up a thread, going to
    /// sleep, and what the CPUs lost meanwhile are the difference. Never less; more
    /// by chance, but not each time.
    fn burns(task: &str, expected_s: f64) -> TaskReport {
        let mut tries = Vec::new();
        for _ in 0..TRIES {
            let lost_before_s = lost_s();
            let task = report(task, 1.0);
            let lost_s = lost_s() - lost_before_s;
            let min = expected_s * task.activations as f64;
            assert!(task.cpu_s >= min, "less than {min}: {task:?}");
            if task.cpu_s < min * 1.02 + 0.002 * task.threads as f64 + lost_s {
                return task;
            }
            tries.push((task.cpu_s, min, lost_s));
        }
        panic!("{task} burns more than {expected_s} s an activation: (s, min, lost) {tries:?}");
    }

    /// What a VM's host and interrupts took from all CPUs since boot (s).
    fn lost_s() -> f64 {
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks = |field: &str| field.parse::<f64>().unwrap();
        // irq, softirq and steal of the line of all CPUs.
        let fields = stat.lines().next().unwrap().split_whitespace().skip(6).take(3);
        fields.map(ticks).sum::<f64>() / 100.0
    }

    #[test]
    fn every_kind_burns_what_its_file_says() {
        burns("periodic = { run_ms = 5, period_ms = 50 }", 0.005);
        let task = burns("pipeline = { run_ms = [2, 3, 1], period_ms = 50 }", 0.006);
        assert_eq!(task.threads, 3);
        burns("client = { run_ms = 5, think_ms = 20 }", 0.005);
        let team = "fork_join = { workers = 3, run_ms = 5, leader_ms = 2, period_ms = 100 }";
        let task = burns(team, 0.017);
        assert_eq!(task.threads, 4);
        assert!(task.activations > 0 && task.response.p50_us >= 5_000.0, "{task:?}");
    }

    #[test]
    fn fixed_work_goes_by_the_rate_not_by_time() {
        let spec = "fixed_work = true\nperiodic = { run_ms = 5, period_ms = 50 }";
        // Of a CPU that does ten times as much, the same load asks for ten times as many
        // additions: for about ten times the CPU time here, however fast this CPU is just now.
        let least_s = |additions_per_s| {
            let course = Course { seconds: 0.5, additions_per_s, ..Course::default() };
            let tries = std::iter::repeat_with(|| report_of(spec, course)).take(3);
            tries.map(|task| task.cpu_s / task.activations as f64).fold(f64::MAX, f64::min)
        };
        let times = least_s(1_000_000_000) / least_s(100_000_000);
        assert!((4.0..25.0).contains(&times), "{times} times the CPU time");
        assert!(report(spec, 0.5).records_per_s.is_none());
        let task = report("fixed_work = true\nhog = true", 0.5);
        assert_eq!(task.records_per_s, Some(task.activations as f64 / 0.5));
        assert!(task.activations > 0, "{task:?}");
    }

    #[test]
    fn messages_go_on_until_the_end() {
        // Of 1 ms the way to sleep and back (30 us in a VM on a busy machine) is 3 %.
        let spec = "exchange = { tasks = 5, messages = 3, run_ms = 6 }";
        let tries = std::iter::repeat_with(|| burns(spec, 0.006)).take(TRIES);
        // Three under way: on one CPU alone some 160, and few in a second on a busy machine.
        let goes_on = |task: &TaskReport| {
            assert_eq!(task.threads, 5);
            task.activations > 10 && task.wake_latency.count > 7
        };
        assert!(tries.into_iter().any(|task| goes_on(&task)), "each message went on once or twice");
    }

    #[test]
    fn what_is_not_done_when_its_period_ends_is_an_overrun() {
        let late = [
            "pipeline = { run_ms = [15, 15], period_ms = 20 }",
            "fork_join = { workers = 1, run_ms = 30, leader_ms = 1, period_ms = 20 }",
        ];
        for task in late {
            let task = report(task, 0.3);
            assert!(task.activations > 0 && task.overruns == task.activations, "{task:?}");
        }
        let team = "fork_join = { workers = 1, run_ms = 3, leader_ms = 1, period_ms = 0 }";
        assert_eq!(report(team, 0.1).overruns, 0, "it has no period");
    }

    #[test]
    fn whoever_another_thread_wakes_has_a_latency() {
        let task = report("pipeline = { run_ms = [1, 1], period_ms = 50 }", 0.5);
        assert!(task.wake_latency.count > task.activations, "{task:?}");
        // The leader's timer, its call, and the worker's.
        let team = "fork_join = { workers = 1, run_ms = 10, leader_ms = 1, period_ms = 50 }";
        let task = report(team, 0.5);
        assert!(task.wake_latency.count > 2 * task.activations, "{task:?}");
    }

    #[test]
    fn bursts_are_on_and_off() {
        let spec = "{ run_ms = 1, period_ms = 20, on_ms = 100, off_ms = 400 }";
        let task = report(&format!("bursts = {spec}"), 1.0);
        // Five in each of two bursts, less what was skipped.
        assert!((1..=10).contains(&task.activations), "{task:?}");
        assert_eq!(report("hog = true", 0.1).activations, 0);
    }

    #[test]
    fn shipped_workloads_can_be_run_and_what_cannot_is_reported() {
        for (name, text) in powerpack_workload::SHIPPED {
            let kinds = kinds(&Workload::parse(text).unwrap());
            assert!(kinds.is_ok_and(|kinds| !kinds.is_empty()), "{name}");
        }
        let text = "name=''\nabout=''\n[[task]]\nhog = true\ncgroup_weight = 50\n";
        let err = kinds(&Workload::parse(text).unwrap()).unwrap_err();
        assert!(err.to_string().contains("only the simulator makes cgroups"));
        let far = "name=''\nabout=''\n[[task]]\nhog = true\ncpus = \"1023\"\n";
        let kinds = kinds(&Workload::parse(far).unwrap()).unwrap();
        assert!(run(&kinds, Course { seconds: 0.1, ..Course::default() }).is_err());
    }
}
