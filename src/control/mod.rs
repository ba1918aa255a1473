//! What clients and the agent say to each other.

pub mod peer;
pub mod preflight;
pub mod protocol;
pub mod status;
