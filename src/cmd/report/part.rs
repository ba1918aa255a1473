//! The parts of a report: what was read of one thing, and what could not be. Nothing is read here but
//! single files.

use std::fmt::{Display, Write};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A part of the report, under a heading.
#[derive(Debug)]
pub struct Part {
    title: &'static str,
    lines: Vec<String>,
    /// What could not be read, and why.
    missing: Vec<String>,
}

impl Part {
    pub fn new(title: &'static str) -> Self {
        Part { title, lines: vec![], missing: vec![] }
    }

    /// Adds what `text` says, line by line.
    pub fn add(&mut self, text: impl AsRef<str>) {
        self.lines.extend(text.as_ref().lines().map(|line| line.trim_end().to_owned()));
    }

    /// Says that `what` could not be read, and `why`.
    pub fn miss(&mut self, what: impl Display, why: impl Display) {
        self.missing.push(format!("{what}: {why}"));
    }

    /// The text of a file without spaces around it; `None` if it is not there or empty, or if it cannot
    /// be read, which is said then.
    pub fn read(&mut self, path: &Path) -> Option<String> {
        match fs::read(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).trim().to_owned();
                (!text.is_empty()).then_some(text)
            }
            Err(err) if err.kind() == ErrorKind::NotFound => None,
            Err(err) => {
                self.miss(path.display(), reason(&err));
                None
            }
        }
    }
}

/// Why something cannot be read, with the way out where there is one.
pub fn reason(err: &std::io::Error) -> String {
    match err.kind() {
        ErrorKind::PermissionDenied => "root may read it: run the report with sudo".to_owned(),
        _ => err.to_string(),
    }
}

/// The report: `about` first, then what could not be read, then the parts, in Markdown.
pub fn text(about: &str, parts: &[Part]) -> String {
    let mut text = format!("# scx_powerpack report\n\n{}\n", about.trim_end());
    let missing = || parts.iter().flat_map(|part| part.missing.iter().map(move |why| (part, why)));
    let head = match missing().count() {
        0 => "Everything could be read.",
        _ => "What could not be read:\n",
    };
    let _ = writeln!(text, "\n{head}");
    for (part, why) in missing() {
        let _ = writeln!(text, "- {}: {why}", part.title);
    }
    for part in parts {
        let _ = writeln!(text, "\n## {}\n", part.title);
        if part.lines.is_empty() {
            let _ = writeln!(text, "Nothing.");
        } else {
            let _ = writeln!(text, "```\n{}\n```", part.lines.join("\n"));
        }
    }
    text
}

/// CPUs as the kernel lists them: `0-3,8`. They are sorted.
pub fn cpu_list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[usize]| match (run[0], run[run.len() - 1]) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_first_and_empty_parts_say_so() {
        let mut kernel = Part::new("Kernel");
        kernel.add("Linux 7  \n4 CPUs");
        let mut log = Part::new("Kernel log");
        log.miss("/dev/kmsg", reason(&ErrorKind::PermissionDenied.into()));
        assert_eq!(
            text("Made by a test.\n", &[kernel, log]),
            "# scx_powerpack report\n\nMade by a test.\n\nWhat could not be read:\n\n\
             - Kernel log: /dev/kmsg: root may read it: run the report with sudo\n\n\
             ## Kernel\n\n```\nLinux 7\n4 CPUs\n```\n\n## Kernel log\n\nNothing.\n"
        );
        assert!(text("", &[Part::new("Kernel")]).contains("Everything could be read."));
    }

    #[test]
    fn files_that_are_not_there_are_not_missed_and_others_are() {
        let mut part = Part::new("Files");
        assert_eq!(part.read(Path::new("/proc/self/no-such-file")), None);
        assert!(part.missing.is_empty());
        assert_eq!(part.read(Path::new("/proc")), None);
        assert!(part.missing[0].starts_with("/proc: "), "{part:?}");
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_does() {
        assert_eq!(cpu_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(cpu_list(&[]), "");
    }
}
