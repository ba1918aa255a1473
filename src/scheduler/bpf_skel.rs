//! The skeleton of the BPF object, as the build generates it.

#![allow(clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
