//! What a shell offers at the cursor: commands and flags as the command line describes itself, names as the repository
//! has them.

use clap::Command;
use clap::builder::Resettable;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use lattice_model::settings::OPTIONS;
use lattice_sprites::store::{Sprite, Store};

use crate::app::App;
use crate::cli::Global;
use crate::dispatch;

/// Set by the script in the shell, with the name of the shell.
const VARIABLE: &str = "LATTICE_COMPLETE";

/// Arguments that take a branch, wherever they stand.
const BRANCHES: [&str; 8] = ["branch", "parent", "onto", "into", "source", "to", "order", "trunk"];

/// Commands whose `id` is a sprite.
const OF_SPRITES: [&str; 2] = ["sprite", "resume"];

/// Commands whose `id` is an action that waits.
const OF_ACTIONS: [&str; 2] = ["approve", "deny"];

/// Answers the shell, and ends the program, if it is the shell that asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(command_line).var(VARIABLE).bin("lattice").complete();
}

/// What a shell has to read so that it asks; for both names of the program.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        for name in ["lattice", "lt"] {
            let written = completer.write_registration(VARIABLE, name, name, name, &mut script);
            written.expect("bug: memory can be written");
        }
    }
    String::from_utf8_lossy(&script).into_owned()
}

fn command_line() -> Command {
    let mut command = dispatch::command_line();
    command.build();
    command.mut_subcommands(|command| with_names(with_hidden_aliases(command), None))
}

/// Short names are understood and not offered: a shell would show one in the place of the command that it stands for.
fn with_hidden_aliases(command: Command) -> Command {
    let short: Vec<_> = command.get_visible_aliases().map(str::to_owned).collect();
    // The program ends as soon as the shell has its answer.
    command.visible_alias(Resettable::Reset).aliases(short.into_iter().map(|name| &*name.leak()))
}

/// Adds the names that the arguments of a command and of those below it take.
fn with_names(command: Command, ids: Option<fn() -> Vec<CompletionCandidate>>) -> Command {
    let name = command.get_name();
    let ids = match name {
        _ if OF_SPRITES.contains(&name) => Some(sprites as fn() -> _),
        _ if OF_ACTIONS.contains(&name) => Some(actions as fn() -> _),
        _ => ids,
    };
    let command = command.mut_args(|argument| match (argument.get_id().as_str(), ids) {
        ("id", Some(ids)) => argument.add(ArgValueCandidates::new(ids)),
        ("key", _) => argument.add(ArgValueCandidates::new(options)),
        (id, _) if BRANCHES.contains(&id) => argument.add(ArgValueCandidates::new(branches)),
        _ => argument,
    });
    command.mut_subcommands(|below| with_names(below, ids))
}

/// Where there is nothing to name, nothing is offered: a shell has no place for an error.
fn branches() -> Vec<CompletionCandidate> {
    let names = || App::new(&Global::plain()).ok()?.engine().ok()?.branches().ok();
    names().unwrap_or_default().iter().map(|name| CompletionCandidate::new(name.as_str())).collect()
}

/// The store as it is, without setting right what a supervisor that is gone has left.
fn store() -> Option<Store> {
    let engine = App::new(&Global::plain()).ok()?.engine().ok()?;
    Store::look(&lattice_sprites::store_path(&engine.repository().common_dir)).ok()?
}

fn options() -> Vec<CompletionCandidate> {
    OPTIONS.iter().map(|option| CompletionCandidate::new(option.key).help(Some(option.help.into()))).collect()
}

fn sprites() -> Vec<CompletionCandidate> {
    let sprites = store().and_then(|store| store.sprites().ok()).unwrap_or_default();
    let state = |sprite: &Sprite| Some(sprite.state.as_str().into());
    sprites.into_iter().map(|sprite| CompletionCandidate::new(&sprite.name).help(state(&sprite))).collect()
}

fn actions() -> Vec<CompletionCandidate> {
    let actions = store().and_then(|store| store.actions(None).ok()).unwrap_or_default();
    let waiting = actions.into_iter().filter(|row| !row.state.is_settled());
    waiting.map(|row| CompletionCandidate::new(row.id.to_string()).help(Some(row.action.into()))).collect()
}
