//! What `auto` has found out, kept across restarts.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use log::warn;
use serde::{Deserialize, Serialize};

use crate::agent::proof::Verdict;
use crate::machine::whole_file;

/// Where it is, beside what `calibrate` has measured.
pub const FILE: &str = "/var/lib/scx_powerpack/auto.json";
/// Of the file's format: one with another number is not read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    /// The machine and the knobs of which it is, see [`crate::machine::identity::of`].
    of: String,
    verdicts: Vec<Verdict>,
}

/// The file, for one machine and one setting of the knobs.
pub struct EvidenceFile {
    path: PathBuf,
    of: String,
    /// Why it could not be written was said.
    has_failed: bool,
}

impl EvidenceFile {
    /// The file at `path`, which need not be there.
    pub fn new(path: &Path, of: String) -> Self {
        EvidenceFile { path: path.to_owned(), of, has_failed: false }
    }

    /// What is in it of that machine with these knobs; nothing, with a warning, if it makes no sense or is of others.
    pub fn read(&self) -> Vec<Verdict> {
        self.try_read().unwrap_or_else(|err| {
            warn!("what auto had found out is of no use: {}: {err:#}", self.path.display());
            vec![]
        })
    }

    fn try_read(&self) -> Result<Vec<Verdict>> {
        let bytes = match fs::read(&self.path) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(vec![]),
            bytes => bytes?,
        };
        let contents: Contents = serde_json::from_slice(&bytes)?;
        ensure!(contents.version == VERSION, "its format has another version");
        ensure!(contents.of == self.of, "it is of other CPUs or knobs");
        Ok(contents.verdicts)
    }

    /// Keeps these, and no others; that it cannot is said once.
    pub fn write(&mut self, verdicts: Vec<Verdict>) {
        let failed = self.try_write(verdicts).err();
        if let (Some(err), false) = (&failed, self.has_failed) {
            warn!("what auto finds out is lost when it ends: {err:#}");
        }
        self.has_failed = failed.is_some();
    }

    fn try_write(&self, verdicts: Vec<Verdict>) -> Result<()> {
        let say = || format!("cannot write {}", self.path.display());
        let contents = Contents { version: VERSION, of: self.of.clone(), verdicts };
        if let Some(dir) = self.path.parent() {
            DirBuilder::new().recursive(true).create(dir).with_context(say)?;
        }
        whole_file::write(&self.path, &serde_json::to_vec(&contents)?).with_context(say)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::proof::tests::verdict;

    #[test]
    fn what_was_written_is_read_on_the_same_machine_and_nothing_else_is() {
        let dir = std::env::temp_dir().join(format!("evidence-{}", std::process::id()));
        let path = dir.join("below/auto.json");
        let mut file = EvidenceFile::new(&path, "a machine".into());
        assert_eq!(file.read(), vec![], "no file is no mistake");
        file.write(vec![verdict()]);
        assert_eq!(file.read(), vec![verdict()]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(EvidenceFile::new(&path, "another".into()).try_read().is_err());
        for bad in [
            text.replace("\"version\":1", "\"version\":2"),
            text.replace("\"energy\"", "\"turbo\""),
            text[..text.len() / 2].to_owned(),
            String::new(),
        ] {
            fs::write(&path, bad).unwrap();
            assert!(file.try_read().is_err());
            assert_eq!(file.read(), vec![]);
        }
        fs::remove_dir_all(&dir).unwrap();
        // A file is where the directory should be.
        fs::write(&dir, "").unwrap();
        file.write(vec![verdict()]);
        assert!(file.has_failed);
        fs::remove_file(&dir).unwrap();
    }
}
