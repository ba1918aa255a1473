//! What keeps a report free of private things. The report is made of named files and fields only;
//! whatever text of them somebody else has written passes through here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The longest name of a task, in bytes (TASK_COMM_LEN without the zero).
const TASK_NAME_MAX: usize = 15;
/// A MAC address has six bytes, those of InfiniBand have twenty.
const MAC_BYTES_MIN: usize = 6;
/// A machine ID has 32 digits, a UUID as many without its dashes.
const ID_DIGITS_MIN: usize = 32;
/// Below this number users are the system's own, and have the same names everywhere.
const FIRST_USER_ID: u32 = 1000;
/// nobody's, and what is beyond on some systems.
const USER_ID_END: u32 = 65_534;

/// Paths that are the same on every machine, or ours.
const COMMON_PATHS: [&str; 9] = [
    "/etc/scx_powerpack",
    "/run/scx_powerpack",
    "/var/lib/scx_powerpack",
    "/run/scx",
    "/var/run/scx",
    "/sys/kernel",
    "/sys/devices/system/cpu",
    "/dev/kmsg",
    "/metrics",
];

/// What stands before a task's name in what the kernel says of one, each at least as long as a name.
const BEFORE_TASK: [&str; 4] =
    ["runnable task stall (", "sched_ext: powerpack: ", " not allowed for ", "migration disabled "];

/// Replaces what is private, always by the same.
#[derive(Debug, Default)]
pub struct Mask {
    /// A private word, and what is written for it.
    words: Vec<(String, &'static str)>,
    /// The parts of the names of cgroups, by which number.
    cgroups: BTreeMap<String, usize>,
}

impl Mask {
    /// With the names of this machine and of its users.
    pub fn of_this_machine() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let host = read("/proc/sys/kernel/hostname");
        let of_env = ["USER", "LOGNAME", "SUDO_USER"].map(std::env::var);
        let mut users: BTreeSet<String> = of_env.into_iter().flatten().collect();
        users.extend(users_of(&read("/etc/passwd")));
        users.remove("root");
        Mask::of(host.trim(), users)
    }

    /// With the name of a host, and those of users.
    pub fn of(host: &str, users: impl IntoIterator<Item = String>) -> Self {
        let mut words: Vec<(String, &'static str)> =
            users.into_iter().map(|user| (user, "USER")).collect();
        let short = host.split('.').next().unwrap_or_default();
        words.extend([host, short].map(|name| (name.to_owned(), "HOST")));
        words.retain(|(word, _)| !word.is_empty() && word != "localhost");
        // A name may be a part of another one.
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        Mask { words, ..Mask::default() }
    }

    /// A line that somebody else has written, without names, addresses, numbers of machines and paths.
    pub fn text(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.replace("```", "'''");
        let named = self.words.iter().fold(text, |text, (word, by)| replace_word(&text, word, by));
        tokens(&named).map(mask_token).collect()
    }

    /// The same for what may speak of tasks: `NAME[PID]` is `TASK[PID]`.
    pub fn log_line(&self, text: &str) -> String {
        self.text(&without_task_names(text))
    }

    /// The name of a cgroup, or a pattern of names: each part of its path is `cgroup-N`, the same
    /// whenever it is the same. Wildcards stay.
    pub fn cgroup(&mut self, path: &str) -> String {
        path.split('/').map(|part| self.part(part)).collect::<Vec<_>>().join("/")
    }

    fn part(&mut self, part: &str) -> String {
        if part.is_empty() || part.chars().all(|c| c == '*') {
            return part.to_owned();
        }
        let next = self.cgroups.len() + 1;
        let nr = *self.cgroups.entry(part.to_owned()).or_insert(next);
        let is_pattern = part.contains(['*', '?', '[']);
        format!("cgroup-{nr}{}", if is_pattern { "*" } else { "" })
    }

    /// Where something is listened on: whether only this machine can reach it, and the port.
    pub fn address(address: SocketAddr) -> String {
        let place = match address.ip() {
            ip if ip.is_loopback() => "LOOPBACK",
            ip if ip.is_unspecified() => "ALL",
            _ => "ADDRESS",
        };
        format!("{place}:{}", address.port())
    }
}

/// The names of people in /etc/passwd.
fn users_of(passwd: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id: u32 = fields.nth(1)?.parse().ok()?;
        (FIRST_USER_ID..USER_ID_END).contains(&id).then(|| name.to_owned())
    };
    passwd.lines().filter_map(of_line).collect()
}

/// `by` for each `word` in `text` that is no part of a longer one, in small or capital letters.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let (small, wanted) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    let mut replaced = String::new();
    let mut end = 0;
    for (at, _) in small.match_indices(&wanted) {
        let after = at + word.len();
        let is_whole = !text[..at].ends_with(char::is_alphanumeric)
            && !text[after..].starts_with(char::is_alphanumeric);
        if is_whole {
            replaced.push_str(&text[end..at]);
            replaced.push_str(by);
            end = after;
        }
    }
    replaced + &text[end..]
}

/// What may be in an address, an ID or a path.
fn is_of_token(c: char) -> bool {
    c.is_alphanumeric() || "._:-/%~@".contains(c)
}

/// `text` in pieces: tokens, and what is between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_token = is_of_token(first);
        let end = rest.find(|c| is_of_token(c) != is_token).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

fn mask_token(token: &str) -> String {
    let core = token.trim_end_matches(['.', ':', '-']);
    let tail = &token[core.len()..];
    let masked = match core {
        _ if core.contains("://") => core.split('/').map(mask_token).collect::<Vec<_>>().join("/"),
        _ if is_address(core) => "ADDRESS".to_owned(),
        _ if is_id(core) => "ID".to_owned(),
        _ if core.split_once('@').is_some_and(|(name, of)| !name.is_empty() && !of.is_empty()) => {
            "NAME".to_owned()
        }
        _ if core.starts_with(['/', '~']) && !is_common_path(core) => "PATH".to_owned(),
        _ => core.to_owned(),
    };
    masked + tail
}

/// One of IP, with a port, a zone or the length of a prefix or without, or of a network card.
fn is_address(token: &str) -> bool {
    let bare = token.split(['%', '/']).next().unwrap_or(token);
    if bare.parse::<IpAddr>().is_ok() || bare.parse::<SocketAddr>().is_ok() {
        return true;
    }
    // What ends with a port, or with what follows in a line.
    if bare.rsplit_once(':').is_some_and(|(host, _)| host.parse::<IpAddr>().is_ok()) {
        return true;
    }
    [':', '-'].iter().any(|&between| {
        let mut bytes = bare.split(between);
        let is_byte = |byte: &str| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok();
        bytes.all(is_byte) && bare.split(between).count() >= MAC_BYTES_MIN
    })
}

fn is_id(token: &str) -> bool {
    let digits = token.chars().filter(|c| *c != '-');
    let is_hex = token.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    is_hex && digits.count() >= ID_DIGITS_MIN
}

fn is_common_path(path: &str) -> bool {
    COMMON_PATHS.iter().any(|common| {
        path.strip_prefix(common).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// `TASK[PID]` for `NAME[PID]`. A name may have any characters: so what is before the bracket goes as
/// far back as a name may reach, but for words that are known to stand there.
fn without_task_names(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some((at, end)) = find_pid(rest) {
        masked.push_str(before_task(&rest[..at]));
        masked.push_str("TASK");
        masked.push_str(&rest[at..end]);
        rest = &rest[end..];
    }
    masked + rest
}

/// Where the first `[DIGITS]` is.
fn find_pid(text: &str) -> Option<(usize, usize)> {
    text.match_indices('[').find_map(|(at, _)| {
        let inside = &text[at + 1..];
        let len = inside.find(|c: char| !c.is_ascii_digit())?;
        (len > 0 && inside[len..].starts_with(']')).then_some((at, at + len + 2))
    })
}

/// `text`, which ends with the name of a task, without that.
fn before_task(text: &str) -> &str {
    // A character is a byte of it or more.
    let reach = text.char_indices().rev().take(TASK_NAME_MAX).last().map_or(0, |(at, _)| at);
    // Words that begin before any name can: what is kept beyond is theirs.
    let known = BEFORE_TASK.iter().filter_map(|words| {
        let ends = text.match_indices(words).map(|(at, _)| (at, at + words.len()));
        ends.filter(|&(begin, end)| begin <= reach && reach <= end).map(|(_, end)| end).next()
    });
    &text[..known.max().unwrap_or(reach)]
}

#[cfg(test)]
mod tests;
