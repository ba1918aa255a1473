//! Tells when the configuration file says something else, however it comes about: edited in
//! place, replaced by rename, or behind symlinks of which one is swapped, as Kubernetes does
//! with a mounted ConfigMap.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, Sender, unbounded};
use log::warn;
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::agent::events::Event;
use crate::settings::config;

/// A file is written in several steps: it is read after this time without one.
const QUIET: Duration = Duration::from_millis(100);
/// But not later than this: one that is written all the time is read in between.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);
/// As many symlinks as the kernel follows (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// Sends [`Event::ConfigChanged`] whenever the contents of `path` have changed, for as long
/// as the process lives. The file need not be there yet. Fails if the kernel has no watch left.
pub fn watch_config(path: &Path, events: Sender<Event>) -> Result<()> {
    let (news_in, news) = unbounded();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // We read it ourselves: that is no news.
        if !event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
            let _ = news_in.send(event);
        }
    })
    .context("cannot watch the configuration file")?;
    let mut watch = Watch::new(path, watcher)?;
    watch.arm();
    watch.contents = config::text(Some(&watch.path));
    thread::Builder::new()
        .name("config-watch".into())
        .spawn(move || watch.run(&news, &events))
        .context("cannot start a thread for the configuration file")?;
    Ok(())
}

struct Watch {
    path: PathBuf,
    watcher: RecommendedWatcher,
    /// What decides where `path` leads to.
    entries: BTreeSet<PathBuf>,
    /// The directories of these.
    watched: BTreeSet<PathBuf>,
    /// That one of them cannot be watched was said.
    has_warned: bool,
    contents: Option<String>,
}

impl Watch {
    /// Nothing is watched yet. Fails if there is no current directory to find `path` from.
    fn new(path: &Path, watcher: RecommendedWatcher) -> Result<Self> {
        Ok(Watch {
            path: std::path::absolute(path).context("cannot watch the configuration file")?,
            watcher,
            entries: BTreeSet::new(),
            watched: BTreeSet::new(),
            has_warned: false,
            contents: None,
        })
    }

    fn run(mut self, news: &Receiver<notify::Result<notify::Event>>, events: &Sender<Event>) {
        while let Ok(event) = news.recv() {
            if !self.is_news(&event) {
                continue;
            }
            self.wait_for_quiet(news);
            // First, so that nothing is missed between the look and the watch.
            self.arm();
            let contents = config::text(Some(&self.path));
            if contents == self.contents {
                continue;
            }
            self.contents = contents;
            if events.send(Event::ConfigChanged).is_err() {
                return;
            }
        }
    }

    /// Whether it may be about our file: others in its directory may change all the time.
    fn is_news(&self, event: &notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else { return true };
        // Without a path: some were lost.
        let is_ours = |path| self.entries.contains(path) || self.watched.contains(path);
        event.paths.is_empty() || event.paths.iter().any(is_ours)
    }

    fn wait_for_quiet(&self, news: &Receiver<notify::Result<notify::Event>>) {
        let mut now = Instant::now();
        let latest = now + QUIET_WAIT_MAX;
        let mut until = now + QUIET;
        while now < until.min(latest) {
            let Ok(event) = news.recv_deadline(until.min(latest)) else { return };
            now = Instant::now();
            if self.is_news(&event) {
                until = now + QUIET;
            }
        }
    }

    /// Watches the directories that matter now, and no others.
    fn arm(&mut self) {
        self.entries = entries(&self.path);
        let wanted: BTreeSet<PathBuf> = directories(&self.entries);
        for gone in self.watched.difference(&wanted) {
            // The kernel has forgotten a directory that was removed.
            let _ = self.watcher.unwatch(gone);
        }
        let mut failure = None;
        self.watched = wanted
            .into_iter()
            .filter(|dir| match self.watcher.watch(dir, RecursiveMode::NonRecursive) {
                Ok(()) => true,
                Err(err) => {
                    failure = explain(dir, &err).or(failure.take());
                    false
                }
            })
            .collect();
        let had_warned = std::mem::replace(&mut self.has_warned, failure.is_some());
        if let (Some(failure), false) = (failure, had_warned) {
            warn!("{failure}");
        }
    }
}

/// Why changes in `dir` will not be noticed; `None` if it has just gone, which is noticed
/// elsewhere.
fn explain(dir: &Path, err: &notify::Error) -> Option<String> {
    let (why, way_out) = match &err.kind {
        ErrorKind::PathNotFound => return None,
        ErrorKind::MaxFilesWatch => (
            "no inotify watch is left".to_owned(),
            "raise fs.inotify.max_user_watches and start it again, or ",
        ),
        _ => (err.to_string(), ""),
    };
    Some(format!(
        "changes of the configuration in {} are not noticed, as {why}: {way_out}say 'scx_powerpack reload' \
         after one",
        dir.display()
    ))
}

fn directories(entries: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    entries.iter().filter_map(|entry| entry.parent()).map(Path::to_owned).collect()
}

/// All entries of directories that decide what `path`, which is absolute, leads to: each
/// symlink on the way, and the file; of what is missing the first one that is.
fn entries(path: &Path) -> BTreeSet<PathBuf> {
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
            found.insert(next);
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
            found.insert(next);
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
        let of = |path: &str| directories(&entries(&dir.join(path)));
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
    #[test]
    fn what_is_never_quiet_is_read_nevertheless() {
        let dir = scratch("busy");
        let file = dir.join("config.toml");
        fs::write(&file, "").unwrap();
        let (sender, events) = unbounded();
        watch_config(&file, sender).unwrap();
        let begin = Instant::now();
        let mut nr = 0;
        while events.is_empty() && begin.elapsed() < 20 * QUIET_WAIT_MAX {
            nr += 1;
            fs::write(&file, format!("{nr}")).unwrap();
            thread::sleep(QUIET / 10);
        }
        assert!(!events.is_empty(), "not read in spite of {nr} changes");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_others_do_beside_the_file_is_no_news() {
        let dir = scratch("beside");
        let watcher = notify::recommended_watcher(|_| {}).unwrap();
        let mut watch = Watch::new(&dir.join("config.toml"), watcher).unwrap();
        watch.arm();
        let event = |name: &str| {
            let event = notify::Event::new(EventKind::Any);
            Ok(if name.is_empty() { event } else { event.add_path(dir.join(name)) })
        };
        assert!(watch.is_news(&event("config.toml")) && !watch.is_news(&event("other")));
        assert!(
            watch.is_news(&event("")) && watch.is_news(&event(".")),
            "some lost; the directory"
        );
        assert!(watch.is_news(&Err(notify::Error::generic("odd"))));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_watch_that_cannot_be_had_is_explained_but_one_of_what_is_gone() {
        let said = |kind| explain(Path::new("/etc/x"), &notify::Error::new(kind));
        let full = said(ErrorKind::MaxFilesWatch).unwrap();
        assert!(full.contains(" in /etc/x are not noticed") && full.contains("max_user_watches"));
        assert!(full.contains("'scx_powerpack reload'"), "{full}");
        assert!(said(ErrorKind::Generic("odd".into())).unwrap().contains("odd"));
        assert_eq!(said(ErrorKind::PathNotFound), None);
    }
}
