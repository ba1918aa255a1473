//! What wakes a CPU: programs that trace it while somebody looks, apart from the scheduler, and
//! what is made of what they report.

#[allow(clippy::all)]
mod bpf_skel {
    //! The skeleton of the BPF object, as the build generates it.
    include!(concat!(env!("OUT_DIR"), "/wakes_skel.rs"));
}
pub mod cause;
pub mod event;
#[allow(non_camel_case_types, non_upper_case_globals, dead_code, clippy::all)]
mod intf {
    //! The constants and structs of `intf.h`, as the build generates them.
    include!(concat!(env!("OUT_DIR"), "/wakes_intf.rs"));
}
mod watch;

pub use watch::Watch;
