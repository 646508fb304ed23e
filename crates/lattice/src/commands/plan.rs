//! `plan` and `apply`: plan now, apply later, and only if nothing changed in between.

use std::path::PathBuf;

use clap::Args;
use lattice_engine::Mode;
use lattice_model::id::ContentDigest;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::cli::{Cli, Command};
use crate::dispatch;
use crate::error::Failure;
use crate::output::Reply;

/// Write down what a command would do
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The command with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
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
    let command = parse(&arguments.command)?;
    let planning = app.with_mode(Mode::DryRun);
    let reply = dispatch::dispatch(&planning, command)?;
    let plan = reply.field("plan");
    let digest = plan["digest"].as_str().and_then(|text| ContentDigest::new(text).ok());
    let digest = digest.ok_or_else(|| Failure::usage("this command changes nothing that could be planned"))?;
    let file = PlanFile { kind: KIND.to_owned(), schema_version: 1, arguments: arguments.command.clone(), digest };
    let text = serde_json::to_string_pretty(&file).expect("bug: the file has string keys") + "\n";
    let path = app.directory.join(&arguments.out);
    crate::output::write_file(&path, &text)
        .map_err(|error| Failure::new("io", format!("{} cannot be written: {error}", path.display())))?;
    let document = serde_json::json!({ "file": path.display().to_string(), "plan": plan });
    Ok(Reply::named("plan", document, reply.text)
        .note(format!("apply it with: lattice apply {}", arguments.out.display())))
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
    let command = parse(&file.arguments)?;
    let applying = app.with_mode(Mode::ExecuteExactly(file.digest));
    dispatch::dispatch(&applying, command)
}

fn parse(arguments: &[String]) -> Result<Command, Failure> {
    let Cli { command, .. } = dispatch::parse_recorded(arguments)?;
    match command {
        Some(Command::Plan(_) | Command::Apply(_)) | None => {
            Err(Failure::usage("a command that changes something is needed"))
        }
        Some(command) => Ok(command),
    }
}
