//! Why the kernel ended the scheduler, as `ops.exit` has written it down.

use std::ffi::CStr;
use std::fmt;

use scx_utils::ScxExitKind;

use super::bpf_skel::types::user_exit_info;

/// Why the kernel ended the scheduler.
#[derive(Debug)]
pub struct KernelExit {
    pub reason: String,
    /// To be loaded again: CPUs came or went while loading, or one is online that was not then.
    pub restart: bool,
    /// It is to stay away: the user has had the kernel end it (SysRq-S), or a task had not run for so long that the
    /// kernel did.
    pub stays_away: bool,
    /// What each CPU and task was at when it ended by an error; else empty.
    pub report: String,
}

/// The exit status after which nobody is to start it again by itself: `RestartPreventExitStatus=` of the unit.
pub const STAYS_AWAY_STATUS: u8 = 4;

/// The kernel has ended the scheduler, which is to stay away: see [`KernelExit::stays_away`].
#[derive(Debug)]
pub struct StaysAway(pub String);

impl fmt::Display for StaysAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StaysAway {}

/// enum scx_exit_kind: from here on the kinds are errors.
const FIRST_ERROR_KIND: i32 = ScxExitKind::Error as i32;

impl KernelExit {
    /// None: the kernel has not ended the scheduler.
    pub fn read(uei: &user_exit_info) -> Option<KernelExit> {
        // SAFETY: written by the kernel once, `kind` last.
        let kind = unsafe { std::ptr::read_volatile(&raw const uei.kind) };
        // Detaching by ourselves is SCX_EXIT_UNREG; below it nothing happened.
        if kind <= ScxExitKind::Unreg as i32 {
            return None;
        }
        let reason = match (text(&uei.reason), text(&uei.msg)) {
            (reason, msg) if msg.is_empty() => reason,
            (reason, msg) => format!("{reason} ({msg})"),
        };
        let is_error = kind >= FIRST_ERROR_KIND;
        let restart = uei.exit_code as u64 & *scx_utils::SCX_ECODE_ACT_RESTART != 0;
        let report = if is_error { report() } else { String::new() };
        let stays_away =
            [ScxExitKind::SysRq as i32, ScxExitKind::ErrorStall as i32].contains(&kind);
        Some(KernelExit { reason, restart: restart && !is_error, stays_away, report })
    }
}

/// What ops.dump and its like have printed, with what the kernel knows.
fn report() -> String {
    let memory = scx_utils::UEI_DUMP_PTR_MUTEX.lock().map_or(std::ptr::null(), |it| it.ptr);
    if memory.is_null() {
        return String::new();
    }
    // SAFETY: the map's memory, which uei_set_size!() has noted as the object was opened and
    // which lives as long as that; ops.exit has ended the text with a zero.
    unsafe { CStr::from_ptr(memory) }.to_string_lossy().into_owned()
}

/// A C string in a fixed array, on one line. BPF's char has a sign, whatever this architecture's has.
fn text(chars: &[i8]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).trim().replace('\n', " ")
}
