//! The configuration file: what the command line can say, how `auto` chooses, and the table
//! of workloads. Command line beats file beats default.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::record;
use crate::machine::topology::Ranks;
use crate::settings::auto::Rules;
use crate::settings::hints::{self, Hints};
use crate::settings::mode::Mode;
use crate::settings::policy::{Choice, Policy, PolicyArgs};
use crate::settings::workloads::Table;

/// Read if it is there and `--config` names no other.
const DEFAULT_PATH: &str = "/etc/scx_powerpack/config.toml";
/// A hundred times what a table of all cgroups of a large machine takes.
const SIZE_MAX_BYTES: u64 = 1 << 20;
/// The device number of /dev/null, which says nothing each time.
const DEV_NULL: u64 = libc::makedev(1, 3);

/// The file's contents; everything may be left out.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A mode's name, or `auto`.
    pub mode: Option<Choice>,
    /// Where OpenMetrics are served; nowhere if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    #[serde(default)]
    pub policy: PolicyArgs,
    /// By what `auto` chooses.
    #[serde(default)]
    pub auto: Rules,
    /// Requests to the idle and frequency drivers, and where interrupts come.
    #[serde(default)]
    pub hints: Hints,
    /// Which cgroups are treated differently from what the mode says.
    #[serde(default)]
    pub workloads: Table,
}

impl Config {
    /// All settings, none left out: `policy` is what these come to on a machine.
    pub fn completed(&self, policy: Policy) -> Config {
        Config {
            mode: Some(self.mode.unwrap_or(Choice::Fixed(policy.mode))),
            policy: policy.to_args(),
            ..self.clone()
        }
    }
}

/// The configuration, and where it was written.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// `None`: there is no such file, and the defaults hold.
    text: Option<String>,
    pub config: Config,
}

/// Where the configuration is.
pub fn path(named: Option<&Path>) -> PathBuf {
    named.unwrap_or(Path::new(DEFAULT_PATH)).to_owned()
}

/// How a configuration that said something is lost: `None` where the file says something, or
/// cannot be read, which reading it will report.
pub fn loss(named: Option<&Path>) -> Option<String> {
    let path = path(named);
    let how = match read_text(&path) {
        Err(err) if err.kind() == ErrorKind::NotFound => "gone",
        Ok(text) if text.trim().is_empty() => "empty",
        _ => return None,
    };
    // One that was named must be there.
    let asks = match (how, named) {
        ("gone", Some(_)) => "",
        _ => ", or say 'scx_powerpack reload', which takes the defaults",
    };
    Some(format!("{} is {how}, as by mistake: put it back{asks}", path.display()))
}

/// What it says, or why it cannot be read, to compare it with later; `None`: it is not there.
pub fn text(named: Option<&Path>) -> Option<String> {
    match read_text(&path(named)) {
        Err(err) if err.kind() == ErrorKind::NotFound => None,
        text => Some(text.unwrap_or_else(|err| err.to_string())),
    }
}

/// Reads a file of configuration. Fails for one that is not the same each time that it is read, as a pipe, which would
/// also keep waiting who reads it; and for more than anybody writes.
fn read_text(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() && meta.rdev() != DEV_NULL {
        return Err(io::Error::other("it is no file that can be read again"));
    }
    let mut text = String::new();
    file.take(SIZE_MAX_BYTES).read_to_string(&mut text)?;
    if text.len() as u64 == SIZE_MAX_BYTES {
        return Err(io::Error::other(format!("it has {SIZE_MAX_BYTES} bytes or more")));
    }
    Ok(text)
}

impl ConfigFile {
    /// Reads the file that is `named`, or the default one if it is there. Fails with a
    /// sentence that names the file, the line and the field.
    pub fn read(named: Option<&Path>) -> Result<Self> {
        let path = path(named);
        let text = match read_text(&path) {
            Err(err) if err.kind() == ErrorKind::NotFound && named.is_none() => None,
            text => Some(text.with_context(|| format!("cannot read {}", path.display()))?),
        };
        let config = parse_toml(text.as_deref().unwrap_or_default())
            .with_context(|| format!("in {}", path.display()))?;
        let file = ConfigFile { path, text, config };
        file.config.auto.check().map_err(|err| file.blame(err))?;
        Ok(file)
    }

    /// Whether anything is in it, be it comments.
    pub fn has_contents(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.trim().is_empty())
    }

    /// What is said of a file that is right.
    pub fn verdict(&self) -> String {
        let path = self.path.display();
        match self.text {
            Some(_) => format!("{path} is right"),
            None => format!("there is no {path}: the defaults hold, which are right"),
        }
    }

    /// The policy that it asks for on a machine, checked, as far as that can have it. Fails
    /// with a sentence that names the file, the line and the field.
    pub fn policy(&self, ranks: &Ranks) -> Result<Policy> {
        let (args, _) = self.config.policy.within(ranks.nr_cores());
        let (mode, args) = match self.config.mode {
            Some(Choice::Fixed(mode)) => (mode, args),
            None => (Mode::Packing, args),
            // What only one mode has waits for that mode.
            Some(Choice::Auto) => (Mode::Packing, args.for_mode(Mode::Packing)),
        };
        Policy::of(mode).with(mode, &args).checked(ranks).map_err(|err| self.blame(err))
    }

    /// A sentence for each thing of it that this machine cannot have now: it is right in
    /// itself, and the rest would be in force. Fails with one if a hint is wrong.
    pub fn lacks(&self, ranks: &Ranks) -> Result<Vec<String>> {
        let mut lacks = self.config.hints.lacks(&hints::root(), Path::new(record::HINTS))?;
        let (_, lack) = self.config.policy.within(ranks.nr_cores());
        lacks.extend(lack.map(|lack| format!("{:#}", self.blame(anyhow!(lack)))));
        Ok(lacks)
    }

    /// Says where in the file the knob is that `err` is about, if it is there.
    pub fn blame(&self, err: Error) -> Error {
        let said = err.to_string();
        let named = said.split([' ', ':']).next().unwrap_or_default().trim_start_matches("--");
        let field = named.replace('-', "_");
        let sets = |line: &str| {
            let rest = line.trim_start().strip_prefix(field.as_str());
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        match self.text.as_ref().and_then(|text| text.lines().position(sets)) {
            Some(line) => err.context(format!("in {}: line {}", self.path.display(), line + 1)),
            None => err,
        }
    }
}

/// Parses a file of the user's. Fails with a sentence that names the line and the field.
pub fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|err| {
        let line = err.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow!("line {line}: {}", err.message().replace('\n', " "))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;

    use super::*;
    use crate::machine::topology::tests::flat;
    use crate::settings::policy::{MaxCores, Pack};

    #[test]
    fn what_cannot_be_read_again_is_refused() {
        let fifo = std::env::temp_dir().join(format!("powerpack-fifo-{}", std::process::id()));
        let name = CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: a string that ends with 0.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        // Without a writer an open pipe would be waited for.
        for path in [&fifo, Path::new("/dev/zero"), Path::new("/")] {
            let said = format!("{:#}", ConfigFile::read(Some(path)).unwrap_err());
            assert!(said.contains("no file that can be read again"), "{said}");
            assert!(text(Some(path)).unwrap().contains("no file"), "to see that it is replaced");
        }
        assert_eq!(text(Some(Path::new("/dev/null"))).unwrap(), "");
        assert_eq!(text(Some(&fifo.join("below"))), Some("Not a directory (os error 20)".into()));
        fs::remove_file(fifo).unwrap();
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let said = format!("{:#}", read(&"#".repeat(1 << 20)).unwrap_err());
        assert!(said.contains("it has 1048576 bytes or more"), "{said}");
    }

    /// A file with this text, read.
    fn read(text: &str) -> Result<ConfigFile> {
        let path = std::env::temp_dir().join(format!(
            "powerpack-config-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        fs::write(&path, text).unwrap();
        let file = ConfigFile::read(Some(&path));
        fs::remove_file(&path).unwrap();
        file
    }

    #[test]
    fn the_file_that_is_installed_is_read() {
        let text = include_str!("../../packaging/config.toml");
        let config = read(text).unwrap().config;
        assert_eq!(config.mode, Some(Choice::Fixed(Mode::Packing)));
        // All that is commented out there is right too.
        let text: String = text
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let config = read(&text).unwrap().config;
        assert_eq!(config.policy.max_cores, Some(MaxCores::Cores(4)));
        assert_eq!(config.policy.pack, Some(Pack::All));
        assert_eq!(config.auto, Rules::default(), "the defaults that it shows are the defaults");
        assert_eq!(config.metrics, Some("127.0.0.1:9994".parse().unwrap()));
        assert!(!config.workloads.is_empty());
    }

    #[test]
    fn a_mistake_is_named_by_line_and_field() {
        let ranks = flat(4, 1);
        for (text, said) in [
            ("mode = \"turbo\"\n", ": line 1: unknown mode 'turbo'"),
            ("mode = \"packing\"\n[policy]\nfill = 80\n", ": line 3: unknown field `fill`"),
            ("[workloads]\nefficient = [\"[\"]\n", ": line 2: '[' is no pattern"),
            ("mode = \n", ": line 1: "),
            ("\nmetrics = \"localhost\"\n", ": line 2: "),
            ("[auto]\nbusy_pct = 0\n", ": line 2: busy_pct 0 is out of range: 1..100"),
            ("[auto]\n\ncalm_pct = 70\n", ": line 3: calm_pct 70 must be less"),
            ("[policy]\n\nmax_cores = 0\n", ": line 3: --max-cores 0 is out of range"),
            ("[policy]\nfill_pct=101\n", ": line 2: --fill-pct 101 is out of range: 10..100"),
        ] {
            let err = read(text).and_then(|file| file.policy(&ranks)).unwrap_err();
            let err = format!("{err:#}");
            assert!(err.contains(said) && err.lines().count() == 1, "{err}");
        }
    }

    #[test]
    fn a_ceiling_above_the_machine_is_no_mistake() {
        let file = read("[policy]\n\nmax_cores = 5\n").unwrap();
        let ranks = flat(4, 1);
        assert_eq!(file.policy(&ranks).unwrap().max_cores, Some(4));
        let lacks = file.lacks(&ranks).unwrap();
        assert!(lacks[0].contains(": line 3: max_cores 5 is more than the 4 cores"), "{lacks:?}");
        assert!(file.lacks(&flat(5, 1)).unwrap().is_empty());
    }

    #[test]
    fn what_is_shown_reads_as_the_same() {
        let file = read("mode = \"spread\"\n[policy]\nfill_pct = 70\n").unwrap();
        let policy = file.policy(&flat(4, 1)).unwrap();
        let text = toml::to_string(&file.config.completed(policy)).unwrap();
        let again = read(&text).unwrap();
        assert_eq!(again.policy(&flat(4, 1)).unwrap(), policy);
        for part in ["mode = \"spread\"", "fill_pct = 70", "max_cores = \"all\"", "busy_pct = 60"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn only_a_file_that_is_there_is_said_to_be_right() {
        assert!(read("").unwrap().verdict().ends_with(" is right"));
        let missing = ConfigFile { text: None, ..read("").unwrap() };
        let said = missing.verdict();
        assert!(
            said.starts_with("there is no /") && said.contains(": the defaults hold"),
            "{said}"
        );
        assert!(!missing.has_contents());
    }

    #[test]
    fn only_a_file_that_was_named_must_be_there() {
        let missing = Path::new("/nonexistent/config.toml");
        let text = format!("{:#}", ConfigFile::read(Some(missing)).unwrap_err());
        assert!(text.contains("cannot read /nonexistent/config.toml"), "{text}");
    }
}
