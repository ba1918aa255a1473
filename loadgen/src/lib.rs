//! Loads with which schedulers are measured. Each burns its own CPU time or does a fixed
//! amount of work; none is calibrated while it runs, because calibrated loops drift under
//! emulation.

pub mod audio;
pub mod clock;
pub mod engine;
pub mod hogs;
pub mod periodic;
pub mod pipe;
pub mod record;
pub mod samples;
pub mod schedstat;
mod team;
mod threads;
mod worker;
pub mod workload;
