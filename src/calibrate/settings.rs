//! What is set in sysfs while it is measured: recorded before, and put back on every exit; after a
//! SIGKILL by the next calibration or agent that starts.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use log::warn;

use crate::machine::record::{self, Entries, Entry, Record};

/// Where the record is, beside the control socket.
const RECORD: &str = "/run/scx_powerpack/calibrate.json";
/// The files that are written to: of an idle state, and of a clock.
pub const DISABLE_FILE: &str = "disable";
pub const KHZ_MIN_FILE: &str = "scaling_min_freq";
pub const KHZ_MAX_FILE: &str = "scaling_max_freq";
const FILES: [&str; 3] = [DISABLE_FILE, KHZ_MIN_FILE, KHZ_MAX_FILE];

/// Settings in force; dropping it puts everything back.
pub struct Settings {
    record: Record,
    held: Entries,
    /// Locked as long as this process lives: it says that the record is no leftover.
    _lock: File,
}

/// Puts back what a calibration left that was killed; the record of one that runs is its own.
pub fn recover() {
    let path = Path::new(RECORD);
    if !path.exists() {
        return;
    }
    match lock(path) {
        Ok(Some(_lock)) => recover_record(path),
        Ok(None) => warn!("a calibration runs, and will not be of use: stop it"),
        Err(err) => warn!("{err:#}"),
    }
}

fn recover_record(path: &Path) {
    record::recover(path, &FILES, "settings of a killed calibration");
}

/// Of the record at `path`; `None` while another process has it.
fn lock(path: &Path) -> Result<Option<File>> {
    let path = path.with_extension("lock");
    let say = || format!("cannot lock {}", path.display());
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(dir).with_context(say)?;
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

impl Settings {
    /// Nothing is set yet; what a killed predecessor left is put back. Fails with a sentence if a
    /// calibration runs already.
    pub fn begin() -> Result<Self> {
        Self::begin_at(Path::new(RECORD))
    }

    fn begin_at(path: &Path) -> Result<Self> {
        let Some(lock) = lock(path)? else {
            bail!("a calibration runs already: wait for it, or stop it")
        };
        recover_record(path);
        let record = Record::open(path, &FILES);
        let held = record.entries().clone();
        Ok(Settings { record, held, _lock: lock })
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

impl Drop for Settings {
    fn drop(&mut self) {
        let done = record::put_back(&mut self.held, |_| true);
        done.warn();
        if let Err(err) = self.record.replace(self.held.clone()) {
            warn!("{err:#}");
        }
    }
}

/// The number in a file of sysfs. Fails with a sentence.
pub fn number(path: &Path) -> Result<u64> {
    let text = fs::read_to_string(path);
    let text = match text {
        Err(err) if err.kind() == ErrorKind::NotFound => bail!("there is no {}", path.display()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    text.trim().parse().with_context(|| format!("{} holds no number", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_put_back_by_the_end_and_after_a_kill_by_the_next() {
        let root = std::env::temp_dir().join(format!("calibrate-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (low, high) = (root.join(KHZ_MIN_FILE), root.join(KHZ_MAX_FILE));
        let read = || [&low, &high].map(|path| fs::read_to_string(path).unwrap());
        fs::write(&low, "200").unwrap();
        fs::write(&high, "2000").unwrap();
        let record = root.join("record.json");
        let set = |settings: &mut Settings, khz: &str| {
            settings.set(&[(high.clone(), khz.into()), (low.clone(), khz.into())]).unwrap();
        };
        let mut settings = Settings::begin_at(&record).unwrap();
        set(&mut settings, "600");
        assert_eq!(read(), ["600", "600"]);
        let second = Settings::begin_at(&record).err().unwrap().to_string();
        assert!(second.contains("runs already"), "{second}");
        drop(settings);
        assert_eq!(read(), ["200", "2000"]);
        assert!(!record.exists());
        // A killed process lets go of the lock, and puts nothing back.
        let mut settings = Settings::begin_at(&record).unwrap();
        set(&mut settings, "600");
        set(&mut settings, "700");
        let Settings { _lock, .. } = &settings;
        _lock.unlock().unwrap();
        std::mem::forget(settings);
        assert!(record.exists());
        drop(Settings::begin_at(&record).unwrap());
        assert_eq!(read(), ["200", "2000"]);
        fs::remove_dir_all(root).unwrap();
    }
}
