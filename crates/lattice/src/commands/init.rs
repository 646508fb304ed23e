//! `init`: configures the trunk.

use clap::Args;
use lattice_engine::{Engine, WorkingCopyNeed, edit_setting};
use lattice_model::command::init::{Init, Reset};
use lattice_model::gate::Refusal;
use lattice_model::name::BranchName;
use lattice_model::snapshot::{ConfigReading, Snapshot};

use crate::app::{App, Interaction};
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::{change, previews};
use crate::commands::config::refused;
use crate::error::Failure;
use crate::output::Reply;
use crate::pick;
use crate::prompt;

/// Configure the trunk of this repository
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The branch that stacks stand on
    #[arg(long, value_name = "BRANCH", value_parser = branch)]
    trunk: Option<BranchName>,
    /// Remove all of Lattice's metadata and configuration; branches stay
    #[arg(long, conflicts_with = "trunk")]
    reset: bool,
    /// Confirm `--reset`
    #[arg(long, requires = "reset")]
    force: bool,
    #[command(flatten)]
    preview: Preview,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    if arguments.reset {
        return reset(app, arguments);
    }
    let trunk = match &arguments.trunk {
        Some(trunk) => trunk.clone(),
        None => pick(app)?,
    };
    let build = |engine: &Engine, snapshot: &Snapshot| {
        if !snapshot.branches.contains_key(&trunk)
            && let Some(way) = engine.way_to_make(&trunk).ok().flatten()
        {
            return Err(only_there(&trunk, &way));
        }
        let content = match &snapshot.config {
            ConfigReading::Valid { content, .. } => content.as_str(),
            ConfigReading::Absent | ConfigReading::Invalid { .. } | ConfigReading::Foreign { .. } => "",
        };
        let content = edit_setting(content, "trunk.branch", trunk.as_str()).map_err(refused)?;
        Ok(Init { trunk: trunk.clone(), content })
    };
    let reply = change(app, ("init", arguments.preview), WorkingCopyNeed::No, build)?;
    Ok(if previews(app, arguments.preview) { reply } else { reply.text(format!("the trunk is {trunk}\n")) })
}

fn reset(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let confirmed = arguments.force
        || previews(app, arguments.preview)
        || (app.interaction == Interaction::Allowed
            && prompt::confirm("Remove all metadata and configuration?", "remove"));
    if !confirmed {
        return Err(Failure::new("confirmation-required", "--reset removes the metadata of every tracked branch")
            .hint("look first: lattice init --reset --dry-run")
            .hint("confirm with: lattice init --reset --force; lattice undo brings it back"));
    }
    change(app, ("init", arguments.preview), WorkingCopyNeed::No, |_, _| Ok(Reset))
}

fn only_there(trunk: &BranchName, way: &str) -> Refusal {
    let message = format!("there is no branch `{trunk}` here to be the trunk; the remote has one");
    Refusal::new("no-such-branch", message)
        .hint(format!("make it: {way}"))
        .hint("or name one that exists: lattice init --trunk <branch>")
}

/// The trunk without being told: what the remote calls its main branch, else only where there is no doubt.
fn pick(app: &App) -> Result<BranchName, Failure> {
    let engine = app.engine()?;
    let observed = engine.observe("init", WorkingCopyNeed::No)?;
    let snapshot = observed.snapshot;
    if let Some(trunk) = &snapshot.settings.trunk {
        return Ok(trunk.clone());
    }
    if let Some(trunk) = engine.main_branch_of_remote()? {
        return Ok(trunk);
    }
    let usual = ["main", "master", "trunk"];
    let found: Vec<_> = snapshot.branches.keys().filter(|name| usual.contains(&name.as_str())).cloned().collect();
    let all: Vec<_> = snapshot.branches.keys().cloned().collect();
    match (found.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => Ok(only.clone()),
        (_, []) => Err(Refusal::new("no-branches", "there is no branch yet").hint("make a first commit").into()),
        _ if app.interaction == Interaction::Allowed => {
            let names: Vec<_> = all.iter().map(ToString::to_string).collect();
            let picked = pick::pick("Which branch is the trunk?", &names);
            picked.map(|at| all[at].clone()).ok_or_else(|| Failure::new("cancelled", "no trunk was chosen"))
        }
        _ => Err(Failure::new("trunk-required", "several branches could be the trunk")
            .hint("say which: lattice init --trunk <branch>")),
    }
}
