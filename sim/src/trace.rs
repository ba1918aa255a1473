//! What happened, in the JSON trace format that Perfetto opens (ui.perfetto.dev):
//! a track for each CPU, a counter for each clock and for the active set.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::cpu::Cpu;

/// Perfetto's format counts in us.
const NS_PER_US: f64 = 1e3;
/// Its processes: CPUs' tracks, counters.
const CPUS: usize = 1;
const COUNTERS: usize = 2;

/// A record of a simulation.
pub struct Trace {
    events: Vec<Value>,
    /// By CPU: since when it runs what it runs (ns).
    since_ns: Vec<u64>,
    nr_active: Option<usize>,
}

impl Trace {
    pub(crate) fn new(cpus: &[Cpu]) -> Self {
        let name = |kind: &str, tid: usize, name: &str| json!({"ph": "M", "pid": CPUS, "tid": tid, "name": kind, "args": {"name": name}});
        let mut events = vec![name("process_name", 0, "CPUs")];
        for cpu in cpus {
            let place = cpu.place;
            let text = format!("CPU {} (package {} LLC {})", place.cpu, place.package, place.llc);
            events.push(name("thread_name", place.cpu, &text));
        }
        Trace { events, since_ns: vec![0; cpus.len()], nr_active: None }
    }

    /// `cpu` changes from a task (its name) to another, or to none.
    pub(crate) fn switch(
        &mut self,
        now_ns: u64,
        cpu: usize,
        from: Option<String>,
        to: bool,
        nr_active: Option<usize>,
    ) {
        if let Some(name) = from {
            let since = self.since_ns[cpu];
            self.events.push(json!({
                "ph": "X", "pid": CPUS, "tid": cpu, "name": name,
                "ts": since as f64 / NS_PER_US, "dur": (now_ns - since) as f64 / NS_PER_US,
            }));
        }
        if to {
            self.since_ns[cpu] = now_ns;
        }
        if nr_active != self.nr_active {
            self.nr_active = nr_active;
            self.counter(now_ns, "active set", nr_active.unwrap_or(0) as f64);
        }
    }

    /// The clock of `cpu` and its neighbours has changed.
    pub(crate) fn frequency(&mut self, now_ns: u64, cpu: usize, mhz: u32) {
        self.counter(now_ns, &format!("MHz of CPU {cpu}"), f64::from(mhz));
    }

    fn counter(&mut self, now_ns: u64, name: &str, value: f64) {
        self.events.push(json!({
            "ph": "C", "pid": COUNTERS, "name": name,
            "ts": now_ns as f64 / NS_PER_US, "args": {"value": value},
        }));
    }

    /// Writes it as one JSON object. Fails as the writer does.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [")?;
        for (nth, event) in self.events.iter().enumerate() {
            let comma = if nth + 1 < self.events.len() { "," } else { "" };
            writeln!(to, "{event}{comma}")?;
        }
        writeln!(to, "]}}")
    }
}
