//! What `auto` has found out, kept across restarts.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use log::warn;
use serde::{Deserialize, Serialize};

use crate::agent::proof::Verdict;
use crate::machine::power_model::PowerModel;
use crate::machine::topology::Ranks;
use crate::machine::{identity, whole_file};
use crate::settings::hints::Hints;
use crate::settings::mode::Mode;
use crate::settings::policy::{Policy, PolicyArgs};

/// Where it is, beside what `calibrate` has measured.
pub const FILE: &str = "/var/lib/scx_powerpack/auto.json";
/// Of the file's format: one with another number is not read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    /// Of what it is, see [`subject`].
    of: String,
    verdicts: Vec<Verdict>,
}

/// All that decides what a mode takes, for the machine below `root`: what is found out is of no use with anything else.
pub fn subject(
    root: &Path,
    ranks: &Ranks,
    power: &PowerModel,
    knobs: &PolicyArgs,
    hints: &Hints,
) -> String {
    // As they are in force: a default that is named is no other knob.
    let knobs = Policy::of(Mode::Packing).with(Mode::Packing, knobs).to_args();
    // All policies have one driver, and hardly ever two governors.
    let clocks = ["scaling_driver", "scaling_governor"].map(|file| {
        let path = root.join("sys/devices/system/cpu/cpufreq/policy0").join(file);
        fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    });
    let (version, machine) = (env!("CARGO_PKG_VERSION"), identity::of(ranks));
    format!("{version} {machine} {knobs:?} {hints:?} {power:?} {clocks:?}")
}

/// The file, for one subject.
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

    /// What is in it of that subject; nothing, with a warning, if it makes no sense or is of another.
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
        ensure!(
            contents.of == self.of,
            "it is of another version, or of other CPUs, knobs, hints, frequency governors or figures of power"
        );
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
    use crate::machine::power_model::Source;
    use crate::machine::sensors::tests::{sysfs, write};
    use crate::machine::topology::tests::flat;

    #[test]
    fn another_model_hint_or_governor_is_another_subject() {
        let root = sysfs("subject", &[]);
        let clocks = |governor| {
            let file = "devices/system/cpu/cpufreq/policy0/scaling_governor";
            write(&root, &[(file, governor)]);
        };
        clocks("schedutil");
        let mut power = PowerModel { source: Source::Calibrated, ..PowerModel::default() };
        let (mut knobs, mut hints) = (PolicyArgs::default(), Hints::default());
        let of = |power: &PowerModel, knobs: &PolicyArgs, hints: &Hints| {
            subject(&root, &flat(4, 1), power, knobs, hints)
        };
        let mut seen = vec![of(&power, &knobs, &hints)];
        assert!(seen[0].starts_with(env!("CARGO_PKG_VERSION")), "{seen:?}");
        power.worth_waking_us = Some(200.0);
        seen.push(of(&power, &knobs, &hints));
        hints.epp.packing = Some("balance_power".into());
        seen.push(of(&power, &knobs, &hints));
        clocks("performance");
        seen.push(of(&power, &knobs, &hints));
        knobs.fill_pct = Some(60);
        seen.push(of(&power, &knobs, &hints));
        assert!((1..seen.len()).all(|nth| !seen[..nth].contains(&seen[nth])), "{seen:?}");
        fs::remove_dir_all(root).unwrap();
    }

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
