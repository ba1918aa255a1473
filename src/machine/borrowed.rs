//! What is set in sysfs for as long as something is measured: recorded before, and put back on every exit; after a
//! SIGKILL by whoever starts next: calibration, benchmark or agent.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use log::warn;

use super::record::{self, Entries, Entry, Record};

/// The files that are written to: of an idle state, of a clock, and of who sets that.
pub const DISABLE_FILE: &str = "disable";
pub const KHZ_MIN_FILE: &str = "scaling_min_freq";
pub const KHZ_MAX_FILE: &str = "scaling_max_freq";
pub const GOVERNOR_FILE: &str = "scaling_governor";

/// Who borrows settings.
#[derive(Clone, Copy, Debug)]
pub struct Borrower {
    name: &'static str,
    /// Where its record is, below the root: beside the control socket.
    record: &'static str,
    files: &'static [&'static str],
}

/// `scx_powerpack calibrate`.
pub const CALIBRATION: Borrower = Borrower {
    name: "calibration",
    record: "run/scx_powerpack/calibrate.json",
    files: &[DISABLE_FILE, KHZ_MIN_FILE, KHZ_MAX_FILE],
};
/// `scx_powerpack bench`, of loads that are measured at both ends of the frequency.
pub const BENCHMARK: Borrower =
    Borrower { name: "benchmark", record: "run/scx_powerpack/bench.json", files: &[GOVERNOR_FILE] };

/// Settings in force; dropping it puts everything back.
pub struct Borrowed {
    record: Record,
    held: Entries,
    /// Locked as long as this process lives: it says that the record is no leftover.
    _lock: File,
}

const BORROWERS: [Borrower; 2] = [CALIBRATION, BENCHMARK];

/// Puts back what was left below `root` by borrowers that were killed; the record of one that runs is its own.
pub fn recover(root: &Path) {
    BORROWERS.iter().for_each(|borrower| borrower.recover(&root.join(borrower.record)));
}

impl Borrower {
    fn recover(self, path: &Path) {
        if !path.exists() {
            return;
        }
        match lock(path) {
            Ok(Some(_lock)) => self.recover_record(path),
            Ok(None) => warn!("a {} runs, and will not be of use: stop it", self.name),
            Err(err) => warn!("{err:#}"),
        }
    }

    fn recover_record(self, path: &Path) {
        record::recover(path, self.files, &format!("settings of a killed {}", self.name));
    }
}

/// Of the record at `path`; `None` while another process has it.
fn lock(path: &Path) -> Result<Option<File>> {
    let path = path.with_extension("lock");
    let say = || format!("cannot lock {}", path.display());
    if let Some(dir) = path.parent() {
        record::make_dir(dir).with_context(say)?;
    }
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.with_context(say)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) => Err(err).with_context(say),
    }
}

impl Borrowed {
    /// Nothing is set yet below `root`; what those left that were killed is put back. Fails with a sentence if one like
    /// this runs already.
    pub fn begin(borrower: Borrower, root: &Path) -> Result<Self> {
        let path = root.join(borrower.record);
        let Some(lock) = lock(&path)? else {
            bail!("a {} runs already: wait for it, or stop it", borrower.name)
        };
        borrower.recover_record(&path);
        let others = BORROWERS.iter().filter(|other| other.record != borrower.record);
        others.for_each(|other| other.recover(&root.join(other.record)));
        let record = Record::open(&path, borrower.files);
        let held = record.entries().clone();
        Ok(Borrowed { record, held, _lock: lock })
    }

    /// Writes these values in this order, where they are not there already. Fails with a sentence: all is
    /// recorded before anything is written.
    pub fn set(&mut self, wanted: &[(PathBuf, String)]) -> Result<()> {
        let mut changes = vec![];
        for (path, value) in wanted {
            let now =
                record::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            if now != *value {
                let entry = self.held.entry(path.clone()).or_insert_with(|| Entry::found(now));
                entry.ours.insert(value.clone());
                changes.push((path, value));
            }
        }
        self.record.cover(self.held.clone())?;
        for (path, value) in changes {
            record::write(path, value)
                .with_context(|| format!("cannot write {value} to {}", path.display()))?;
            // A clock may take what is near.
            if let (Some(entry), Ok(now)) = (self.held.get_mut(path), record::read(path)) {
                entry.ours.insert(now);
            }
        }
        self.record.cover(self.held.clone())
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let done = record::put_back(&mut self.held, |_| true);
        done.warn();
        if let Err(err) = self.record.replace(self.held.clone()) {
            warn!("{err:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("borrowed-{name}-{}", std::process::id()));
            // As /run, which is there.
            fs::create_dir_all(root.join("run")).unwrap();
            for file in files {
                fs::write(root.join(file), "found").unwrap();
            }
            Tree(root)
        }

        fn set(&self, borrowed: &mut Borrowed, files: &[&str], value: &str) {
            let wanted: Vec<_> =
                files.iter().map(|file| (self.0.join(file), value.into())).collect();
            borrowed.set(&wanted).unwrap();
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.0.join(file)).unwrap()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A killed process lets go of the lock, and puts nothing back.
    fn kill(borrowed: Borrowed) {
        borrowed._lock.unlock().unwrap();
        std::mem::forget(borrowed);
    }

    #[test]
    fn settings_are_put_back_by_the_end_and_after_a_kill_by_the_next() {
        let files = [KHZ_MAX_FILE, KHZ_MIN_FILE];
        let tree = Tree::new("next", &files);
        let begin = || Borrowed::begin(CALIBRATION, &tree.0);
        let read = || files.map(|file| tree.read(file));
        let record = tree.0.join(CALIBRATION.record);
        let mut settings = begin().unwrap();
        tree.set(&mut settings, &files, "600");
        assert_eq!(read(), ["600", "600"]);
        let second = begin().err().unwrap().to_string();
        assert!(second.contains("a calibration runs already"), "{second}");
        drop(settings);
        assert_eq!(read(), ["found", "found"]);
        assert!(!record.exists());
        let mut settings = begin().unwrap();
        tree.set(&mut settings, &files, "600");
        tree.set(&mut settings, &files, "700");
        kill(settings);
        assert!(record.exists());
        drop(begin().unwrap());
        assert_eq!(read(), ["found", "found"]);
    }

    #[test]
    fn whoever_starts_puts_back_what_each_left_that_was_killed() {
        let files = [DISABLE_FILE, GOVERNOR_FILE];
        let tree = Tree::new("killed", &files);
        let kill_each = || {
            let begin = |borrower| Borrowed::begin(borrower, &tree.0).unwrap();
            let both = BORROWERS.map(begin).into_iter().zip(files).map(|(mut settings, file)| {
                tree.set(&mut settings, &[file], "ours");
                settings
            });
            let both: Vec<_> = both.collect();
            recover(&tree.0);
            assert_eq!(
                files.map(|file| tree.read(file)),
                ["ours", "ours"],
                "those that run keep theirs"
            );
            both.into_iter().for_each(kill);
        };
        kill_each();
        recover(&tree.0);
        assert_eq!(files.map(|file| tree.read(file)), ["found", "found"]);
        // As does the next one that measures.
        kill_each();
        drop(Borrowed::begin(BENCHMARK, &tree.0).unwrap());
        assert_eq!(files.map(|file| tree.read(file)), ["found", "found"]);
    }
}
