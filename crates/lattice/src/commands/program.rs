//! `completion`, `man`, `schema`: the program about itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use crate::error::Failure;
use crate::output::documents::{
    ChangeDocument, ChildrenDocument, ConfigDocument, DoctorDocument, ExplainDocument, InfoDocument, LogDocument,
    OpsDocument, ParentDocument, PlanFileDocument, TextDocument, TrunkDocument, VerifyDocument, VersionDocument,
};
use crate::output::{Document, Reply};
use crate::{complete, dispatch};

use super::approvals::{ApprovalDoneDocument, ApprovalsDocument};
use super::auth::AuthDocument;
use super::context::{PackDocument, RESULTS, ResultDocument};
use super::demo::DemoDocument;
use super::hosted::HostedDocument;
use super::issue::IssuesDocument;
use super::ops::OpsShowDocument;
use super::pr::PrsDocument;
use super::proposals::ProposalsDocument;
use super::resume::{AbortDocument, ContinueDocument};
use super::run::{CheckpointDocument, RunDocument};
use super::sprite::resume::{ResumeCheckDocument, ResumeDocument};
use super::sprite::{
    SpriteArtifactsDocument, SpriteDiffDocument, SpriteEventsDocument, SpriteGcDocument, SpriteIngestDocument,
    SpriteListDocument, SpriteLogsDocument, SpriteManageDocument, SpriteShowDocument,
};

/// Print what makes a shell complete commands, flags, branches, sprites and actions
///
/// For bash: `source <(lattice completion bash)` in ~/.bashrc.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    shell: Shell,
}

/// Print the manual page, or write all of them
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write one page per command into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Print the JSON Schema of a command's document, or list those that there are
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// The command, such as `log`
    command: Option<String>,
}

/// The commands that have documents, or the schema of one.
#[derive(Debug, Serialize, JsonSchema)]
struct SchemaDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<serde_json::Value>,
}

pub(crate) fn version() -> Reply {
    let formats = BTreeMap::from([("branch-metadata", 1), ("event", 1), ("journal", 1), ("op-state", 1), ("plan", 1)]);
    let context_protocol = lattice_context::task::PROTOCOL_VERSION;
    let document = VersionDocument { version: env!("CARGO_PKG_VERSION"), formats, context_protocol };
    Reply::new(document, format!("lattice {}\n", env!("CARGO_PKG_VERSION")))
}

pub(crate) fn run_completion(arguments: &CompletionArguments) -> Result<Reply, Failure> {
    let text = complete::script(arguments.shell);
    Ok(Reply::named("completion", TextDocument { text: text.clone() }, text))
}

pub(crate) fn run_man(arguments: &ManArguments) -> Result<Reply, Failure> {
    let failed = |error: std::io::Error| Failure::new("io", format!("the manual could not be written: {error}"));
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(manual(), folder).map_err(failed)?;
        let text = format!("wrote the manual to {}\n", folder.display());
        return Ok(Reply::named("man", TextDocument { text: text.clone() }, text));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(manual()).render(&mut page).map_err(failed)?;
    let text = String::from_utf8_lossy(&page).into_owned();
    Ok(Reply::named("man", TextDocument { text: text.clone() }, text))
}

/// The commands that have a page: `help` has none, so no page may refer to it.
fn manual() -> clap::Command {
    dispatch::command_line().disable_help_subcommand(true)
}

pub(crate) fn run_schema(arguments: &SchemaArguments) -> Result<Reply, Failure> {
    let schemas = schemas();
    let Some(command) = &arguments.command else {
        let names: Vec<_> = schemas.keys().copied().collect();
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        let document = SchemaDocument { commands: Some(names), command: None, document: None };
        return Ok(Reply::named("schema", document, text));
    };
    let name = match command.as_str() {
        "ls" => "log",
        "ss" => "submit",
        name => name,
    };
    let schema = schemas.get(name).ok_or_else(|| {
        Failure::new("no-such-schema", format!("`{command}` has no document"))
            .hint("lattice schema lists those that have")
    })?;
    let text = serde_json::to_string_pretty(schema).expect("bug: a schema has string keys") + "\n";
    let document = SchemaDocument { commands: None, command: Some(command.clone()), document: Some(schema.clone()) };
    Ok(Reply::named("schema", document, text))
}

/// The schema of every document, by command.
fn schemas() -> BTreeMap<&'static str, serde_json::Value> {
    let mut schemas = BTreeMap::new();
    for command in [
        "init", "track", "untrack", "create", "modify", "restack", "move", "freeze", "unfreeze", "checkout", "up",
        "down", "top", "bottom", "undo", "redo", "unlink", "get", "absorb", "reorder", "split", "squash", "fold",
        "pop", "delete", "rename", "revert",
    ] {
        schemas.insert(command, envelope(command, schema_for!(ChangeDocument)));
    }
    fn add<D: Document>(schemas: &mut BTreeMap<&'static str, serde_json::Value>) {
        schemas.insert(D::COMMAND, envelope(D::COMMAND, schema_for!(D)));
    }
    for command in ["submit", "sync", "merge"] {
        schemas.insert(command, envelope(command, schema_for!(HostedDocument)));
    }
    add::<AuthDocument>(&mut schemas);
    add::<IssuesDocument>(&mut schemas);
    add::<PrsDocument>(&mut schemas);
    add::<LogDocument>(&mut schemas);
    add::<InfoDocument>(&mut schemas);
    add::<ParentDocument>(&mut schemas);
    add::<ChildrenDocument>(&mut schemas);
    add::<TrunkDocument>(&mut schemas);
    add::<OpsDocument>(&mut schemas);
    add::<OpsShowDocument>(&mut schemas);
    add::<DoctorDocument>(&mut schemas);
    add::<VerifyDocument>(&mut schemas);
    add::<ConfigDocument>(&mut schemas);
    add::<ExplainDocument>(&mut schemas);
    add::<PlanFileDocument>(&mut schemas);
    add::<ContinueDocument>(&mut schemas);
    add::<AbortDocument>(&mut schemas);
    add::<VersionDocument>(&mut schemas);
    add::<DemoDocument>(&mut schemas);
    add::<RunDocument>(&mut schemas);
    add::<CheckpointDocument>(&mut schemas);
    add::<SpriteListDocument>(&mut schemas);
    add::<SpriteLogsDocument>(&mut schemas);
    add::<SpriteDiffDocument>(&mut schemas);
    add::<SpriteManageDocument>(&mut schemas);
    add::<ResumeDocument>(&mut schemas);
    add::<ResumeCheckDocument>(&mut schemas);
    add::<ApprovalsDocument>(&mut schemas);
    add::<ProposalsDocument>(&mut schemas);
    add::<SpriteGcDocument>(&mut schemas);
    add::<ApprovalDoneDocument>(&mut schemas);
    add::<SpriteShowDocument>(&mut schemas);
    add::<SpriteEventsDocument>(&mut schemas);
    add::<SpriteArtifactsDocument>(&mut schemas);
    add::<SpriteIngestDocument>(&mut schemas);
    add::<PackDocument>(&mut schemas);
    for command in RESULTS {
        schemas.insert(command, envelope(command, schema_for!(ResultDocument)));
    }
    for command in ["completion", "man"] {
        schemas.insert(command, envelope(command, schema_for!(TextDocument)));
    }
    schemas.insert("schema", envelope("schema", schema_for!(SchemaDocument)));
    schemas.insert("error", error_schema());
    schemas
}

/// The document's own fields with those that every document has.
fn envelope(command: &str, schema: Schema) -> serde_json::Value {
    let mut schema = schema.to_value();
    schema["properties"]["schema"] = serde_json::json!({ "const": format!("lattice.{command}/v1") });
    schema["properties"]["ok"] = serde_json::json!({ "const": true });
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.extend(["schema".into(), "ok".into()]);
    schema["required"] = required.into();
    schema
}

fn error_schema() -> serde_json::Value {
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Error",
        "type": "object",
        "required": ["schema", "ok", "error", "issues"],
        "properties": {
            "schema": { "const": "lattice.error/v1" },
            "ok": { "const": false },
            "error": {
                "type": "object",
                "required": ["code", "message", "hints"],
                "properties": {
                    "code": { "type": "string", "pattern": "^[a-z0-9-]+$" },
                    "message": { "type": "string" },
                    "hints": { "type": "array", "items": { "type": "string" } },
                },
            },
            "issues": { "type": "array", "items": { "type": "object", "required": ["id", "severity", "fixes"] } },
            "paused": { "type": "object", "required": ["operation", "branch", "files"] },
            "landed": { "type": "array", "items": { "type": "string" } },
        },
    })
}
