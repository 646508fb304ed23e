//! `context bundle`: an issue or pull request with all that belongs to it, as files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lattice_context::bundle::{
    Bundle, Call, DEFAULT_EXPANSIONS, ForgeReader, GatherError, ItemType, Options, RepoName, Trigger, deliver, gather,
    is_replaceable,
};
use lattice_context::deliver::{DeliveryError, FileWriter, HostFolder};
use lattice_context::pack::Secrets;
use lattice_forge::ForgeError;

use super::source::Source;
use super::{bare, read_json};
use crate::app::App;
use crate::error::Failure;
use crate::output::Reply;

/// Gather an issue or pull request with its thread, reviews and linked items as files
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What the number is
    #[arg(value_enum, required_unless_present = "trigger")]
    kind: Option<Kind>,
    /// Its number
    #[arg(value_name = "N", requires = "kind", required_unless_present = "trigger")]
    number: Option<u64>,
    /// The repository, if it is not the one here
    #[arg(long, value_name = "OWNER/NAME", value_parser = repo_name)]
    repo: Option<RepoName>,
    /// A JSON document with `type`, `number`, `repo` and what is known already; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "number", "repo"])]
    trigger: Option<PathBuf>,
    /// Write the files into this folder and print the manifest; without it everything is printed as JSON
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Look up at most so many of the items that are referred to
    #[arg(long, value_name = "N", default_value_t = DEFAULT_EXPANSIONS)]
    max_expansions: usize,
    /// Mask what looks like a secret
    #[arg(long)]
    redact: bool,
    /// Gather and print the manifest, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Issue,
    Pr,
}

fn repo_name(text: &str) -> Result<RepoName, String> {
    RepoName::new(text).map_err(|error| error.to_string())
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let (source, trigger) = wanted(app, arguments)?;
    let place = arguments.out.as_deref().map(|out| place(app, out)).transpose()?;
    let options = Options {
        max_expansions: arguments.max_expansions,
        secrets: if arguments.redact { Secrets::Redact } else { Secrets::Warn },
        ..Options::new(app.now.clone())
    };
    let forge = ForgeReader(source.forge()?);
    let bundle = source.wait(gather(trigger, &forge, &options)).map_err(gather_failure)?;
    let reply = match place {
        None if arguments.dry_run => bare(app, "context-bundle", &bundle.manifest),
        None => bare(app, "context-bundle", &bundle),
        Some(_) if arguments.dry_run => {
            bare(app, "context-bundle", &bundle.manifest).note("this was a dry run: nothing was written")
        }
        Some((path, mut folder)) => {
            deliver(&bundle, &mut FileWriter::new(&mut folder)).map_err(|error| delivery_failure(&path, error))?;
            bare(app, "context-bundle", &bundle.manifest).note(told(&bundle, &path))
        }
    };
    Ok(bundle.manifest.warnings.iter().fold(reply, |reply, warning| reply.note(format!("warning: {warning}"))))
}

/// Gathers an item of the repository's host into the mail of a sprite. The head branch is that of a pull request that
/// is amended.
pub(crate) fn gather_into(
    app: &App,
    (kind, number, head_branch): (ItemType, u64, Option<String>),
    (mail, owner): (&Path, Option<u32>),
) -> Result<Bundle, Failure> {
    let source = Source::open(app, None)?;
    let trigger = Trigger { head_branch, ..Trigger::new(kind, number, source.repo.clone()) };
    let forge = ForgeReader(source.forge()?);
    let bundle = source.wait(gather(trigger, &forge, &Options::new(app.clock()))).map_err(gather_failure)?;
    let path = mail.join("context");
    let mut folder = HostFolder::at(mail, Path::new("context"), owner)
        .map_err(|error| Failure::new("io", format!("{} cannot be written to: {error}", path.display())))?;
    deliver(&bundle, &mut FileWriter::new(&mut folder)).map_err(|error| delivery_failure(&path, error))?;
    Ok(bundle)
}

/// The trigger, from its file or made from the arguments, and the host to ask.
fn wanted(app: &App, arguments: &Arguments) -> Result<(Source, Trigger), Failure> {
    if let Some(file) = &arguments.trigger {
        let trigger: Trigger = read_json(app, file)?;
        return Ok((Source::open(app, Some(trigger.repo.clone()))?, trigger));
    }
    let (Some(kind), Some(number)) = (arguments.kind, arguments.number) else {
        return Err(Failure::usage("say which item: `issue N` or `pr N`, or --trigger FILE"));
    };
    let kind = match kind {
        Kind::Issue => ItemType::Issue,
        Kind::Pr => ItemType::PullRequest,
    };
    let source = Source::open(app, arguments.repo.clone())?;
    let trigger = Trigger::new(kind, number, source.repo.clone());
    Ok((source, trigger))
}

/// The folder to write to. One with other files than those of a bundle is somebody's work.
fn place(app: &App, out: &Path) -> Result<(PathBuf, HostFolder), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new("io", format!("{} cannot be written to: {error}", out.display()))
            .hint("name another folder: --out <dir>")
    };
    let folder = HostFolder::at(&app.directory, out, None).map_err(failed)?;
    if !is_replaceable(&folder.current().map_err(failed)?) {
        return Err(Failure::new("not-a-bundle", format!("{} holds other files than a bundle", out.display()))
            .hint("name a folder that is new, empty, or an older bundle: --out <dir>"));
    }
    Ok((out.to_owned(), folder))
}

fn told(bundle: &Bundle, path: &Path) -> String {
    let count = bundle.files.len() + 1;
    let bytes: usize = bundle.files.iter().map(|file| file.content.len()).sum();
    format!("{count} files in {}, {} kB", path.display(), bytes.div_ceil(1000))
}

fn gather_failure(error: GatherError) -> Failure {
    let text = error.to_string();
    let GatherError { call, number, source } = error;
    let not_a_pull =
        call == Call::GetPullRequest && matches!(source, ForgeError::NotFound(_) | ForgeError::NotAPull(_));
    let mut failure = Failure::from(source).cause(text);
    if not_a_pull {
        failure = failure.hint(format!("it may be an issue: lattice context bundle issue {number}"));
    }
    failure
}

pub(crate) fn delivery_failure(path: &Path, error: DeliveryError) -> Failure {
    let text = error.to_string();
    let failure =
        Failure::new("delivery-failed", format!("the bundle was not written to {}", path.display())).cause(text);
    match error {
        DeliveryError::Step { source, .. } => failure.cause(source.to_string()),
        DeliveryError::Missing(_) | DeliveryError::Unexpected(_) | DeliveryError::Differs { .. } => failure,
    }
    .hint("what was there before is there still; run it again")
}
