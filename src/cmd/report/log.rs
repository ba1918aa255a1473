//! How schedulers ended lately, and what the kernel's log says of them. Of the logs only lines of ours
//! and of sched_ext are read, and of these only such as are known to have nothing private.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use serde_json::Value;

use super::command;
use super::mask::Mask;
use super::part::{Part, reason};

const KERNEL_LOG: &str = "/dev/kmsg";
/// The longest record of the kernel's log (CONSOLE_EXT_LOG_MAX).
const RECORD_MAX: usize = 8192;
/// The last lines of each log: a scheduler that ends by an error writes a hundred.
const LINES_MAX: usize = 200;
/// Of the journal so much is looked through.
const JOURNAL_LINES: &str = "4000";

/// What our lines in the journal begin with. Others may name cgroups, or quote the configuration.
const OUR_WORDS: [&str; 43] = [
    "/proc/irq is read-only",
    "CPU ",
    "LLC ",
    "a benchmark runs, ",
    "a calibration runs, ",
    "another sched_ext scheduler",
    "another scx_powerpack is about to start",
    "attached: ",
    "auto cannot switch",
    "auto has compared modes",
    "auto: ",
    "cannot create /run/scx_powerpack",
    "cannot listen on ",
    "cannot measure the load",
    "cannot release throttled tasks",
    "cannot serve ",
    "cannot stop watching",
    "detached: ",
    "hints of a killed predecessor",
    "interrupts are left",
    "irqbalance runs",
    "limits and shares of cgroups are not kept",
    "loading a scheduler needs ",
    "max_cores ",
    "mode energy goes by",
    "no statistics are served",
    "node ",
    "not all hints are in force",
    "power profile: ",
    "powerpack: ",
    "scx_powerpack runs already",
    "settings of a killed ",
    "settings of this machine ",
    "statistics are not served any more",
    "statistics have ended",
    "switched to mode",
    "the kernel ",
    "the set of CPUs has changed",
    "this kernel ",
    "this machine has more",
    "this machine has no ",
    "throttled tasks are not released",
    "what scx_powerpack calibrate has measured",
];
/// What messages begin with that go on with a file's name, and may quote it; what is shown of them, before the number
/// of the line; and whether also if they name none.
const CONFIG_WORDS: [(&str, &str, bool); 3] = [
    ("the configuration stays as it was", "the configuration stays as it was", true),
    ("changes of the configuration in ", "changes of the configuration are not noticed", true),
    ("in ", "in the configuration", false),
];
/// What systemd writes of a unit.
const UNIT_WORDS: [&str; 7] = [
    "Failed to start ",
    "Reloaded ",
    "Started ",
    "Starting ",
    "Stopped ",
    "Stopping ",
    "scx_powerpack.service: ",
];

/// How schedulers ended lately.
pub fn exits(mask: &Mask) -> Part {
    let mut part = Part::new("How schedulers ended lately");
    part.add("In the kernel's log since boot:");
    match kernel_lines(mask) {
        Ok(lines) => add_last(&mut part, lines.iter().filter(|line| is_exit(line))),
        // Why is said where the whole log is.
        Err(_) => part.add("(it could not be read)"),
    }
    part.add("\nIn the journal of scx_powerpack.service:");
    match journal() {
        Ok(text) => {
            let lines: Vec<String> = text.lines().filter_map(|line| entry(line, mask)).collect();
            add_last(&mut part, lines.iter());
        }
        Err(why) => part.miss("the journal", why),
    }
    part
}

fn is_exit(line: &str) -> bool {
    line.contains("disabled") || line.contains("failed to run") || line.contains("errored")
}

/// What the kernel's log has of sched_ext and of us.
pub fn kernel_log(mask: &Mask) -> Part {
    let mut part = Part::new("Kernel log: lines of sched_ext and of scx_powerpack");
    match kernel_lines(mask) {
        Ok(lines) => add_last(&mut part, lines.iter()),
        Err(why) => part.miss(KERNEL_LOG, why),
    }
    part
}

/// Adds the last of `lines`, or that there are none.
fn add_last<'a>(part: &mut Part, lines: impl Iterator<Item = &'a String>) {
    let lines: Vec<&String> = lines.collect();
    if lines.is_empty() {
        part.add("no lines");
    }
    lines[lines.len().saturating_sub(LINES_MAX)..].iter().for_each(|line| part.add(line));
}

fn journal() -> Result<String, String> {
    let unit = "--unit=scx_powerpack.service";
    let form = ["--output=json", "--output-fields=MESSAGE"];
    command::output(
        "journalctl",
        &["-q", "--no-pager", unit, "-n", JOURNAL_LINES, form[0], form[1]],
    )
}

/// A line of the journal in JSON, if it is one of those that are shown.
fn entry(json: &str, mask: &Mask) -> Option<String> {
    let entry: Value = serde_json::from_str(json).ok()?;
    let micros: i64 = entry["__REALTIME_TIMESTAMP"].as_str()?.parse().ok()?;
    let when = jiff::Timestamp::from_microsecond(micros).ok()?.strftime("%Y-%m-%dT%H:%M:%SZ");
    // What is no text comes as bytes, and is none of ours.
    let message = entry["MESSAGE"].as_str()?;
    Some(format!("{when} {}", mask.log_line(&known(message)?)))
}

/// As much of a message as is known to have nothing private; `None`: nothing.
fn known(message: &str) -> Option<String> {
    let begins = |text: &str, words: &[&str]| words.iter().any(|word| text.starts_with(word));
    let level = message.split_once("] ").filter(|(level, _)| level.starts_with('['));
    let bare = level.map_or(message, |(_, rest)| rest).trim_start();
    let bare = bare.strip_prefix("scx_powerpack: ").unwrap_or(bare);
    // How many settings or hints it is about.
    let bare = bare.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    if let Some((_, shown, alone)) = CONFIG_WORDS.iter().find(|(words, ..)| bare.starts_with(words))
    {
        return match line_number(bare) {
            Some(nr) => Some(format!("{shown}: line {nr}")),
            None => alone.then(|| (*shown).to_owned()),
        };
    }
    let of_unit = begins(message, &UNIT_WORDS) && message.contains("scx_powerpack");
    (of_unit || begins(bare, &OUR_WORDS)).then(|| message.to_owned())
}

/// Of a message about a line of a file the line's number.
pub fn line_number(message: &str) -> Option<u32> {
    let (_, rest) = message.split_once(": line ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The kernel's own lines of sched_ext and of us, with the seconds since boot. Fails with the reason.
fn kernel_lines(mask: &Mask) -> Result<Vec<String>, String> {
    let mut log = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(KERNEL_LOG)
        .map_err(|err| reason(&err))?;
    let mut buffer = [0; RECORD_MAX];
    let mut lines = vec![];
    loop {
        match log.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => lines.extend(kernel_line(&String::from_utf8_lossy(&buffer[..len]), mask)),
            // Overwritten before it was read: the next one is read then.
            Err(err) if matches!(err.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(err) if err.kind() == ErrorKind::WouldBlock => break,
            Err(err) => return Err(reason(&err)),
        }
    }
    Ok(lines)
}

/// A record of /dev/kmsg, `PRIORITY,NUMBER,MICROSECONDS,..;MESSAGE`, if it is one of those that are
/// shown. What a process has written there has another facility than the kernel's.
fn kernel_line(record: &str, mask: &Mask) -> Option<String> {
    let (head, message) = record.lines().next()?.split_once(';')?;
    let mut fields = head.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let micros: u64 = fields.nth(1)?.parse().ok()?;
    if priority >> 3 != 0 {
        return None;
    }
    let shown = if message.starts_with("sched_ext: ") || message.starts_with("scx_powerpack[") {
        mask.log_line(&unescaped(message))
    } else {
        // It may name the task that ran.
        format!("WARNING: {}", place(message.strip_prefix("WARNING: ")?)?)
    };
    Some(format!("[{:>12.6}] {shown}", micros as f64 / 1e6))
}

/// What /dev/kmsg writes as `\xNN`: anything but printable ASCII, as names of tasks may have.
fn unescaped(message: &str) -> String {
    let mut parts = message.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            _ => bytes.extend_from_slice(format!("\\x{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where in the scheduler's source a warning is: `kernel/sched/FILE:LINE`.
fn place(message: &str) -> Option<&str> {
    message.split_whitespace().find(|word| word.starts_with("kernel/sched/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::of("vault", ["mallory".to_owned()])
    }

    #[test]
    fn of_the_kernels_log_only_its_own_lines_about_us_are_shown() {
        let shown = |record| kernel_line(record, &mask());
        let stall =
            "3,9,1500000,-;sched_ext: powerpack: secret[7] failed to run for 3.2s\n SUBSYSTEM=x\n";
        assert_eq!(
            shown(stall).unwrap(),
            "[    1.500000] sched_ext: powerpack: TASK[7] failed to run for 3.2s"
        );
        let escaped =
            "3,9,0,-;sched_ext: \\xc3\\xa9\\xc3\\xa9\\xff\\xff\\xff\\xff\\xff\\xffsecre[7] \\xzz\n";
        let masked = shown(escaped).unwrap();
        assert!(!masked.contains("secre") && !masked.contains('é'), "{masked}");
        assert!(masked.ends_with("TASK[7] \\xzz"), "{masked}");
        let warning = "4,9,0,-;WARNING: CPU: 0 PID: 7 at kernel/sched/ext.c:12 f+0x1/0x2";
        assert_eq!(shown(warning).unwrap(), "[    0.000000] WARNING: kernel/sched/ext.c:12");
        for record in [
            // A process has written it.
            "12,9,0,-;sched_ext: secret",
            "6,9,0,-;usb 1-1: SerialNumber: secret",
            "4,9,0,-;WARNING: CPU: 0 PID: 7 at mm/slub.c:1 secret",
            "no record",
            "",
        ] {
            assert_eq!(shown(record), None, "{record}");
        }
    }

    #[test]
    fn of_the_journal_only_known_lines_are_shown() {
        let shown = |message: &str| {
            let line = serde_json::json!({ "__REALTIME_TIMESTAMP": "1764165600000000", "MESSAGE": message });
            entry(&line.to_string(), &mask())
        };
        for (message, said) in [
            ("[INFO] attached: mode packing, 4 CPUs", "[INFO] attached: mode packing, 4 CPUs"),
            (
                "scx_powerpack: the kernel ended the scheduler and is back on its own: runnable task stall (secret[9] x)",
                "scx_powerpack: the kernel ended the scheduler and is back on its own: runnable task stall (TASK[9] x)",
            ),
            (
                "[ERROR] the configuration stays as it was: in /home/a secret: line 3: unknown field `secret`",
                "the configuration stays as it was: line 3",
            ),
            (
                "scx_powerpack.service: Main process exited, code=killed, status=9/KILL",
                "scx_powerpack.service: Main process exited, code=killed, status=9/KILL",
            ),
            (
                "[WARN] irqbalance runs, process 7, which moves interrupts too",
                "[WARN] irqbalance runs, process 7, which moves interrupts too",
            ),
            ("[INFO] powerpack: rank 2, surplus", "[INFO] powerpack: rank 2, surplus"),
            (
                "[INFO] 5 hints of a killed predecessor are undone",
                "[INFO] 5 hints of a killed predecessor are undone",
            ),
            (
                "[WARN] changes of the configuration in /home/secret are not noticed, as it is so",
                "changes of the configuration are not noticed",
            ),
            (
                "[ERROR] the configuration stays as it was: /home/secret is gone",
                "the configuration stays as it was",
            ),
        ] {
            assert_eq!(shown(message).unwrap(), format!("2025-11-26T14:00:00Z {said}"));
        }
        for message in [
            "[WARN] cpu.max of secret.slice is not enforced while this scheduler runs",
            "[INFO]  R secret[12] -3ms",
            "[INFO]       curr=secret[12] class=ext_sched_class",
            "in secret",
            "[ERROR] cannot read /home/a secret: it is secret",
            "Started secret.service - for mallory",
            "secret",
        ] {
            assert_eq!(shown(message), None, "{message}");
        }
        assert_eq!(entry("{}", &mask()), None);
    }

    /// What the page says of the agent's sentences: those of subcommands and of the kernel are no lines of the journal,
    /// and one of a file that cannot be read is about its name.
    #[test]
    fn the_sentences_of_the_page_on_what_is_wrong_are_known() {
        let page = include_str!("../../../docs/operating.md");
        let (_, table) = page.split_once("## When something is wrong").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let seen = table.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        let sentences = seen.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let of_others = ["this needs root", "WARNING: ", "cannot read FILE", "is empty, .."];
        let mut nr = 0;
        for sentence in sentences.filter(|sentence| sentence.contains(' ')) {
            if !of_others.iter().any(|other| sentence.starts_with(other)) {
                // With a value in the place of each that the page leaves open.
                let message = sentence.replace("..", "x").replace("line N", "line 7");
                assert!(known(&format!("[WARN] {message}")).is_some(), "{sentence}");
                nr += 1;
            }
        }
        assert!(nr >= 10, "{nr} sentences");
    }

    #[test]
    fn the_last_lines_are_kept() {
        let lines: Vec<String> = (0..LINES_MAX + 2).map(|nr| format!("line {nr}.")).collect();
        let mut part = Part::new("Log");
        add_last(&mut part, lines.iter());
        let text = crate::cmd::report::part::text("", &[part]);
        assert!(!text.contains("line 1.") && text.contains("line 2.\nline 3."), "{text}");
    }
}
