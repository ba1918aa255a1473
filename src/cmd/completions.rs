//! `scx_powerpack completions`: what a shell completes the command line with, made from the
//! definition in `cli.rs`.

use std::io::{self, Write};

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::settings::policy::Mode;

/// Prints the script for `shell`.
pub fn print(shell: Shell) -> Result<()> {
    Ok(io::stdout().write_all(script(shell).as_bytes())?)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut visible(&Cli::command()), "scx_powerpack", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// `command` without the subcommands that help hides: clap_complete would offer them.
/// The names leak: clap wants them to live as long as the program, which prints and ends.
fn visible(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(visible);
    let name: &str = command.get_name().to_owned().leak();
    let about = command.get_about().cloned().unwrap_or_default();
    // With a version, as clap wants one where --version is: an argument of our own.
    let bare = Command::new(name).about(about).version("").disable_version_flag(true);
    bare.args(command.get_arguments().cloned().map(with_modes)).subcommands(shown)
}

/// A mode is parsed later than the others are, for a message that lists the modes: clap knows
/// of none that could be offered.
fn with_modes(arg: Arg) -> Arg {
    if arg.get_id() != "mode" {
        return arg;
    }
    let names = Mode::ALL.map(Mode::name).into_iter().chain(["auto"]);
    arg.value_parser(PossibleValuesParser::new(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_offers_what_help_shows() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            let cli = Cli::command();
            for sub in cli.get_subcommands() {
                let name = sub.get_name();
                // In bash, a pattern of words; elsewhere a word of its own.
                let named = script.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
                assert_eq!(named, !sub.is_hide_set(), "{shell}: {name}");
            }
            // fish has no dashes: complete -l max-cores.
            for wanted in ["max-cores", "latency-budget-ms", "balance", "compare", "table"] {
                assert!(script.contains(wanted), "{shell}: {wanted}");
            }
        }
    }
}
