//! `merge`: lands the pull requests of a stack, from the bottom up.

use clap::{Args, ValueEnum};
use lattice_engine::{LandedPull, MergeOptions, Merged, Mode, Outcome, Progress};
use lattice_model::name::BranchName;
use lattice_model::remote::MergeMethod;

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::change::{self, mode};
use crate::commands::hosted;
use crate::error::Failure;
use crate::output::{Reply, indented};
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
    let mode = mode(app, arguments.preview);
    if mode != Mode::DryRun && !arguments.confirm {
        // Nobody is asked about what would be refused anyway.
        let foreseen = engine.merge(&Mode::DryRun, &options)?;
        let line: Vec<_> = foreseen.progress.line.iter().map(|(branch, number)| named(branch, *number)).collect();
        reply(foreseen, method)?;
        confirm(app, &line, method)?;
    }
    reply(engine.merge(&mode, &options)?, method)
}

fn reply(merged: Merged, method: MergeMethod) -> Result<Reply, Failure> {
    let Progress { line, landed } = merged.progress;
    let names: Vec<_> = landed.iter().map(|landed| landed.branch.clone()).collect();
    let planned = matches!(merged.end, Ok(Outcome::Planned { .. }));
    let told = merged.end.map_err(Failure::from).and_then(|end| hosted::reply("merge", end, Vec::new(), &names));
    match told {
        Ok(reply) if planned => Ok(foreseen(reply, &line, method)),
        Ok(reply) => {
            let stories: Vec<_> = landed.into_iter().map(story).collect::<Result<_, Failure>>()?;
            Ok(reply.text(stories.concat()))
        }
        Err(failure) => {
            let stories = landed.into_iter().map(story).collect::<Result<Vec<_>, Failure>>()?.concat();
            Err(Failure { landed: names.iter().map(ToString::to_string).collect(), ..failure.after(&stories) })
        }
    }
}

/// What landed, and what became of branches here because of it.
fn story(landed: LandedPull) -> Result<String, Failure> {
    let mut text = format!("landed {}\n", named(&landed.branch, landed.number));
    let told = |outcome: &Outcome| matches!(outcome, Outcome::Done { .. }) && !hosted::only_fetched(outcome);
    for outcome in landed.then.into_iter().filter(told) {
        text.push_str(&indented(&change::reply("merge", outcome)?.text, "  "));
    }
    Ok(text)
}

/// Each landing is planned when the one before it is done, so the plan has only the first.
fn foreseen(reply: Reply, line: &[(BranchName, u64)], method: MergeMethod) -> Reply {
    let later = line.get(1..).unwrap_or_default();
    let later_line = |(branch, number): &(BranchName, u64)| {
        format!("then restack, submit, and land {} by {}\n", named(branch, *number), method.as_str())
    };
    let rest: String = later.iter().map(later_line).collect();
    let to_land: Vec<_> = line.iter().map(|(branch, _)| branch.to_string()).collect();
    reply.with_text_below(&rest).with_field("to_land", serde_json::json!(to_land))
}

fn named(branch: &BranchName, number: u64) -> String {
    format!("#{number} ({branch})")
}

fn confirm(app: &App, line: &[String], method: MergeMethod) -> Result<(), Failure> {
    let what = format!("land {} by {}", line.join(", "), method.as_str());
    if app.interaction == Interaction::Allowed {
        return match prompt::agree(&format!("This will {what}, for everybody. Go on?")) {
            true => Ok(()),
            false => Err(Failure::new("not-confirmed", "nothing was landed")),
        };
    }
    Err(Failure::new("not-confirmed", format!("this would {what}, for everybody")).hint("say so: --confirm"))
}
