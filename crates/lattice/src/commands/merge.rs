//! `merge`: lands the pull requests of a stack, from the bottom up.

use clap::{Args, ValueEnum};
use lattice_engine::{MergeOptions, Outcome};
use lattice_model::remote::MergeMethod;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::{mode, previews};
use crate::commands::hosted;
use crate::error::Failure;
use crate::output::Reply;
use crate::prompt;

/// Land the branch and what it stands on, from the bottom up
///
/// After each pull request the rest of the stack is brought onto the new trunk. It stops at the first that does not land.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How to land; `merge.method` says what is usual
    #[arg(long, value_enum, value_name = "METHOD")]
    method: Option<Method>,
    /// Do it without being asked
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    preview: Preview,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
    Merge,
    Squash,
    Rebase,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let engine = app.engine()?;
    let method = match (arguments.method, engine.settings().forge.merge_method.as_str()) {
        (Some(Method::Merge), _) | (None, "merge") => MergeMethod::Merge,
        (Some(Method::Rebase), _) | (None, "rebase") => MergeMethod::Rebase,
        (Some(Method::Squash), _) | (None, _) => MergeMethod::Squash,
    };
    let options = MergeOptions { branch: None, method, hooks: app.hooks };
    if !arguments.confirm && !previews(app, arguments.preview) {
        confirm(app, &engine.to_merge(None)?.iter().map(ToString::to_string).collect::<Vec<_>>(), method)?;
    }
    let merged = engine.merge(&mode(app, arguments.preview), &options)?;
    let landed: Vec<_> = merged.landed.iter().map(|(branch, _)| branch.clone()).collect();
    let lines: String = merged.landed.iter().map(|(branch, number)| format!("landed #{number} ({branch})\n")).collect();
    let done = matches!(merged.end, Outcome::Done { .. } | Outcome::Nothing { .. });
    let reply = hosted::reply("merge", merged.end, Vec::new(), &landed);
    match reply {
        Ok(reply) if done => Ok(reply.text(lines)),
        Ok(reply) => Ok(reply),
        Err(failure) => Err(merged.landed.iter().fold(failure, |failure, (branch, number)| {
            failure.cause(format!("landed before that: #{number} ({branch})"))
        })),
    }
}

fn confirm(app: &App, branches: &[String], method: MergeMethod) -> Result<(), Failure> {
    let what = format!("land {} by {}", branches.join(", "), method.as_str());
    let agreed = app.interaction == Interaction::Allowed
        && prompt::confirm(&format!("This will {what}, for everybody. Go on?"), "yes");
    if agreed {
        return Ok(());
    }
    Err(Failure::new("not-confirmed", format!("this would {what}, for everybody")).hint("say so: --confirm"))
}
