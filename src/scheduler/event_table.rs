//! The table of events in `src/bpf/events.h`, as Rust: the struct of the counters, and what
//! is said of each event.

use std::fmt::Write;

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// As BPF has it, behind `PP_EV_`.
    pub name: String,
    /// The metric, without `_total`.
    pub family: String,
    /// The metric's label and its value, if it has one.
    pub label: Option<(String, String)>,
    /// What is counted.
    pub help: String,
}

impl Event {
    /// The field of the counters.
    pub fn field(&self) -> String {
        self.name.to_lowercase()
    }
}

/// The lines of the table; fails with the one that cannot be understood.
pub fn parse(header: &str) -> Result<Vec<Event>, String> {
    let lines = header.lines().filter_map(|line| line.trim().strip_prefix("X("));
    lines.filter(|line| !line.starts_with("EVENT,")).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<Event, String> {
    let bad = || format!("src/bpf/events.h: no event: X({line}");
    let (words, text) = line.split_once('"').ok_or_else(bad)?;
    let (help, _) = text.rsplit_once('"').ok_or_else(bad)?;
    let words: Vec<&str> = words.trim_end_matches([',', ' ']).split(", ").collect();
    let &[name, family, label, value] = words.as_slice() else { return Err(bad()) };
    let label = (label != "_").then(|| (label.to_owned(), value.to_owned()));
    Ok(Event { name: name.into(), family: family.into(), label, help: help.into() })
}

/// `Counters`, with a field each, and `EVENTS`.
pub fn to_rust(events: &[Event]) -> String {
    let (mut fields, mut table) = (String::new(), String::new());
    let (mut list, mut values) = (String::new(), String::new());
    for (nth, event) in events.iter().enumerate() {
        let Event { family, help, .. } = event;
        let (field, label) = (event.field(), &event.label);
        let label = label.as_ref().map(|(label, value)| (label.as_str(), value.as_str()));
        // Into a String nothing can fail.
        let _ = write!(fields, "#[stat(desc = {help:?})]\n/// {help}\npub {field}: u64,\n");
        let _ = writeln!(list, "{field}: events[{nth}],");
        let _ = write!(values, "self.{field}, ");
        let _ = writeln!(
            table,
            "Event {{ name: {field:?}, family: {family:?}, label: {label:?}, help: {help:?} }},"
        );
    }
    let nr = events.len();
    format!(
        "/// What happened, summed over the CPUs, since the scheduler was loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(top)]
pub struct Counters {{
    #[stat(desc = \"CPUs in the active set\")]
    /// CPUs in the active set.
    pub active_cpus: u64,
    #[stat(desc = \"Capacity that tasks free to move use (1024 = one CPU)\")]
    /// Capacity that tasks free to move use (1024 = one CPU).
    pub demand: u64,
{fields}}}

impl Counters {{
    fn new(active_cpus: u64, demand: u64, events: [u64; {nr}]) -> Self {{
        Counters {{ active_cpus, demand, {list} }}
    }}

    /// The count of each event, in the order of [`EVENTS`].
    pub fn events(&self) -> [u64; {nr}] {{
        [{values}]
    }}
}}

/// What is counted, in the order of `enum pp_event`.
pub const EVENTS: [Event; {nr}] = [
{table}];
"
    )
}
