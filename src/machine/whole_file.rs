//! Files that are there whole or not at all, whatever happens while they are written.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Result, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` into the file, whose directory is there: another file beside it first, which takes its place when it is
/// on disk.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = with_ending(path, ".new");
    let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // Nothing else is to be done about half a file.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// `path` with `ending` behind it.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = std::env::temp_dir().join(format!("whole-file-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("file");
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        // What is a directory cannot be replaced.
        fs::create_dir_all(dir.join("busy/below")).unwrap();
        assert!(write(&dir.join("busy"), b"third").is_err());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        fs::remove_dir_all(dir).unwrap();
    }
}
