//! What the build generates from `src/bpf/`: the skeleton and the shared structs.

/// The constants and structs of `src/bpf/intf.h`.
#[allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]
#[allow(dead_code, clippy::all)]
pub mod intf {
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}

#[allow(clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

pub use skel::*;
