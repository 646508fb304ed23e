//! `context implement`, `review`, `fix` and `issue`: the four builders.

use std::path::PathBuf;

use clap::Args;
use lattice_context::builders::validation::{ValidationError, ValidationOutput};
use lattice_context::builders::{
    BuildError, ContextDict, GitHubIssue, build_fix_context, build_implementation_context, build_issue_context,
    build_review_context,
};
use lattice_context::git::GitOperationError;
use lattice_context::tokens::Tokenizer;
use serde_json::Value;

use super::source::Source;
use super::{bare, read_input, read_json, workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// Print tasks, conventions, branch and recent commits as JSON
#[derive(Debug, Args)]
pub(crate) struct ImplementArguments {
    /// The file with the tasks
    #[arg(long, value_name = "FILE")]
    task_file: String,
}

/// Print what this branch changes, with the changed files, as JSON
#[derive(Debug, Args)]
pub(crate) struct ReviewArguments {
    /// The branch to compare with
    #[arg(long, alias = "base-branch", value_name = "BRANCH")]
    base: String,
}

/// Print errors and the source around them as JSON
#[derive(Debug, Args)]
pub(crate) struct FixArguments {
    /// Results of a validation: JSON, cargo's JSON, SARIF, or lines; `-` reads stdin
    #[arg(long, alias = "validation-output", value_name = "FILE")]
    errors: PathBuf,
    /// The files to show; those with errors if absent
    files: Vec<String>,
}

/// Print an issue with the files it names as JSON
#[derive(Debug, Args)]
pub(crate) struct IssueArguments {
    /// The number of the issue on the host of the repository
    #[arg(value_name = "N", required_unless_present = "from")]
    number: Option<u64>,
    /// A JSON document with number, title, body, labels, state, assignees and url; `-` reads stdin
    #[arg(long, alias = "issue", value_name = "FILE", conflicts_with = "number")]
    from: Option<PathBuf>,
}

pub(crate) fn run_implement(app: &App, arguments: &ImplementArguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let context = build_implementation_context(&workspace, &app.in_repository(&arguments.task_file, workspace.root()));
    Ok(reply(app, "context-implement", &context.map_err(failure)?))
}

pub(crate) fn run_review(app: &App, arguments: &ReviewArguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let context = build_review_context(&workspace, &arguments.base).map_err(failure)?;
    Ok(reply(app, "context-review", &context))
}

pub(crate) fn run_fix(app: &App, arguments: &FixArguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let validation = ValidationOutput::parse(&read_input(app, &arguments.errors)?).map_err(validation_failure)?;
    let mut files = arguments.files.clone();
    if files.is_empty() {
        files = validation.errors().into_iter().map(|error| error.file).collect();
        files.sort();
        files.dedup();
        files.retain(|file| workspace.open_file(file).is_ok());
    }
    Ok(reply(app, "context-fix", &build_fix_context(&workspace, &validation, &files)))
}

pub(crate) fn run_issue(app: &App, arguments: &IssueArguments) -> Result<Reply, Failure> {
    let workspace = workspace(app, Tokenizer::Estimate)?;
    let issue = match (&arguments.from, arguments.number) {
        (Some(file), _) => read_json(app, file)?,
        (None, Some(number)) => fetched(app, number)?,
        (None, None) => return Err(Failure::usage("say which issue: its number, or --from FILE")),
    };
    let context = build_issue_context(&workspace, &issue).map_err(failure)?;
    Ok(reply(app, "context-issue", &context))
}

/// The issue as the host of the repository tells it. Whom it is assigned to is not asked.
pub(super) fn fetched(app: &App, number: u64) -> Result<GitHubIssue, Failure> {
    let source = Source::open(app, None)?;
    let issue = source.wait(source.forge()?.issue(number))?;
    Ok(GitHubIssue {
        number,
        title: issue.title,
        body: issue.body,
        labels: issue.labels,
        state: issue.state.as_str().to_owned(),
        assignees: Vec::new(),
        url: issue.url,
    })
}

/// The object, and its warnings for people.
fn reply(app: &App, command: &str, context: &ContextDict) -> Reply {
    let metadata = context.get("_metadata");
    let list = |key: &str| -> Vec<String> {
        let found = metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_array);
        found.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut reply = bare(app, command, context);
    for path in list("missing") {
        reply = reply.note(format!("warning: {path} does not exist"));
    }
    for warning in list("warnings") {
        reply = reply.note(format!("warning: {warning}"));
    }
    reply
}

fn failure(error: BuildError) -> Failure {
    match error {
        BuildError::NoRepository => {
            Failure::new("not-a-repository", "this is not inside a Git repository").hint("git init, or -C <path>")
        }
        BuildError::Git(error) => git_failure(error),
    }
}

pub(super) fn git_failure(error: GitOperationError) -> Failure {
    let text = error.to_string();
    match error {
        GitOperationError::Git(error) => error.into(),
        GitOperationError::UnknownName(_) => {
            Failure::new("unknown-commit", text).hint("git branch --all lists branches")
        }
    }
}

pub(super) fn validation_failure(error: ValidationError) -> Failure {
    let text = error.to_string();
    match error {
        ValidationError::Shape(cause) => Failure::new("invalid-input", format!("{text}: {cause}")),
        ValidationError::UnknownKind => Failure::new("invalid-input", text)
            .hint("give `stages`, SARIF, cargo's JSON messages, or lines such as src/a.rs:3:5: message"),
    }
}
