//! All that reads this machine: its topology, its energy model, its kernel, and what it
//! measures of itself; and how what is written to its files is put back.

pub mod borrowed;
pub mod bpf_topology;
pub mod calibrated;
pub mod cgroups;
pub mod cpu_counts;
pub mod cpufreq;
pub mod energy_model;
pub mod identity;
pub mod interrupts;
pub mod kernel;
pub mod layout;
pub mod names;
pub mod package_states;
pub mod power_meter;
pub mod power_model;
pub mod power_supply;
pub mod record;
pub mod recording;
pub mod seen_cpus;
pub mod sensors;
pub mod topology;
pub mod whole_file;
