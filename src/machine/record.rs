//! What was found in files of sysfs before we wrote there: kept in a file, so that a successor can
//! put it back if we are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use log::{info, warn};
use serde::{Deserialize, Serialize};

use super::whole_file::{self, with_ending};

/// A file of sysfs that holds, or is about to hold, a value of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What is to be put back.
    pub original: String,
    /// What is to be written before that: an interrupt stays where it is as long as it may, so that
    /// it is sent there first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_way_of: Option<String>,
    /// Every value of ours that it may hold: whoever is killed between the record and the
    /// write leaves the one before. Any other value is somebody else's.
    pub ours: BTreeSet<String>,
}

impl Entry {
    /// Nothing of ours yet.
    pub fn found(original: String) -> Self {
        Entry { original, by_way_of: None, ours: BTreeSet::new() }
    }

    fn covers(&self, other: &Entry) -> bool {
        self.original == other.original
            && self.by_way_of == other.by_way_of
            && self.ours.is_superset(&other.ours)
    }
}

/// By path.
pub type Entries = BTreeMap<PathBuf, Entry>;

/// What became of the files that were to be put back.
#[derive(Debug, Default)]
pub struct PutBack {
    pub restored: usize,
    /// Changed by somebody else since, with what they hold now: left alone.
    pub foreign: Vec<(PathBuf, String)>,
    /// Could not be read or written now, and are still to be put back.
    pub failed: Vec<(PathBuf, io::Error)>,
}

impl PutBack {
    /// Warns of what was not put back, a line for each reason.
    pub fn warn(&self) {
        self.warn_of_foreign();
        self.warn_of_failed();
    }

    /// Warns of what others have changed.
    pub fn warn_of_foreign(&self) {
        if let Some((path, value)) = self.foreign.first() {
            warn!(
                "{} settings of this machine were changed by somebody else meanwhile and \
                 are left alone: {} is {value}",
                self.foreign.len(),
                path.display()
            );
        }
    }

    /// Warns of what could not be written.
    pub fn warn_of_failed(&self) {
        if let Some((path, err)) = self.failed.first() {
            warn!(
                "{} settings of this machine cannot be put back now: {}: {err}",
                self.failed.len(),
                path.display()
            );
        }
    }
}

/// The record of the hints that are in force, beside the control socket.
pub const HINTS: &str = "/run/scx_powerpack/hints.json";

/// Whether the record at `path` names a file called `name`; not if there is none that makes sense.
pub fn names(path: &Path, name: &str) -> bool {
    let text = fs::read(path).unwrap_or_default();
    let entries: Entries = serde_json::from_slice(&text).unwrap_or_default();
    entries.keys().any(|path| path.ends_with(name))
}

/// Puts back what is in the record at `path`, of files that have one of these `names`, as whoever wrote it
/// was killed; `what` that is for the log. What another program has changed since is left alone, and
/// reported.
pub fn recover(path: &Path, names: &[&str], what: &str) -> PutBack {
    let mut record = Record::open(path, names);
    let mut left = record.entries().clone();
    let done = put_back(&mut left, |_| true);
    if done.restored > 0 {
        info!("{} {what} are undone", done.restored);
    }
    done.warn();
    if let Err(err) = record.replace(left) {
        warn!("{err:#}");
    }
    done
}

/// Puts back those of `entries` that `which` picks, and forgets them. Files that are gone
/// are forgotten too; those that fail are kept.
pub fn put_back(entries: &mut Entries, which: impl Fn(&Path) -> bool) -> PutBack {
    let mut done = PutBack::default();
    entries.retain(|path, entry| {
        if !which(path) {
            return true;
        }
        match put_back_one(path, entry, &mut done) {
            Err(err) if err.kind() != ErrorKind::NotFound => {
                done.failed.push((path.clone(), err));
                true
            }
            _ => false,
        }
    });
    done
}

fn put_back_one(path: &Path, entry: &Entry, done: &mut PutBack) -> io::Result<()> {
    let now = read(path)?;
    if now == entry.original {
        return Ok(());
    }
    if !entry.ours.contains(&now) {
        done.foreign.push((path.to_owned(), now));
        return Ok(());
    }
    if let Some(first) = &entry.by_way_of {
        // It may be of a CPU that is offline by now: then it is left out.
        let _ = write(path, first);
    }
    write(path, &entry.original)?;
    done.restored += 1;
    Ok(())
}

/// A file of sysfs, without the line's end.
pub fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

/// Writes to a file of sysfs that is there. It is never created, as `fs::write` would.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// The file, and what it has in it.
pub struct Record {
    path: PathBuf,
    entries: Entries,
}

impl Record {
    /// Reads the record at `path`, of files that have one of these `names`; there need not be one. One
    /// that makes no sense is moved aside to `*.bad` with a warning: it must not keep the scheduler
    /// from starting.
    pub fn open(path: &Path, names: &[&str]) -> Self {
        let entries = match fs::read(path) {
            Err(err) if err.kind() == ErrorKind::NotFound => Entries::new(),
            Err(err) => {
                warn!("cannot read {}: {err}: what it names is not put back", path.display());
                Entries::new()
            }
            Ok(bytes) => parse(&bytes, names).unwrap_or_else(|err| {
                move_aside(path, &err);
                Entries::new()
            }),
        };
        Record { path: path.to_owned(), entries }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What has been recorded.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Makes sure that the file names all of `entries`. It may name more, so that what comes
    /// and goes costs no writing. Fails with a sentence, and then it is as it was.
    pub fn cover(&mut self, entries: Entries) -> Result<()> {
        let covered = |(path, entry): (&PathBuf, &Entry)| {
            self.entries.get(path).is_some_and(|known| known.covers(entry))
        };
        if entries.iter().all(covered) {
            return Ok(());
        }
        self.replace(entries)
    }

    /// Has the file name `entries` and nothing else; without any it is removed. Fails with
    /// a sentence.
    pub fn replace(&mut self, entries: Entries) -> Result<()> {
        if entries != self.entries {
            let path = self.path.display();
            if entries.is_empty() {
                fs::remove_file(&self.path).with_context(|| format!("cannot remove {path}"))?;
            } else {
                save(&self.path, &entries)
                    .with_context(|| format!("cannot record in {path} what is to be put back"))?;
            }
            self.entries = entries;
        }
        Ok(())
    }
}

/// Fails also if it names files that are none of ours: root is to write there.
fn parse(bytes: &[u8], names: &[&str]) -> Result<Entries> {
    let entries: Entries = serde_json::from_slice(bytes)?;
    for path in entries.keys() {
        let is_ours = path.file_name().is_some_and(|name| names.iter().any(|ours| name == *ours));
        ensure!(is_ours, "{} is no setting of ours", path.display());
    }
    Ok(entries)
}

fn move_aside(path: &Path, why: &anyhow::Error) {
    let bad = with_ending(path, ".bad");
    match fs::rename(path, &bad) {
        Ok(()) => warn!("{} makes no sense ({why}): it is now {}", path.display(), bad.display()),
        Err(err) => warn!("{} makes no sense ({why}), and stays: {err}", path.display()),
    }
}

/// Makes the directory `dir`, where anyone may look whatever the umask is; one that is there stays as it is.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => fs::set_permissions(dir, Permissions::from_mode(0o755)),
        Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(err) => Err(err),
    }
}

fn save(path: &Path, entries: &Entries) -> Result<()> {
    if let Some(dir) = path.parent() {
        // The control socket's is beside it.
        make_dir(dir)?;
    }
    Ok(whole_file::write(path, &serde_json::to_vec(entries)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control socket is there, too.
    #[test]
    fn others_may_look_into_the_directory_that_is_made() {
        let dir = std::env::temp_dir().join(format!("record-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        // SAFETY: both take no pointers. Without unshare(2) other tests would have this umask too.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_FS), 0);
            libc::umask(0o077);
        }
        let mut record = Record::open(&dir.join("run/hints.json"), &["file"]);
        let entries = Entries::from([("/file".into(), Entry::found("1".to_owned()))]);
        record.replace(entries).unwrap();
        let mode = |dir: &Path| fs::metadata(dir).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir.join("run")), 0o755);
        // What somebody else has made stays as it is.
        fs::set_permissions(dir.join("run"), Permissions::from_mode(0o700)).unwrap();
        make_dir(&dir.join("run")).unwrap();
        assert_eq!(mode(&dir.join("run")), 0o700);
        fs::remove_dir_all(dir).unwrap();
    }
}
