//! Names that anyone may choose, of tasks and cgroups, as they may be shown on a terminal.

use std::fs;

/// `text` without what would move the cursor, or do more: names may have any byte in them.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// The name of a process or thread, `None` if there is none. The kernel cuts it after 15 bytes, within a
/// character too.
pub fn of_task(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(printable(String::from_utf8_lossy(&name).trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_escape_sequences() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a?[2Jb?c");
        assert_eq!(printable("größer"), "größer");
    }

    #[test]
    fn a_name_that_is_cut_within_a_character_is_one() {
        let thread = std::thread::spawn(|| {
            // SAFETY: a string with its end; 15 bytes of it are kept, the last is half an umlaut.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"12345678901234\u{e4}".as_ptr()) };
            // SAFETY: no arguments.
            of_task(unsafe { libc::gettid() } as u32)
        });
        assert_eq!(thread.join().unwrap().as_deref(), Some("12345678901234\u{fffd}"));
        assert_eq!(of_task(0), None);
    }
}
