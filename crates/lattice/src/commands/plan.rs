//! `plan` and `apply`: plan now, apply later, and only if nothing changed in between.

use std::path::PathBuf;

use clap::Args;
use lattice_engine::Mode;
use lattice_model::id::ContentDigest;
use lattice_model::plan::Hooks;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::cli::{Cli, Command, Global};
use crate::dispatch;
use crate::error::Failure;
use crate::output::Reply;

/// Write down what a command would do
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The file to write; this may also stand behind the command
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The command with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

impl PlanArguments {
    /// The options for every command that stand behind the command that is planned.
    pub(crate) fn global(&self) -> Global {
        let (_, command) = self.parts();
        match dispatch::parse_recorded(&command) {
            Ok(cli) => cli.global,
            // Also what is wrong with the command is told in the format that was asked for.
            Err(_) => Global { json: command.iter().any(|word| word == "--json"), ..Global::plain() },
        }
    }

    /// The file to write and the command, wherever `--out` stands.
    fn parts(&self) -> (Option<PathBuf>, Vec<String>) {
        let mut command = self.command.clone();
        if self.out.is_some() {
            return (self.out.clone(), command);
        }
        let end = command.iter().position(|word| word == "--").unwrap_or(command.len());
        let Some(at) = command[..end].iter().rposition(|word| word == "--out" || word.starts_with("--out=")) else {
            return (None, command);
        };
        let out = match command.remove(at).strip_prefix("--out=") {
            Some(file) => Some(file.into()),
            None if at + 1 < end => Some(command.remove(at).into()),
            None => None,
        };
        (out, command)
    }
}

/// Carry out a plan if it is still the same
#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The file that `plan` wrote
    file: PathBuf,
}

/// A request and the digest of its plan. The plan itself is made again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    kind: String,
    schema_version: u32,
    arguments: Vec<String>,
    digest: ContentDigest,
}

const KIND: &str = "lattice.plan";

pub(crate) fn run_plan(app: &App, arguments: &PlanArguments) -> Result<Reply, Failure> {
    let (out, mut words) = arguments.parts();
    let out = out.ok_or_else(|| Failure::usage("a file for the plan is needed").hint("--out <file>"))?;
    let (_, command) = parse(&words)?;
    let planning = app.with_mode(Mode::DryRun);
    let reply = dispatch::dispatch(&planning, command)?;
    let plan = reply.field("plan");
    let digest = plan["digest"].as_str().and_then(|text| ContentDigest::new(text).ok());
    let digest = digest.ok_or_else(|| Failure::usage("this command changes nothing that could be planned"))?;
    if planning.hooks == Hooks::Skip {
        // In front, where it cannot be taken for an argument of the command.
        words.insert(0, "--no-verify".to_owned());
    }
    let file = PlanFile { kind: KIND.to_owned(), schema_version: 1, arguments: words, digest };
    let text = serde_json::to_string_pretty(&file).expect("bug: the file has string keys") + "\n";
    let path = app.directory.join(&out);
    crate::output::write_file(&path, &text)
        .map_err(|error| Failure::new("io", format!("{} cannot be written: {error}", path.display())))?;
    let document = serde_json::json!({ "file": path.display().to_string(), "plan": plan });
    Ok(Reply::named("plan", document, reply.text).note(format!("apply it with: lattice apply {}", out.display())))
}

pub(crate) fn run_apply(app: &App, arguments: &ApplyArguments) -> Result<Reply, Failure> {
    let path = app.directory.join(&arguments.file);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new("io", format!("{} cannot be read: {error}", path.display())))?;
    let file: PlanFile = serde_json::from_str(&text)
        .map_err(|error| Failure::new("plan-file", format!("{} is no plan: {error}", path.display())))?;
    if file.kind != KIND || file.schema_version != 1 {
        return Err(Failure::new("plan-file", format!("{} is a plan of another kind or version", path.display())));
    }
    let (hooks, command) = parse(&file.arguments)?;
    let mut applying = app.with_mode(Mode::ExecuteExactly(file.digest));
    if hooks == Hooks::Skip {
        applying.hooks = Hooks::Skip;
    }
    dispatch::dispatch(&applying, command)
}

/// The command, and whether it was planned without hooks.
fn parse(arguments: &[String]) -> Result<(Hooks, Command), Failure> {
    let Cli { command, global } = dispatch::parse_recorded(arguments)?;
    let hooks = if global.no_verify { Hooks::Skip } else { Hooks::Run };
    match command {
        Some(command) if makes_a_plan(&command) => Ok((hooks, command)),
        Some(_) | None => Err(Failure::usage("a command that changes something is needed")
            .hint("what `--dry-run` can show can be planned; continue, abort and doctor cannot")),
    }
}

/// Whether a command goes through plan and digest, and does nothing else.
fn makes_a_plan(command: &Command) -> bool {
    match command {
        Command::Init(_)
        | Command::Track(_)
        | Command::Untrack(_)
        | Command::Create(_)
        | Command::Modify(_)
        | Command::Restack(_)
        | Command::Move(_)
        | Command::Absorb(_)
        | Command::Reorder(_)
        | Command::Split(_)
        | Command::Squash(_)
        | Command::Fold(_)
        | Command::Pop(_)
        | Command::Delete(_)
        | Command::Rename(_)
        | Command::Revert(_)
        | Command::Freeze(_)
        | Command::Unfreeze(_)
        | Command::Checkout(_)
        | Command::Up(_)
        | Command::Down(_)
        | Command::Top(_)
        | Command::Bottom(_)
        | Command::Trunk(_)
        | Command::Undo(_)
        | Command::Redo(_)
        | Command::Submit(_)
        | Command::Ss(_)
        | Command::Unlink(_)
        | Command::Config(_) => true,
        // Several operations in a row have several plans.
        Command::Sync(_) | Command::Get(_) | Command::Merge(_) => false,
        Command::Log(_)
        | Command::Ls(_)
        | Command::Info(_)
        | Command::Parent(_)
        | Command::Children(_)
        | Command::Pr(_)
        | Command::Issue(_)
        | Command::Auth(_)
        | Command::Continue(_)
        | Command::Abort(_)
        | Command::Ops(_)
        | Command::Doctor(_)
        | Command::Verify(_)
        | Command::Plan(_)
        | Command::Apply(_)
        | Command::Explain(_)
        | Command::Run(_)
        | Command::Checkpoint(_)
        | Command::Resume(_)
        | Command::Sprite(_)
        | Command::Approvals(_)
        | Command::Approve(_)
        | Command::Deny(_)
        | Command::Proposals(_)
        | Command::Emit(_)
        | Command::Context(_)
        | Command::Completion(_)
        | Command::Man(_)
        | Command::Schema(_)
        | Command::Demo(_) => false,
    }
}
