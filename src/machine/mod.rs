//! All that reads this machine: its topology, its energy model, its kernel, and what it
//! measures of itself.

pub mod bpf_topology;
pub mod cgroups;
pub mod cpufreq;
pub mod energy_model;
pub mod kernel;
pub mod power_model;
pub mod sensors;
pub mod topology;
