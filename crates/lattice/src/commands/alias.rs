//! The user's own short names, expanded before anything else is parsed.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::app::App;
use crate::cli::Global;
use crate::dispatch;

/// The arguments with an alias in the place of the command replaced; `None` where there is none.
pub(crate) fn expand(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (at, word) = first_word(arguments)?;
    if is_command(word) {
        return None;
    }
    let app = App::new(&Global { cwd: cwd(arguments), ..Global::plain() }).ok()?;
    // Outside of a repository only the user's own aliases count.
    let settings = app.engine().map_or_else(|_| app.user_settings(), |engine| engine.settings());
    let expansion = settings.aliases.get(word)?;
    let mut expanded = arguments[..at].to_vec();
    expanded.extend(expansion.split_whitespace().map(OsString::from));
    expanded.extend_from_slice(&arguments[at + 1..]);
    Some(expanded)
}

/// Whether a word is a command of ours, which no alias replaces.
pub(crate) fn is_command(word: &str) -> bool {
    let named =
        |command: &clap::Command| command.get_name() == word || command.get_all_aliases().any(|alias| alias == word);
    word == "help" || dispatch::command_line().get_subcommands().any(named)
}

/// The directory that `-C` names, in any of the ways in which it can be written.
fn cwd(arguments: &[OsString]) -> Option<PathBuf> {
    let named = |(at, argument): (usize, &OsString)| match argument.to_str()? {
        "-C" | "--cwd" => arguments.get(at + 1).map(PathBuf::from),
        text => text.strip_prefix("--cwd=").or_else(|| text.strip_prefix("-C")).map(PathBuf::from),
    };
    arguments.iter().enumerate().find_map(named)
}

/// The first argument that is neither the program, an option, nor the value of one.
fn first_word(arguments: &[OsString]) -> Option<(usize, &str)> {
    let mut skip = false;
    for (at, argument) in arguments.iter().enumerate().skip(1) {
        let text = argument.to_str()?;
        match text {
            _ if skip => skip = false,
            "-C" | "--cwd" | "--color" => skip = true,
            _ if text.starts_with('-') => {}
            _ => return Some((at, text)),
        }
    }
    None
}
