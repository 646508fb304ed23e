//! From what was typed to the command that does it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::app::App;
use crate::cli::{Cli, Command, Global};
use crate::commands;
use crate::complete;
use crate::error::{Code, Failure};
use crate::output::status::Waiting;
use crate::output::{self, Reply, err, out};

pub(crate) fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_bug));
    let arguments: Vec<OsString> = std::env::args_os().collect();
    #[cfg(target_os = "linux")]
    if arguments.get(1).is_some_and(|first| first == lattice_sprites::sandbox::LAUNCHER) {
        return ExitCode::from(u8::try_from(lattice_sprites::sandbox::launcher_main()).unwrap_or(1));
    }
    complete::answer_shell();
    exit(output::checked(run(arguments)))
}

/// A broken promise of ours has an exit code of its own, and the repository is as the journal says.
fn report_bug(panic: &std::panic::PanicHookInfo<'_>) {
    err(&format!("lattice: this is a bug, please report it: {panic}\n"));
    if std::env::args_os().any(|argument| argument == "--json") {
        let failure = Failure::new("internal-error", "this is a bug, please report it with what stands on stderr");
        out(&format!("{}\n", output::error_document(&failure)));
    }
    std::process::exit(Code::Internal as i32);
}

fn exit(code: Code) -> ExitCode {
    ExitCode::from(code as u8)
}

fn run(arguments: Vec<OsString>) -> Code {
    let arguments = match commands::alias::expand(&arguments) {
        Some(expanded) => expanded,
        None => arguments,
    };
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&arguments, &closest_first(error, &arguments)),
    };
    let mut global = cli.global;
    if let Some(Command::Plan(arguments)) = &cli.command {
        global = global.then(arguments.global());
    }
    let app = match App::new(&global) {
        Ok(app) => app,
        Err(error) => {
            let failure = Failure::new("no-directory", format!("the current directory cannot be read: {error}"));
            return output::show_without_app(&global, &failure);
        }
    };
    let result = match cli.command {
        Some(command) => {
            let waiting = asks_a_host(&command).then(|| Waiting::begin(&app, "waiting for the remote"));
            let result = dispatch(&app, command);
            drop(waiting);
            result
        }
        None => commands::log::overview(&app),
    };
    output::show(&app, result)
}

fn asks_a_host(command: &Command) -> bool {
    matches!(
        command,
        Command::Submit(_)
            | Command::Ss(_)
            | Command::Sync(_)
            | Command::Get(_)
            | Command::Merge(_)
            | Command::Issue(_)
            | Command::Pr(_)
    )
}

/// Help and version go to stdout; anything else that clap objects to is a usage error.
fn usage(arguments: &[OsString], error: &clap::Error) -> Code {
    let json = arguments.iter().any(|argument| argument == "--json");
    match error.kind() {
        ErrorKind::DisplayHelp => {
            out(&help(arguments));
            Code::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !json => {
            out(&help(arguments));
            Code::Usage
        }
        ErrorKind::DisplayVersion if json => {
            let global = Global::plain();
            match App::new(&Global { json: true, ..global }) {
                Ok(app) => output::show(&app, Ok(commands::program::version())),
                Err(_) => Code::Failed,
            }
        }
        ErrorKind::DisplayVersion => {
            out(&error.render().to_string());
            Code::Done
        }
        _ if json => {
            out(&format!("{}\n", output::error_document(&Failure::usage(objection(error)))));
            Code::Usage
        }
        _ => {
            err(&error.render().to_string());
            Code::Usage
        }
    }
}

/// What clap objects to, without the word that every failure begins with here.
fn objection(error: &clap::Error) -> String {
    let message = error.render().to_string();
    message.trim().trim_start_matches("error: ").to_owned()
}

/// What other tools call it.
const ELSEWHERE: [(&[&str], &[&str]); 11] = [
    (&["commit", "amend", "add"], &["modify", "create"]),
    (&["push", "publish"], &["submit"]),
    (&["pull", "fetch"], &["sync", "get"]),
    (&["rebase"], &["restack", "move"]),
    (&["status", "st", "stack", "tree"], &["log", "info"]),
    (&["branch", "new"], &["create", "track"]),
    (&["switch"], &["checkout"]),
    (&["show", "diff"], &["info", "log"]),
    (&["land"], &["merge"]),
    (&["next", "prev", "previous"], &["up", "down"]),
    (&["remove", "rm"], &["delete", "untrack"]),
];

/// Suggests what was most probably meant first, and no abbreviations: a letter is like everything that has it.
fn closest_first(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    // Commands of commands are others.
    let is_option = |argument: &&OsString| argument.to_string_lossy().starts_with('-');
    let is_first =
        arguments.iter().skip(1).find(|argument| !is_option(argument)).is_some_and(|first| first == typed.as_str());
    let known = ELSEWHERE.iter().find(|(words, _)| is_first && words.contains(&typed.as_str()));
    let names: Vec<String> = match (known, error.get(ContextKind::SuggestedSubcommand)) {
        (Some((_, ours)), _) => ours.iter().map(|name| (*name).to_owned()).collect(),
        (None, Some(ContextValue::Strings(names))) => {
            let mut names: Vec<_> = names.iter().filter(|name| name.len() > 1).cloned().collect();
            lattice_model::similar::closest_first(typed, &mut names);
            names
        }
        (None, _) => return error,
    };
    match names.is_empty() {
        true => error.remove(ContextKind::SuggestedSubcommand),
        false => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names)),
    };
    error
}

/// Commands say what they are for only once they are built, which a run of one of them does without.
fn help(arguments: &[OsString]) -> String {
    let mut whole = Cli::command();
    whole.build();
    match whole.try_get_matches_from_mut(arguments) {
        Err(error) => error.render().to_string(),
        Ok(_) => String::new(),
    }
}

/// Runs arguments that were recorded earlier, as `apply` does.
pub(crate) fn parse_recorded(arguments: &[String]) -> Result<Cli, Failure> {
    let words = std::iter::once("lattice".to_owned()).chain(arguments.iter().cloned());
    Cli::try_parse_from(words).map_err(|error| Failure::usage(objection(&error)))
}

pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}

/// One command, one function.
pub(crate) fn dispatch(app: &App, command: Command) -> Result<Reply, Failure> {
    match command {
        Command::Init(arguments) => commands::init::run(app, &arguments),
        Command::Track(arguments) => commands::track::run(app, &arguments),
        Command::Untrack(arguments) => commands::untrack::run(app, &arguments),
        Command::Create(arguments) => commands::create::run(app, &arguments),
        Command::Modify(arguments) => commands::modify::run(app, &arguments),
        Command::Restack(arguments) => commands::restack::run(app, &arguments),
        Command::Move(arguments) => commands::reparent::run(app, &arguments),
        Command::Absorb(arguments) => commands::absorb::run(app, &arguments),
        Command::Reorder(arguments) => commands::edit::run_reorder(app, &arguments),
        Command::Split(arguments) => commands::edit::run_split(app, &arguments),
        Command::Squash(arguments) => commands::edit::run_squash(app, &arguments),
        Command::Fold(arguments) => commands::edit::run_fold(app, &arguments),
        Command::Pop(arguments) => commands::edit::run_pop(app, &arguments),
        Command::Delete(arguments) => commands::edit::run_delete(app, &arguments),
        Command::Rename(arguments) => commands::edit::run_rename(app, &arguments),
        Command::Revert(arguments) => commands::edit::run_revert(app, &arguments),
        Command::Freeze(arguments) => commands::freeze::run(app, &arguments),
        Command::Unfreeze(arguments) => commands::freeze::run_unfreeze(app, &arguments),
        Command::Checkout(arguments) => commands::checkout::run(app, &arguments),
        Command::Up(arguments) => commands::checkout::run_up(app, &arguments),
        Command::Down(arguments) => commands::checkout::run_down(app, &arguments),
        Command::Top(arguments) => commands::checkout::run_top(app, &arguments),
        Command::Bottom(arguments) => commands::checkout::run_bottom(app, &arguments),
        Command::Log(arguments) => commands::log::run(app, &arguments),
        Command::Ls(arguments) => commands::log::run_short(app, &arguments),
        Command::Info(arguments) => commands::info::run(app, &arguments),
        Command::Parent(arguments) => commands::look::run_parent(app, &arguments),
        Command::Children(arguments) => commands::look::run_children(app, &arguments),
        Command::Trunk(arguments) => commands::trunk::run(app, &arguments),
        Command::Submit(arguments) => commands::submit::run(app, &arguments),
        Command::Ss(arguments) => commands::submit::run_stack(app, &arguments),
        Command::Sync(arguments) => commands::sync::run(app, &arguments),
        Command::Get(arguments) => commands::get::run(app, &arguments),
        Command::Merge(arguments) => commands::merge::run(app, &arguments),
        Command::Unlink(arguments) => commands::unlink::run(app, &arguments),
        Command::Pr(arguments) => commands::pr::run(app, &arguments),
        Command::Issue(arguments) => commands::issue::run(app, &arguments),
        Command::Auth(arguments) => commands::auth::run(app, &arguments),
        Command::Continue(arguments) => commands::resume::run_continue(app, &arguments),
        Command::Abort(arguments) => commands::resume::run_abort(app, &arguments),
        Command::Undo(arguments) => commands::undo::run_undo(app, &arguments),
        Command::Redo(arguments) => commands::undo::run_redo(app, &arguments),
        Command::Ops(arguments) => commands::ops::run(app, &arguments),
        Command::Doctor(arguments) => commands::doctor::run(app, &arguments),
        Command::Verify(arguments) => commands::verify::run(app, &arguments),
        Command::Plan(arguments) => commands::plan::run_plan(app, &arguments),
        Command::Apply(arguments) => commands::plan::run_apply(app, &arguments),
        Command::Context(arguments) => commands::context::run(app, &arguments),
        Command::Config(arguments) => commands::config::run(app, &arguments),
        Command::Explain(arguments) => commands::explain::run(app, &arguments),
        Command::Run(arguments) => commands::run::run(app, &arguments),
        Command::Checkpoint(arguments) => commands::run::run_checkpoint(app, &arguments),
        Command::Resume(arguments) => commands::sprite::resume::run(app, &arguments),
        Command::Sprite(arguments) => commands::sprite::run(app, &arguments),
        Command::Approvals(arguments) => commands::approvals::run_list(app, &arguments),
        Command::Approve(arguments) => commands::approvals::run_approve(app, &arguments),
        Command::Deny(arguments) => commands::approvals::run_deny(app, &arguments),
        Command::Proposals(arguments) => commands::proposals::run(app, &arguments),
        Command::Emit(arguments) => commands::emit::run(app, arguments),
        Command::Completion(arguments) => commands::program::run_completion(&arguments),
        Command::Man(arguments) => commands::program::run_man(&arguments),
        Command::Schema(arguments) => commands::program::run_schema(&arguments),
        Command::Demo(arguments) => commands::demo::run(app, &arguments),
    }
}
