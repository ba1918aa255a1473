//! `scx_powerpack report`: one file for a report of a bug, with nothing private in it. It reads, and
//! changes nothing; what cannot be read is said in it.

mod agent;
mod command;
mod kernel;
mod log;
mod mask;
mod part;
mod power;

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cmd::status::topology_text;
use crate::machine::kernel::is_root;
use crate::machine::recording;
use crate::machine::topology::Ranks;
use crate::settings::hints;
use mask::Mask;
use part::Part;

/// In place of a file's name: the standard output.
const STDOUT: &str = "-";

/// Writes the report into `file`, which must not be there; without one, into a new file here. Fails
/// with a sentence if it cannot be written.
pub fn run(file: Option<&Path>) -> Result<()> {
    if file == Some(Path::new(STDOUT)) {
        return Ok(io::stdout().write_all(make().as_bytes())?);
    }
    let now = jiff::Zoned::now();
    let own = || PathBuf::from(now.strftime("scx_powerpack-report-%Y%m%d-%H%M%S.txt").to_string());
    let path = file.map_or_else(own, Path::to_owned);
    // First, as it may take some seconds to make what cannot be written.
    let mut opened = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(err) if err.kind() == ErrorKind::AlreadyExists => {
            bail!("{} is there already: remove it, or name another file", path.display());
        }
        opened => opened.with_context(|| format!("cannot write {}", path.display()))?,
    };
    opened
        .write_all(make().as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}: read it through before you send it", path.display());
    Ok(())
}

fn make() -> String {
    let mut mask = Mask::of_this_machine();
    let root = hints::root();
    let parts = [
        kernel::kernel(&mask),
        kernel::sched_ext(&mask),
        log::exits(&mask),
        topology(&root),
        power::frequencies(&root, &mask),
        power::idle_states(&root, &mask),
        power::energy(&root),
        agent::configuration(&mut mask),
        agent::status(&mut mask),
        agent::units(&mask),
        agent::files(),
        log::kernel_log(&mask),
        recorded(&root),
    ];
    part::text(&about(), &parts)
}

/// What this file is.
fn about() -> String {
    format!(
        "Made at {} by scx_powerpack {}, {}.\n\n\
         It has no names of tasks, users or of this machine, no addresses, and of command lines our own flags and\n\
         the kernel's options that concern CPUs. cgroups are called cgroup-1, cgroup-2 and so on, alike in all of\n\
         it. Read it through before you send it.",
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        env!("CARGO_PKG_VERSION"),
        if is_root() { "as root" } else { "not as root" },
    )
}

fn topology(root: &Path) -> Part {
    let mut part = Part::new("CPUs, in the order in which they are filled");
    match Ranks::read() {
        Ok(ranks) => part.add(topology_text(&ranks)),
        Err(err) => part.miss(root.join("sys").display(), format!("{err:#}")),
    }
    part
}

/// What the ranks are made of: this part, as a file, is a test.
fn recorded(root: &Path) -> Part {
    let mut part = Part::new("Recording of the CPUs, for tests/topologies");
    part.add(recording::text(root));
    part
}
