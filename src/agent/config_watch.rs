//! Tells when the configuration file says something else, however it comes about: edited in
//! place, replaced by rename, or behind symlinks of which one is swapped, as Kubernetes does
//! with a mounted ConfigMap.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, Sender, unbounded};
use log::debug;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::agent::events::Event;

/// A file is written in several steps: it is read after this time without one.
const QUIET: Duration = Duration::from_millis(100);
/// As many symlinks as the kernel follows (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// Sends [`Event::ConfigChanged`] whenever the contents of `path` have changed, for as long
/// as the process lives. The file need not be there yet. Fails if the kernel has no watch left.
pub fn watch_config(path: &Path, events: Sender<Event>) -> Result<()> {
    let (news_in, news) = unbounded();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // We read it ourselves: that is no news.
        if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
            let _ = news_in.send(());
        }
    })
    .context("cannot watch the configuration file")?;
    let mut watch = Watch {
        path: std::path::absolute(path).context("cannot watch the configuration file")?,
        watcher,
        watched: BTreeSet::new(),
        contents: None,
    };
    watch.arm();
    watch.contents = fs::read(&watch.path).ok();
    thread::Builder::new()
        .name("config-watch".into())
        .spawn(move || watch.run(&news, &events))
        .context("cannot start a thread for the configuration file")?;
    Ok(())
}

struct Watch {
    path: PathBuf,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    contents: Option<Vec<u8>>,
}

impl Watch {
    fn run(mut self, news: &Receiver<()>, events: &Sender<Event>) {
        while news.recv().is_ok() {
            while news.recv_timeout(QUIET).is_ok() {}
            // First, so that nothing is missed between the look and the watch.
            self.arm();
            let contents = fs::read(&self.path).ok();
            if contents == self.contents {
                continue;
            }
            self.contents = contents;
            if events.send(Event::ConfigChanged).is_err() {
                return;
            }
        }
    }

    /// Watches the directories that matter now, and no others.
    fn arm(&mut self) {
        let wanted = directories(&self.path);
        for gone in self.watched.difference(&wanted) {
            // The kernel has forgotten a directory that was removed.
            let _ = self.watcher.unwatch(gone);
        }
        self.watched = wanted
            .into_iter()
            .filter(|dir| match self.watcher.watch(dir, RecursiveMode::NonRecursive) {
                Ok(()) => true,
                Err(err) => {
                    debug!("cannot watch {}: {err}", dir.display());
                    false
                }
            })
            .collect();
    }
}

/// All directories of which an entry decides what `path`, which is absolute, leads to: of each
/// symlink on the way, and of the file; of what is missing the deepest one that is there.
fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut here = PathBuf::from("/");
    let mut ahead: Vec<OsString> = names(path);
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        if let Ok(target) = fs::read_link(&next) {
            found.insert(here.clone());
            links += 1;
            if links > LINKS_MAX {
                return found;
            }
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            ahead.extend(names(&target));
        } else if next.is_dir() && !ahead.is_empty() {
            here = next;
        } else {
            found.insert(here);
            return found;
        }
    }
    found.insert(here);
    found
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("powerpack-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir.canonicalize().unwrap()
    }

    #[test]
    fn directories_are_those_of_all_links_and_of_the_file() {
        let dir = scratch("dirs");
        fs::create_dir_all(dir.join("etc/..1")).unwrap();
        fs::create_dir_all(dir.join("far")).unwrap();
        fs::write(dir.join("etc/..1/config.toml"), "").unwrap();
        symlink("..1", dir.join("etc/..data")).unwrap();
        symlink("..data/config.toml", dir.join("etc/config.toml")).unwrap();
        symlink(dir.join("etc"), dir.join("far/etc")).unwrap();
        let of = |path: &str| directories(&dir.join(path));
        let all = |names: &[&str]| names.iter().map(|name| dir.join(name)).collect();
        assert_eq!(of("etc/config.toml"), all(&["etc", "etc/..1"]));
        assert_eq!(of("far/etc/config.toml"), all(&["far", "etc", "etc/..1"]));
        assert_eq!(of("none/at/all.toml"), all(&[""]));
        assert_eq!(of("etc/../etc/none.toml"), all(&["etc"]));
        symlink("loop", dir.join("loop")).unwrap();
        assert_eq!(of("loop/a"), all(&[""]));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_change_is_told_once_however_it_comes_about() {
        let dir = scratch("watch");
        let file = dir.join("conf/config.toml");
        let (sender, events) = unbounded();
        watch_config(&file, sender).unwrap();
        let reported = |what: &str| {
            let event = events.recv_timeout(Duration::from_secs(20));
            assert!(matches!(event, Ok(Event::ConfigChanged)), "{what}");
            let more = events.recv_timeout(3 * QUIET);
            assert!(more.is_err(), "{what} was reported twice");
        };
        fs::create_dir(dir.join("conf")).unwrap();
        fs::write(&file, "1").unwrap();
        reported("a file in a new directory");
        fs::write(&file, "2").unwrap();
        reported("a file that is written");
        fs::write(dir.join("conf/new"), "3").unwrap();
        fs::rename(dir.join("conf/new"), &file).unwrap();
        reported("a file that is replaced");
        for nr in ["..1", "..2"] {
            fs::create_dir(dir.join("conf").join(nr)).unwrap();
            fs::write(dir.join("conf").join(nr).join("config.toml"), nr).unwrap();
        }
        symlink("..1", dir.join("conf/..data")).unwrap();
        fs::remove_file(&file).unwrap();
        symlink("..data/config.toml", &file).unwrap();
        reported("a file behind links");
        symlink("..2", dir.join("conf/..data_tmp")).unwrap();
        fs::rename(dir.join("conf/..data_tmp"), dir.join("conf/..data")).unwrap();
        reported("a link that is swapped");
        fs::remove_dir_all(dir.join("conf")).unwrap();
        reported("a file that is removed");
        fs::write(dir.join("other"), "").unwrap();
        assert!(events.recv_timeout(3 * QUIET).is_err(), "another file is no news");
        fs::remove_dir_all(&dir).unwrap();
    }
}
