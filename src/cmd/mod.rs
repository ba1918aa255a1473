//! What a user types, but for the agent itself, the benchmark and the simulator.

pub mod completions;
pub mod config;
#[cfg(test)]
mod manual;
pub mod report;
pub mod status;
pub mod top;
pub mod wakes;
pub mod why;
