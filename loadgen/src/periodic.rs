//! Periodic tasks as the command line names them.

use std::str::FromStr;

use powerpack_workload::Rhythm;

use crate::clock::NS_PER_MS;
use crate::engine::{Kind, Work};

/// `RUN/PERIOD[*COUNT]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    run_ns: u64,
    period_ns: u64,
    count: usize,
    text: String,
}

impl FromStr for TaskSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not RUN/PERIOD[*COUNT] in ms with RUN below PERIOD");
        let (times, count) = text.split_once('*').unwrap_or((text, "1"));
        let (run, period) = times.split_once('/').ok_or_else(wrong)?;
        let ns = |ms: &str| ms.parse::<f64>().map(|ms| (ms * NS_PER_MS) as u64);
        let spec = TaskSpec {
            run_ns: ns(run).map_err(|_| wrong())?,
            period_ns: ns(period).map_err(|_| wrong())?,
            count: count.parse().map_err(|_| wrong())?,
            text: times.to_string(),
        };
        if spec.run_ns == 0 || spec.run_ns >= spec.period_ns || spec.count == 0 {
            return Err(wrong());
        }
        Ok(spec)
    }
}

impl TaskSpec {
    /// The threads that it asks for.
    pub fn kind(&self) -> Kind {
        let rhythm = Rhythm::every(self.period_ns);
        Kind {
            name: self.text.clone(),
            count: self.count,
            nice: 0,
            cpus: vec![],
            jitter_pct: 0.0,
            fixed_work: false,
            work: Work::Periodic { run_ns: self.run_ns, rhythm },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_parse_and_mistakes_are_reported() {
        let spec: TaskSpec = "0.5/33*2".parse().unwrap();
        assert_eq!((spec.run_ns, spec.period_ns, spec.count), (500_000, 33_000_000, 2));
        for bad in ["", "3", "3/", "3/2", "0/5", "1/2*0", "1/2*x", "a/b"] {
            assert!(bad.parse::<TaskSpec>().is_err(), "'{bad}' was accepted");
        }
    }
}
