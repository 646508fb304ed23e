//! `submit`: pushes a stack and opens or updates its pull requests.

use clap::Args;
use lattice_engine::{RestackFirst, SubmitOptions};
use lattice_model::command::submit::{Open, Overwrite, Refresh, SubmitReach};
use lattice_model::gate::Refusal;
use lattice_model::host::{Draft, PullText};
use lattice_model::name::BranchName;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::{self, mode};
use crate::commands::{branch, hosted};
use crate::error::Failure;
use crate::output::Reply;
use crate::prompt;

/// Push the branch and what it stands on, and open or update their pull requests
///
/// Only what changed is pushed, all at once, and never over commits that you have not seen.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Include everything above the branch
    #[arg(long)]
    stack: bool,
    #[command(flatten)]
    rest: StackArguments,
}

/// Push the whole stack and open or update its pull requests
#[derive(Debug, Args)]
pub(crate) struct StackArguments {
    /// The branch; the current one if absent
    #[arg(long, value_parser = branch)]
    branch: Option<BranchName>,
    /// Pull requests are drafts
    #[arg(long, conflicts_with = "publish")]
    draft: bool,
    /// Pull requests are ready for review
    #[arg(long)]
    publish: bool,
    /// Submit branches as they are, without restacking them first
    #[arg(long)]
    no_restack: bool,
    /// Update every pull request, also where nothing changed
    #[arg(long)]
    always: bool,
    /// Replace commits that only the remote has
    #[arg(long)]
    force: bool,
    /// Open no new pull requests
    #[arg(long)]
    update_only: bool,
    /// Ask these people to review
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    reviewers: Vec<String>,
    /// Take titles and texts from commits without opening an editor
    #[arg(long)]
    no_edit: bool,
    /// Show the pull request in the browser afterwards
    #[arg(long)]
    view: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let reach = if arguments.stack { SubmitReach::Stack } else { SubmitReach::Downstack };
    submit(app, &arguments.rest, reach)
}

pub(crate) fn run_stack(app: &App, arguments: &StackArguments) -> Result<Reply, Failure> {
    submit(app, arguments, SubmitReach::Stack)
}

fn submit(app: &App, arguments: &StackArguments, reach: SubmitReach) -> Result<Reply, Failure> {
    let options = SubmitOptions {
        branch: arguments.branch.clone(),
        reach,
        draft: match (arguments.draft, arguments.publish) {
            (true, _) => Some(Draft::Draft),
            (false, true) => Some(Draft::Ready),
            (false, false) => None,
        },
        overwrite: if arguments.force { Overwrite::RemoteCommits } else { Overwrite::Never },
        open: if arguments.update_only { Open::None } else { Open::Missing },
        refresh: if arguments.always { Refresh::All } else { Refresh::Changed },
        reviewers: arguments.reviewers.iter().filter(|name| !name.trim().is_empty()).cloned().collect(),
        restack: if arguments.no_restack { RestackFirst::No } else { RestackFirst::Yes },
        hooks: app.hooks,
    };
    let engine = app.engine()?;
    let file = engine.draft("PULL_REQUEST");
    let edits = app.interaction == Interaction::Allowed && !arguments.no_edit && !arguments.preview.dry_run;
    let edit = |branch: &BranchName, text: PullText| {
        if edits { edited(app, &file, branch, &text) } else { Ok(text) }
    };
    let mode = mode(app, arguments.preview);
    let submitted = engine.submit(&mode, &options, edit)?;
    let current = arguments.branch.clone().or_else(|| engine.current_branch());
    let pulls = hosted::lowest_first(&submitted.pulls);
    let lines: String = pulls.iter().map(|pull| hosted::pull_line(pull)).collect();
    let before = submitted.before.map(|before| change::reply("restack", before)).transpose()?;
    let mut reply = hosted::reply("submit", submitted.outcome, pulls.clone(), &[])?;
    if let Some(before) = before {
        reply = reply.with_text_above(&before.text).with_field("restacked", before.field("refs"));
    }
    if arguments.view
        && let Some(pull) = current.and_then(|branch| submitted.pulls.get(&branch))
    {
        if pull.url.starts_with("http") {
            prompt::browse(app, &pull.url)?;
        } else {
            reply = reply.note(format!("{} is no page that a browser could show", hosted::one_line(&pull.url)));
        }
    }
    if arguments.preview.dry_run { Ok(reply) } else { Ok(reply.with_text_below(&lines)) }
}

/// The text as the user wants it: the first line is the title.
fn edited(app: &App, file: &std::path::Path, branch: &BranchName, text: &PullText) -> Result<PullText, Refusal> {
    let note = format!(
        "# Pull request for {branch}: the first line is its title. Lines with # are left out.\n# Without a title nothing is submitted."
    );
    let edited = prompt::edit(app, file, &format!("{}\n\n{}\n\n{note}\n", text.title, text.body));
    let edited = edited.map_err(|failure| unwritten(failure.name, branch, &failure.message))?;
    let (title, body) = edited.split_once('\n').unwrap_or((&edited, ""));
    if title.trim().is_empty() {
        return Err(unwritten("no-title", branch, "the text has no first line"));
    }
    Ok(PullText { title: title.trim().to_owned(), body: body.trim().to_owned() })
}

fn unwritten(code: &'static str, branch: &BranchName, why: &str) -> Refusal {
    let message = format!("nothing is submitted, since the pull request for {branch} was not written: {why}");
    Refusal::new(code, message).hint("lattice submit --no-edit takes titles and texts from the commits")
}
