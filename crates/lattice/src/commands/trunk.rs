//! `trunk`: prints the trunk, or sets another one.

use clap::{Args, Subcommand};
use lattice_engine::{WorkingCopyNeed, edit_setting};
use lattice_model::command::config::SetTrunk;
use lattice_model::name::BranchName;
use lattice_model::snapshot::{ConfigReading, Snapshot};

use crate::app::App;
use crate::cli::Preview;
use crate::commands::branch;
use crate::commands::change::{change, previews};
use crate::commands::config::refused;
use crate::error::Failure;
use crate::output::Reply;
use crate::output::documents::TrunkDocument;

/// Print the trunk, or make another branch the trunk
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make another branch the trunk
    Set {
        #[arg(value_parser = branch)]
        branch: BranchName,
        #[command(flatten)]
        preview: Preview,
    },
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    match &arguments.action {
        Some(Action::Set { branch, preview }) => set(app, branch, *preview),
        None => {
            let snapshot = app.engine()?.glance("trunk")?.snapshot;
            let trunk = snapshot.settings.trunk.as_ref().map(ToString::to_string);
            let text = trunk.as_ref().map(|trunk| format!("{trunk}\n")).unwrap_or_default();
            let known = trunk.is_some();
            let reply = Reply::new(TrunkDocument { trunk }, text);
            Ok(if known { reply } else { reply.note("no trunk is configured: lattice init") })
        }
    }
}

fn set(app: &App, trunk: &BranchName, preview: Preview) -> Result<Reply, Failure> {
    let build = |_: &_, snapshot: &Snapshot| {
        let content = match &snapshot.config {
            ConfigReading::Valid { content, .. } => content.as_str(),
            ConfigReading::Absent | ConfigReading::Invalid { .. } | ConfigReading::Foreign { .. } => "",
        };
        let content = edit_setting(content, "trunk.branch", trunk.as_str()).map_err(refused)?;
        Ok(SetTrunk { trunk: trunk.clone(), content })
    };
    let reply = change(app, ("trunk", preview), WorkingCopyNeed::No, build)?;
    Ok(if previews(app, preview) {
        reply
    } else {
        let told = format!("the trunk is {trunk}\n");
        reply.with_field("trunk", trunk.as_str().into()).text(told)
    })
}
