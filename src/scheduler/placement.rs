//! Tasks, and where they were put, as BPF reports them.

use serde::{Deserialize, Serialize};

use crate::bpf_intf as intf;

/// A task that has run lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Of the thread.
    pub pid: u32,
    pub tgid: u32,
    /// Where it has run last.
    pub cpu: usize,
    /// Its utilization, 0..1024.
    pub util: u32,
}

/// Why a task was put where it is, or that it began to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// On the clock of `Status::now_ns`.
    pub now_ns: u64,
    /// Of the thread.
    pub pid: u32,
    pub why: Why,
    pub cpu: usize,
    /// Where it had run before.
    pub prev_cpu: usize,
    /// The CPU is of the active set.
    pub active: bool,
    /// The task's utilization, 0..1024.
    pub util: u32,
    /// How long it would have had to wait for the active CPUs (us), as last computed.
    pub expected_us: u64,
    /// How long it may.
    pub budget_us: u64,
}

/// `enum pp_why`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Waker,
    Idle,
    Queued,
    Spilled,
    Bound,
    ChosenIdle,
    ChosenBusy,
    Offline,
    Throttled,
    Runs,
}

impl Placement {
    /// What BPF has written.
    pub fn of(record: &intf::pp_why_record) -> Self {
        let why = match record.why {
            intf::pp_why_PP_WHY_WAKER => Why::Waker,
            intf::pp_why_PP_WHY_IDLE => Why::Idle,
            intf::pp_why_PP_WHY_QUEUED => Why::Queued,
            intf::pp_why_PP_WHY_SPILLED => Why::Spilled,
            intf::pp_why_PP_WHY_BOUND => Why::Bound,
            intf::pp_why_PP_WHY_CHOSEN_IDLE => Why::ChosenIdle,
            intf::pp_why_PP_WHY_CHOSEN_BUSY => Why::ChosenBusy,
            intf::pp_why_PP_WHY_OFFLINE => Why::Offline,
            intf::pp_why_PP_WHY_THROTTLED => Why::Throttled,
            // PP_WHY_RUNS; a test looks for others.
            _ => Why::Runs,
        };
        Placement {
            now_ns: record.now_ns,
            pid: record.pid,
            why,
            cpu: record.cpu as usize,
            prev_cpu: record.prev_cpu as usize,
            active: record.active != 0,
            util: record.util,
            expected_us: record.expected_ns / 1000,
            budget_us: record.budget_ns / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reason that is left out above would read as one that is no placement.
    #[test]
    fn every_reason_that_bpf_gives_has_its_name() {
        let (_, text) = include_str!("../bpf/intf.h").split_once("enum pp_why {").unwrap();
        let (text, _) = text.split_once("};").unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.trim().strip_prefix("PP_WHY_")?.split_once(',')?.0))
            .collect();
        assert_eq!(names.len() - 1, intf::pp_why_PP_WHY_RUNS as usize, "it is the last one");
        for (why, name) in names.into_iter().enumerate() {
            // SAFETY: plain integers.
            let mut record: intf::pp_why_record = unsafe { std::mem::zeroed() };
            record.why = why as u32;
            let said = serde_json::to_value(Placement::of(&record).why).unwrap();
            assert_eq!(said, name.to_lowercase());
        }
    }
}
