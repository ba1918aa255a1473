//! What a user can set: modes, knobs, the rules for cgroups and for `auto`, and the file that
//! holds them.

pub mod auto;
pub mod config;
pub mod hints;
pub mod mode;
pub mod named;
mod number_or_word;
pub mod policy;
pub mod workloads;
