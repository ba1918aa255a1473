//! What happened on the CPU that is watched, as the programs report it.

use std::ffi::{CStr, c_char};

use super::intf;
use crate::machine::names::printable;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    pub pid: u32,
    pub name: String,
}

/// By whom a task was woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waker {
    Unknown,
    /// Its name; or an interrupt that came to it.
    Task(String),
    /// One that came to an idle CPU.
    Interrupt,
}

/// An interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// As `/proc/interrupts` names it.
    Numbered {
        nr: u32,
        name: String,
    },
    /// Of the CPU's own timer.
    Timer,
    Reschedule,
    CallFunction,
    IrqWork,
    /// Another one between CPUs.
    Ipi(String),
}

/// What happened on the CPU while its idle task was there, but for `Kick`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It enters an idle state, by its number.
    Sleeps(u32),
    /// It has left it.
    Leaves,
    Interrupt(Interrupt),
    /// A timer expires that calls this function.
    Hrtimer(String),
    /// One of low resolution; `work` is what it has done, if it is for delayed work.
    Timer {
        function: String,
        work: Option<String>,
    },
    /// The CPU calls this function for another one.
    Function(String),
    Softirq(u32),
    /// It wakes this task.
    Wakes(Task),
    /// This task runs next.
    Runs(Task, Waker),
    /// A sched_ext scheduler has requested that the CPU look for a task.
    Kick,
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// On `CLOCK_MONOTONIC`.
    pub now_ns: u64,
    pub what: What,
}

/// The function of a timer that belongs to delayed work.
const DELAYED_WORK: &str = "delayed_work_timer_fn";

impl Event {
    /// What BPF has written.
    pub fn of(record: &intf::pp_wakes_event) -> Self {
        let (name, other) = (text(&record.name), text(&record.other));
        let task = || Task { pid: record.pid, name: name.clone() };
        let what = match record.kind {
            intf::pp_wakes_kind_PP_WAKES_SLEEPS => What::Sleeps(record.nr),
            intf::pp_wakes_kind_PP_WAKES_LEAVES => What::Leaves,
            intf::pp_wakes_kind_PP_WAKES_IRQ => {
                What::Interrupt(Interrupt::Numbered { nr: record.nr, name })
            }
            intf::pp_wakes_kind_PP_WAKES_TIMER_INTERRUPT => What::Interrupt(Interrupt::Timer),
            intf::pp_wakes_kind_PP_WAKES_RESCHEDULE => What::Interrupt(Interrupt::Reschedule),
            intf::pp_wakes_kind_PP_WAKES_CALL_FUNCTION => What::Interrupt(Interrupt::CallFunction),
            intf::pp_wakes_kind_PP_WAKES_IRQ_WORK => What::Interrupt(Interrupt::IrqWork),
            intf::pp_wakes_kind_PP_WAKES_IPI => What::Interrupt(between_cpus(name)),
            intf::pp_wakes_kind_PP_WAKES_HRTIMER => What::Hrtimer(name),
            intf::pp_wakes_kind_PP_WAKES_TIMER => {
                let work = (name == DELAYED_WORK).then_some(other);
                What::Timer { function: name, work }
            }
            intf::pp_wakes_kind_PP_WAKES_FUNCTION => What::Function(name),
            intf::pp_wakes_kind_PP_WAKES_SOFTIRQ => What::Softirq(record.nr),
            intf::pp_wakes_kind_PP_WAKES_WAKES => What::Wakes(task()),
            intf::pp_wakes_kind_PP_WAKES_RUNS => What::Runs(
                task(),
                match record.waker {
                    intf::pp_wakes_waker_PP_WAKES_BY_TASK => Waker::Task(other),
                    intf::pp_wakes_waker_PP_WAKES_BY_INTERRUPT => Waker::Interrupt,
                    _ => Waker::Unknown,
                },
            ),
            // PP_WAKES_KICK; a test looks for others.
            _ => What::Kick,
        };
        Event { now_ns: record.now_ns, what }
    }
}

/// The interrupts between CPUs of arm64, by the texts of its `ipi_types`.
fn between_cpus(name: String) -> Interrupt {
    match name.as_str() {
        "Rescheduling interrupts" => Interrupt::Reschedule,
        "Function call interrupts" => Interrupt::CallFunction,
        "Timer broadcast interrupts" => Interrupt::Timer,
        "IRQ work interrupts" => Interrupt::IrqWork,
        _ => Interrupt::Ipi(name),
    }
}

/// Up to the zero that ends it.
fn text(chars: &[c_char]) -> String {
    // SAFETY: as many bytes, of the same size.
    let bytes = unsafe { std::slice::from_raw_parts(chars.as_ptr().cast(), chars.len()) };
    let text = CStr::from_bytes_until_nul(bytes).unwrap_or_default();
    printable(&text.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u32, name: &str, other: &str) -> What {
        // SAFETY: plain integers.
        let mut record: intf::pp_wakes_event = unsafe { std::mem::zeroed() };
        record.kind = kind;
        for (chars, text) in [(&mut record.name, name), (&mut record.other, other)] {
            for (to, from) in chars.iter_mut().zip(text.bytes()) {
                *to = from as c_char;
            }
        }
        Event::of(&record).what
    }

    /// One that is left out above would read as a kick.
    #[test]
    fn every_kind_that_bpf_reports_has_its_name() {
        let last = intf::pp_wakes_kind_PP_WAKES_KICK;
        for kind in 0..last {
            assert_ne!(of(kind, "", ""), What::Kick, "{kind}");
        }
        assert_eq!(of(last, "", ""), What::Kick);
        let (_, text) = include_str!("intf.h").split_once("enum pp_wakes_kind {").unwrap();
        let (text, _) = text.split_once("};").unwrap();
        assert_eq!(text.matches("\tPP_WAKES_").count(), last as usize + 1, "it is the last one");
    }

    #[test]
    fn the_work_of_a_timer_is_named_where_it_has_one() {
        let kind = intf::pp_wakes_kind_PP_WAKES_TIMER;
        let timer = |function: &str, work: Option<&str>| What::Timer {
            function: function.into(),
            work: work.map(str::to_owned),
        };
        assert_eq!(of(kind, "process_timeout", "0x12"), timer("process_timeout", None));
        let delayed = of(kind, "delayed_work_timer_fn", "vmstat_update");
        assert_eq!(delayed, timer("delayed_work_timer_fn", Some("vmstat_update")));
    }

    #[test]
    fn what_fills_its_field_is_read_to_its_end() {
        let name = "x".repeat(intf::pp_wakes_limits_PP_WAKES_NAME as usize - 1);
        assert_eq!(of(intf::pp_wakes_kind_PP_WAKES_HRTIMER, &name, ""), What::Hrtimer(name));
    }

    #[test]
    fn interrupts_between_cpus_are_the_same_on_arm64() {
        let kind = intf::pp_wakes_kind_PP_WAKES_IPI;
        let reschedule = of(kind, "Rescheduling interrupts", "");
        assert_eq!(reschedule, What::Interrupt(Interrupt::Reschedule));
        let stop = of(kind, "CPU stop interrupts", "");
        assert_eq!(stop, What::Interrupt(Interrupt::Ipi("CPU stop interrupts".into())));
    }
}
