//! The figures of the mails, `data/published.toml`: what simulated and measured ones are shown
//! beside.

use std::sync::LazyLock;

use serde::Deserialize;

/// All of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub ebizzy: Vec<Ebizzy>,
    /// By level of sched_mc, from 0.
    pub sched_mc: Vec<SchedMc>,
    pub run_period: Vec<RunPeriod>,
    pub non_idle: Vec<NonIdle>,
}

/// What power-aware scheduling took from ebizzy (%).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ebizzy {
    pub threads: usize,
    /// Work for energy.
    pub efficiency: f64,
    pub performance: f64,
    pub power: f64,
}

/// A level of sched_mc, relative to level 0.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedMc {
    /// Cores used, of eight.
    pub cores: usize,
    pub performance: f64,
    pub power: f64,
}

/// A periodic task under schedutil without and with frequency invariance, ondemand, interactive,
/// schedfreq.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPeriod {
    pub run_ms: f64,
    pub period_ms: f64,
    /// Periods overrun (OR).
    pub overruns: [u32; 5],
    /// Of the time that the lowest frequency adds to that of the highest (OH, %).
    pub overhead_pct: [f64; 5],
}

/// A workload on three CPUs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NonIdle {
    pub workload: String,
    /// What `figures` are, if the benchmark itself said something.
    pub figure: Option<String>,
    pub rows: Vec<NonIdleRow>,
}

/// It under one of the systems of 2013, twice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NonIdleRow {
    pub system: String,
    /// Non-idle share of each CPU (%).
    pub runs: [[f64; 3]; 2],
    pub figures: Option<[f64; 2]>,
}

/// The file, which is part of the program.
pub fn published() -> &'static Published {
    static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
        toml::from_str(include_str!("../data/published.toml")).expect("a test reads it")
    });
    &PUBLISHED
}

impl Published {
    /// The rows of a workload of 2013.
    pub fn non_idle_of(&self, workload: &str) -> Option<&NonIdle> {
        self.non_idle.iter().find(|table| table.workload == workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_it_is_read() {
        let published = published();
        assert_eq!((published.ebizzy.len(), published.sched_mc.len()), (4, 6));
        assert_eq!((published.run_period.len(), published.non_idle.len()), (16, 4));
        for table in &published.non_idle {
            powerpack_workload::Workload::find(&table.workload).unwrap();
            assert_eq!(table.rows.len(), 5, "{}", table.workload);
            let has = table.rows.iter().filter(|row| row.figures.is_some()).count();
            assert_eq!(has, if table.figure.is_some() { 5 } else { 0 }, "{}", table.workload);
        }
    }
}
