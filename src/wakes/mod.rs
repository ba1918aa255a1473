//! What wakes a CPU: programs that trace it while somebody looks, apart from the scheduler, and
//! what is made of what they report.

#[allow(clippy::all)]
mod bpf_skel {
    //! The skeleton of the BPF object, as the build generates it.
    include!(concat!(env!("OUT_DIR"), "/wakes_skel.rs"));
}
pub mod cause;
mod count;
#[allow(non_camel_case_types, non_upper_case_globals, dead_code, clippy::all)]
mod count_intf {
    //! The constants and structs of `count.h`, as the build generates them.
    include!(concat!(env!("OUT_DIR"), "/count_intf.rs"));
}
#[allow(clippy::all)]
mod count_skel {
    //! The skeleton of the BPF object that counts, as the build generates it.
    include!(concat!(env!("OUT_DIR"), "/count_skel.rs"));
}
pub mod event;
#[allow(non_camel_case_types, non_upper_case_globals, dead_code, clippy::all)]
mod intf {
    //! The constants and structs of `intf.h`, as the build generates them.
    include!(concat!(env!("OUT_DIR"), "/wakes_intf.rs"));
}
mod watch;

pub use count::IdleCount;
pub use watch::Watch;
