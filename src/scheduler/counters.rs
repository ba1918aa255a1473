//! What happened since the scheduler was loaded.

use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;

/// An event that is counted: a line of `src/bpf/events.h`.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The counter's name in `--stats` and `status`.
    pub name: &'static str,
    /// The metric, without `_total`.
    pub family: &'static str,
    /// The metric's label and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// What is counted.
    pub help: &'static str,
}

// From the table of events: `Counters`, a field an event, and `EVENTS`.
include!(concat!(env!("OUT_DIR"), "/counters.rs"));

impl Counters {
    /// Sums the events of all CPUs.
    pub fn of(snapshot: &Snapshot) -> Self {
        let sum = |event: usize| snapshot.cpus.iter().map(|cpu| cpu.events[event]).sum();
        let active = &snapshot.active;
        Counters::new(active.nr.into(), active.demand, std::array::from_fn(sum))
    }

    /// What happened since `earlier`; sizes stay as they are now.
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (self.events(), earlier.events());
        let events = std::array::from_fn(|event| now[event] - then[event]);
        Counters::new(self.active_cpus, self.demand, events)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::bpf_intf as intf;
    use crate::scheduler::latency::Latency;

    /// A counter that BPF writes and that is summed nowhere would be lost in silence.
    #[test]
    fn every_event_is_reported() {
        let mut cpu: intf::pp_cpu = unsafe { std::mem::zeroed() };
        cpu.events = std::array::from_fn(|event| 1 << event);
        let snapshot = Snapshot {
            now_ns: 0,
            active: unsafe { std::mem::zeroed() },
            active_ranks: vec![],
            cpus: vec![cpu],
            has_cpufreq: false,
            waiting_of_cpu: vec![],
            waiting_of_llc: vec![],
            latency: Latency::default(),
        };
        let json = serde_json::to_value(Counters::of(&snapshot)).unwrap();
        let sum: u64 = json.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
        assert_eq!(sum, (1 << intf::pp_event_PP_NR_EVENTS) - 1);
    }

    /// A new counter is one line of the table, and has all that follows from it.
    #[test]
    fn a_line_of_the_table_makes_a_counter() {
        use crate::scheduler::event_table::{parse, to_rust};
        let header = include_str!("../bpf/events.h");
        let line = "X(MIGRATE,";
        let added = "X(NEW_ONE, new_ones, _, _, \"Times it was new\") \\\n\tX(MIGRATE,";
        let (before, after) =
            (parse(header).unwrap(), parse(&header.replace(line, added)).unwrap());
        assert_eq!(before.len(), EVENTS.len());
        assert_eq!(after.len(), EVENTS.len() + 1);
        let rust = to_rust(&after);
        for part in
            ["pub new_one: u64,", "self.new_one,", "name: \"new_one\", family: \"new_ones\""]
        {
            assert!(rust.contains(part), "{part}");
        }
        for nr in [1, 9] {
            let more = |nth| format!("X(MORE_{nth}, more, _, _, \"\") \\\n\t");
            let more: String = (0..nr).map(more).collect();
            assert_interface_compiles(&header.replace(line, &format!("{more}{line}")));
        }
        assert!(parse(&header.replace(line, "X(NO_HELP, a, _, _) \\\n\tX(MIGRATE,")).is_err());
        assert!(parse(&header.replace(line, "X(SHORT, \"a\") \\\n\tX(MIGRATE,")).is_err());
    }

    /// What intf.h asserts must hold with another table, too.
    fn assert_interface_compiles(table: &str) {
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let mut cc = Command::new(cc)
            .args(["-fsyntax-only", "-I", "src/bpf", "-x", "c", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("{table}\n#include \"intf.h\"\n");
        cc.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = cc.wait_with_output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    #[test]
    fn the_fields_are_in_the_order_of_the_enum() {
        assert_eq!(EVENTS[intf::pp_event_PP_EV_WAKE_IDLE as usize].name, "wake_idle");
        assert_eq!(EVENTS[intf::pp_event_PP_EV_MIGRATE as usize].name, "migrate");
        assert_eq!(EVENTS.len(), intf::pp_event_PP_NR_EVENTS as usize);
    }
}
