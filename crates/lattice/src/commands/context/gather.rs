//! `context gather`: the gather functions one by one.

use clap::{Args, Subcommand};
use lattice_context::gather::{ContextGatherer, Gathered};

use super::{Counting, bare, shared_workspace};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// Print raw chunks as JSON
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    counting: Counting,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Files that fit globs, or are named
    Files {
        #[arg(required = true, value_name = "GLOB")]
        patterns: Vec<String>,
        /// At most so many files
        #[arg(long, default_value_t = 50, value_name = "N")]
        max_files: usize,
    },
    /// Folders and files as a tree
    Structure {
        /// How deep
        #[arg(long, default_value_t = 3, value_name = "N")]
        depth: usize,
    },
    /// What manifests and lock files declare
    Dependencies,
    /// The newest commits
    #[command(alias = "git-context")]
    Git {
        /// How many
        #[arg(long, default_value_t = 5, value_name = "N")]
        commits: usize,
    },
    /// An OpenAPI specification in short
    ApiDocs { path: String },
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let workspace = shared_workspace(app, arguments.counting.tokenizer())?;
    let root = workspace.root().to_owned();
    let gatherer = ContextGatherer::new(workspace);
    let (gathered, many) = lattice_context::drive(async {
        match &arguments.what {
            What::Files { patterns, max_files } => (gatherer.gather_files(patterns, *max_files).await, true),
            What::Structure { depth } => (gatherer.gather_structure(*depth).await, false),
            What::Dependencies => (gatherer.gather_dependencies().await, false),
            What::Git { commits } => (gatherer.gather_git_context(*commits).await, true),
            What::ApiDocs { path } => (gatherer.gather_api_docs(&app.in_repository(path, &root)).await, false),
        }
    });
    let Gathered { chunks, warnings } = gathered;
    let reply = match (many, chunks.as_slice()) {
        (false, [only]) => bare(app, "context-gather", only),
        (false, []) => {
            let why = warnings.first().cloned().unwrap_or_else(|| "nothing was found".to_owned());
            return Err(Failure::new("nothing-gathered", why));
        }
        _ => bare(app, "context-gather", &chunks),
    };
    Ok(warnings.into_iter().fold(reply, |reply, warning| reply.note(format!("warning: {warning}"))))
}
