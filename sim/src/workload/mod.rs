//! A workload as tasks of the simulated kernel.

mod programs;
mod spawn;

pub use programs::Record;
pub use spawn::spawn;
