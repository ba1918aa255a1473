//! The pictures of the report, as SVG.

mod bars;
mod heat;
mod latency;
mod power;

use super::results::{Results, Run};

pub use bars::non_idle;
pub use heat::heat;
pub use latency::{response, wake_latency};
pub use power::power;

/// The systems that have runs of `load`, with their numbers and the first run.
fn first_runs<'a>(results: &'a Results, load: &str) -> Vec<(usize, &'a str, &'a Run)> {
    let run = |(nth, name): (usize, &'a str)| Some((nth, name, results.of(load, name).next()?));
    let names = results.systems.iter().map(|system| system.name.as_str());
    names.enumerate().filter_map(run).collect()
}
