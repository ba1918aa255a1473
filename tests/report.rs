//! `scx_powerpack report` as a user runs it, with words in its environment that are private.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Of this machine, and planted: none of them may be in a report.
fn private_words() -> Vec<String> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut words = vec!["planted".to_owned()];
    words.extend(["/etc/machine-id", "/proc/sys/kernel/random/boot_id"].map(read));
    // The kernel's own word for it is no private one.
    words.extend(Some(read("/proc/sys/kernel/hostname")).filter(|name| name.trim() != "localhost"));
    let words = words.into_iter().map(|word| word.trim().to_owned());
    words.filter(|word| word.len() > 4).collect()
}

fn report(dir: &PathBuf, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_powerpack"));
    command.arg("report").args(args).current_dir(dir);
    for name in ["USER", "LOGNAME", "SUDO_USER", "HOME", "SSH_CLIENT", "HOSTNAME"] {
        command.env(name, "planted");
    }
    command.output().unwrap()
}

#[test]
fn a_report_is_written_once_and_has_nothing_private() {
    let dir = std::env::temp_dir().join(format!("planted-report-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    let written = report(&dir, &[]);
    assert!(written.status.success(), "{written:?}");
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let name = files[0].file_name().unwrap().to_str().unwrap().to_owned();
    assert!(files.len() == 1 && name.starts_with("scx_powerpack-report-20"), "{files:?}");
    let text = fs::read_to_string(&files[0]).unwrap();
    for title in ["Kernel and machine", "Configuration in effect", "Status", "Kernel log"] {
        assert!(text.contains(&format!("\n## {title}")), "{title}: {text}");
    }
    for word in private_words() {
        assert!(!text.contains(&word), "'{word}' is in {text}");
    }
    let again = report(&dir, &[&name]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("is there already"), "{said}");
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), text);
    let nowhere = report(&dir, &["none/report.txt"]);
    let said = String::from_utf8_lossy(&nowhere.stderr);
    assert!(!nowhere.status.success() && said.contains("cannot write none/report.txt"), "{said}");
    fs::remove_dir_all(&dir).unwrap();
}
