//! The scheduler's own variables: set up as the agent does, and put back to what
//! they were when the program began.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::ffi::powerpack_ops;

/// The bytes of a `struct pp_topology`, and of a `struct pp_policy`; the caller knows what
/// they mean.
#[repr(C, align(8))]
#[derive(Clone, Debug)]
pub struct TopologyBytes(pub [u8; 154_560]);

/// See [`TopologyBytes`].
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct PolicyBytes(pub [u8; 56]);

unsafe extern "C" {
    static mut __start_pp_bss: u8;
    static mut __stop_pp_bss: u8;
    static mut __start_pp_data: u8;
    static mut __stop_pp_data: u8;
    static mut __start_pp_rodata: u8;
    static mut __stop_pp_rodata: u8;
    fn sim_setup(topology: *const TopologyBytes, policy: *const PolicyBytes);
    fn sim_classify(cgroup: *mut c_void, workload: u32);
    fn sim_apply(policy: *const PolicyBytes);
    fn sim_nr_active() -> u32;
    fn sim_longest_jump() -> u64;
    fn sim_is_active(cpu: i32) -> bool;
    fn sim_sabotage(how: u32);
    fn sim_timer_fires(key: u32);
}

/// What can be made bad on purpose: see native/sabotage.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    CountTasks = 1,
    NoSpill,
    LostKick,
    FailTimers,
}

/// The scheduler's variables are there once: so is their user.
static IN_USE: Mutex<()> = Mutex::new(());

/// The scheduler, loaded for one simulation.
pub struct Native {
    _in_use: MutexGuard<'static, ()>,
}

impl Native {
    /// Waits until no other simulation runs in this process.
    pub fn load(topology: &TopologyBytes, policy: &PolicyBytes) -> Self {
        let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        reset();
        // SAFETY: both are copied by the call; no other thread looks.
        unsafe { sim_setup(topology, policy) };
        Native { _in_use: in_use }
    }

    /// Puts `policy` in force; an op as far as kicks are concerned.
    pub fn apply(&self, policy: &PolicyBytes) {
        // SAFETY: copied by the call.
        unsafe { sim_apply(policy) };
    }

    /// Says what the user's table says of a cgroup.
    pub fn classify(&self, cgroup: *mut c_void, workload: u32) {
        // SAFETY: one of the simulation's own.
        unsafe { sim_classify(cgroup, workload) };
    }

    /// Makes the scheduler bad until it is loaded again.
    pub fn sabotage(&self, how: Sabotage) {
        // SAFETY: sets a variable.
        unsafe { sim_sabotage(how as u32) };
    }

    /// Calls back what started timer `key`.
    pub fn timer_fires(&self, key: u32) {
        // SAFETY: started before, so it has a callback.
        unsafe { sim_timer_fires(key) };
    }

    /// The furthest that a queue's clock has gone at a time (virtual ns).
    pub fn longest_jump(&self) -> u64 {
        // SAFETY: reads a variable.
        unsafe { sim_longest_jump() }
    }

    /// How many ranks are active.
    pub fn nr_active(&self) -> usize {
        // SAFETY: reads a variable.
        unsafe { sim_nr_active() as usize }
    }

    /// Whether a CPU is active.
    pub fn is_active(&self, cpu: usize) -> bool {
        // SAFETY: reads variables.
        unsafe { sim_is_active(cpu as i32) }
    }

    /// The ops that the scheduler defines.
    pub fn ops(&self) -> &'static super::ffi::Ops {
        // SAFETY: never written.
        unsafe { &powerpack_ops }
    }
}

/// The writable variables as the program was loaded.
fn reset() {
    static PRISTINE: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    // SAFETY: the bounds of the sections, and only the holder of IN_USE uses them.
    unsafe {
        let bss = section(&raw mut __start_pp_bss, &raw mut __stop_pp_bss);
        let data = section(&raw mut __start_pp_data, &raw mut __stop_pp_data);
        let rodata = section(&raw mut __start_pp_rodata, &raw mut __stop_pp_rodata);
        let (first_data, first_rodata) = PRISTINE.get_or_init(|| {
            make_writable(rodata);
            (data.to_vec(), rodata.to_vec())
        });
        bss.fill(0);
        data.copy_from_slice(first_data);
        rodata.copy_from_slice(first_rodata);
    }
}

unsafe fn section(start: *mut u8, stop: *mut u8) -> &'static mut [u8] {
    // SAFETY: the linker's bounds of one section.
    unsafe { std::slice::from_raw_parts_mut(start, stop.offset_from_unsigned(start)) }
}

/// What is constant to the scheduler is set by the agent before it is loaded.
fn make_writable(section: &mut [u8]) {
    // SAFETY: sysconf, then mprotect on pages that this section is in; making
    // neighbours writable too takes nothing away from them.
    let status = unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = section.as_mut_ptr() as usize / page * page;
        let len = section.as_mut_ptr() as usize + section.len() - start;
        libc::mprotect(start as *mut libc::c_void, len, libc::PROT_READ | libc::PROT_WRITE)
    };
    assert_eq!(status, 0, "the scheduler's constants cannot be set");
}
