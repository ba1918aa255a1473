//! The scheduler's own C code (`src/bpf/`), compiled natively, under a simulated
//! kernel: what would it do on that machine? Beside it the systems that it stands
//! on, as models.

pub mod costs;
mod cpu;
mod eevdf;
mod event;
mod ext;
mod fair;
mod kernel;
mod machine;
mod power;
mod run;
mod signal;
mod task;
mod trace;
mod workload;

pub use cpu::{Costs, Cpu};
pub use ext::{CpuMask, PolicyBytes, Sabotage, TopologyBytes};
pub use fair::Comparator;
pub use kernel::{Kernel, Scheduler, System};
pub use machine::{IdleState, Machine, MachineCpu, Opp, SHIPPED as MACHINES};
pub use power::{Energy, Governor, epp_of};
pub use run::{Outcome, Setup, TaskOutcome, run};
pub use task::{Context, Home, Program, State, Step, Task, TaskSpec};
pub use trace::Trace;
pub use workload::Record;

/// What `scripts/measure-reality` measured on the real kernel, for the program's table: here,
/// as a package on crates.io holds no file of another one.
pub const REALITY: &str = include_str!("../reality.toml");
