//! The constants and structs of `src/bpf/intf.h`, as the build generates them.

#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]
#![allow(dead_code, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
