//! The scheduler's own C code (`src/bpf/`), compiled natively, under a simulated
//! kernel: what would it do on that machine?

mod cpu;
mod dsq;
mod event;
mod ffi;
mod hotplug;
mod kernel;
mod kfuncs;
mod machine;
mod native;
mod run;
mod schedule;
mod task;
mod workload;

pub use cpu::{Costs, Cpu};
pub use ffi::CpuMask;
pub use kernel::Kernel;
pub use machine::{Machine, MachineCpu};
pub use native::{PolicyBytes, RankedCpu};
pub use run::{Outcome, TaskOutcome, run};
pub use task::{Program, State, Step, Task, TaskSpec};
pub use workload::{Record, Workload};
