//! What a sprite is to work on: a text, an issue, or a pull request that it amends.

use lattice_context::bundle::ItemType;
use lattice_engine::{Engine, GetOptions, Mode, Outcome, WorkingCopyNeed};
use lattice_model::command::get::{Checkout, FreezeOnGet, Replace};
use lattice_model::host::PullState;
use lattice_model::id::Oid;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::app::App;
use crate::commands::hosted::{connect, one_line};
use crate::error::Failure;

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    Text(String),
    Issue(u64),
    Pull(u64),
}

/// A task with everything that a sprite starts from.
pub(super) struct Work {
    /// The first line says what it is about.
    pub(super) text: String,
    pub(super) work_item_id: String,
    pub(super) branch: BranchName,
    pub(super) parent: BranchName,
    pub(super) base: Oid,
    /// What is gathered for the agent: the item, and the branch of a pull request that is amended.
    pub(super) item: Option<(ItemType, u64, Option<String>)>,
}

impl Task {
    pub(super) fn new(words: &[String]) -> Result<Self, Failure> {
        let number = |text: &str| text.trim_start_matches('#').parse::<u64>().ok();
        match words {
            [text] if text.trim().is_empty() => Err(Failure::usage("there is nothing to do in an empty text")),
            [text] => Ok(Self::Text(text.clone())),
            [kind, text] if kind == "issue" || kind == "pr" => match (kind.as_str(), number(text)) {
                ("issue", Some(number)) => Ok(Self::Issue(number)),
                (_, Some(number)) => Ok(Self::Pull(number)),
                (_, None) => Err(Failure::usage(format!("`{text}` is no number of an issue or pull request"))),
            },
            _ => Err(Failure::usage("say what to do: run issue N, run pr N, or run \"TEXT\"")
                .hint("the agent's command comes after --")),
        }
    }

    /// Finds out what the task is and where it starts. `name` is the sprite's.
    pub(super) fn work(&self, app: &App, name: &str, parent: Option<&BranchName>) -> Result<Work, Failure> {
        let own = || BranchName::new(format!("sprite/{name}")).map_err(|error| Failure::usage(error.to_string()));
        let start = |text: String, work_item_id: String, item| {
            let snapshot = app.engine()?.observe("run", WorkingCopyNeed::No)?.snapshot;
            let (parent, base) = start(&snapshot, parent)?;
            Ok(Work { text, work_item_id, branch: own()?, parent, base, item })
        };
        match self {
            Self::Text(text) => start(text.clone(), format!("task-{name}"), None),
            Self::Issue(number) => {
                let connected = connect(app)?;
                let issue = connected.wait(connected.forge()?.issue(*number))?;
                if issue.is_pull {
                    return Err(Failure::new("not-an-issue", format!("#{number} is a pull request"))
                        .hint(format!("lattice run pr {number}")));
                }
                let text = format!("{} (#{number})\n\n{}", one_line(&issue.title), issue.body.trim());
                start(text.trim().to_owned(), format!("issue-{number}"), Some((ItemType::Issue, *number, None)))
            }
            Self::Pull(number) => match parent {
                None => amend(app, *number),
                Some(_) => Err(Failure::usage("a pull request is amended where it stands; --parent has no place here")),
            },
        }
    }
}

/// The head of a pull request, taken in if it is not here.
fn amend(app: &App, number: u64) -> Result<Work, Failure> {
    let connected = connect(app)?;
    let pull = connected.wait(connected.forge()?.pull(number))?;
    if pull.state != PullState::Open {
        return Err(Failure::new("not-open", format!("#{number} is {}", pull.state.as_str())));
    }
    if let Some(fork) = &pull.fork {
        return Err(Failure::new("from-a-fork", format!("#{number} comes from {}", one_line(fork)))
            .hint("its branch cannot be pushed from here"));
    }
    let branch = BranchName::new(&pull.head)
        .map_err(|error| Failure::new("bad-head", format!("the head of #{number} has no usable name: {error}")))?;
    let engine = app.engine()?;
    let mut snapshot = engine.observe("run", WorkingCopyNeed::No)?.snapshot;
    if !snapshot.is_tracked(&branch) {
        take_in(app, &engine, number)?;
        snapshot = engine.observe("run", WorkingCopyNeed::No)?.snapshot;
    }
    let metadata = snapshot.metadata_of(&branch).map(|(metadata, _)| metadata.parent.name().clone());
    let (Some(parent), Some(base)) = (metadata, snapshot.tip(&branch)) else {
        return Err(
            Failure::new("untracked", format!("`{branch}` is not tracked")).hint(format!("lattice get {number}"))
        );
    };
    if pull.head_at.is_some_and(|there| there != base) {
        return Err(Failure::new("out-of-date", format!("`{branch}` is not where #{number} is on the host"))
            .hint(format!("lattice get {number}, or lattice submit --branch {}", branch.word())));
    }
    let text = format!("{} (#{number})\n\n{}", one_line(&pull.title), pull.body.trim());
    let item = Some((ItemType::PullRequest, number, Some(branch.to_string())));
    Ok(Work { text: text.trim().to_owned(), work_item_id: format!("pr-{number}"), branch, parent, base, item })
}

fn take_in(app: &App, engine: &Engine, number: u64) -> Result<(), Failure> {
    let options = GetOptions {
        target: number.to_string(),
        freeze: FreezeOnGet::No,
        checkout: Checkout::No,
        replace: Replace::Never,
        hooks: app.hooks,
    };
    let got = engine.get(&Mode::Execute, &options)?;
    for outcome in got.outcomes {
        match outcome {
            Outcome::Gated(bundle) => return Err(bundle.into()),
            Outcome::Done { .. }
            | Outcome::Nothing { .. }
            | Outcome::Planned { .. }
            | Outcome::Differs { .. }
            | Outcome::Paused(_) => {}
        }
    }
    Ok(got.end?)
}

fn start(snapshot: &Snapshot, named: Option<&BranchName>) -> Result<(BranchName, Oid), Failure> {
    let parent = named.or_else(|| snapshot.head.branch()).cloned().ok_or_else(|| {
        Failure::new("no-parent", "HEAD is on no branch").hint("say where to start: --parent <branch>")
    })?;
    let is_trunk = snapshot.is_trunk(&parent);
    if !is_trunk && !snapshot.is_tracked(&parent) {
        return Err(Failure::new("untracked-parent", format!("`{parent}` is neither the trunk nor tracked"))
            .hint(format!("lattice track {} --parent <branch>", parent.word()))
            .hint("or, in a new repository: lattice init"));
    }
    let base = snapshot.tip(&parent).ok_or_else(|| Failure::new("no-commit", format!("`{parent}` has no commit")))?;
    Ok((parent, base))
}
