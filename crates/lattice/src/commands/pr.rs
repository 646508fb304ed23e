//! `pr`: pull requests of the repository's host.

use clap::{Args, Subcommand, ValueEnum};
use lattice_forge::{NewReview, Review, ReviewComment, Verdict};
use lattice_model::branch::PrState;
use lattice_model::command::submit::whole_stack;
use lattice_model::host::{Draft, Pull, PullState};
use lattice_model::name::BranchName;
use lattice_model::overview;
use lattice_model::remote::FileChange;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::{App, Interaction};
use crate::commands::branch;
use crate::commands::hosted::{Connected, PullDocument, States, connect, one_line, pull_line};
use crate::commands::issue::{CommentDocument, conversation, something, text_or_stdin, would};
use crate::error::Failure;
use crate::output::table::table;
use crate::output::{Document, Reply, Style, indented, printable};
use crate::prompt;

/// Look at and review pull requests; alone it shows the one of the current branch in the browser
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Say what would be asked of the host, and ask for nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Debug, Clone, Args)]
struct Target {
    /// The number; the pull request of the current branch if absent
    number: Option<u64>,
    /// The pull request of this branch
    #[arg(long, value_parser = branch, conflicts_with = "number")]
    branch: Option<BranchName>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show it in the browser; without a terminal, print its address
    Open {
        #[command(flatten)]
        target: Target,
        /// All pull requests of the stack
        #[arg(long)]
        stack: bool,
    },
    /// List the pull requests of the repository, newest first
    List {
        /// Which ones
        #[arg(long, value_enum, default_value_t = States::Open)]
        state: States,
    },
    /// Show it with its conversation, reviews and files
    Show {
        #[command(flatten)]
        target: Target,
        /// All pull requests of the stack
        #[arg(long)]
        stack: bool,
    },
    /// Say what you think of it
    Review {
        #[command(flatten)]
        target: Target,
        /// What you think
        #[arg(long, value_enum, default_value_t = Opinion::Comment)]
        verdict: Opinion,
        /// The text; `-` reads it from stdin
        #[arg(short, long, default_value = "")]
        body: String,
        /// Something about a line of a file; may be given several times
        #[arg(long, value_name = "PATH:LINE:TEXT", value_parser = remark)]
        remark: Vec<Remark>,
    },
    /// Say something
    Comment {
        /// The text; `-` reads it from stdin
        #[arg(short, long)]
        body: String,
        #[command(flatten)]
        target: Target,
    },
    /// Close it without landing it
    Close {
        #[command(flatten)]
        target: Target,
    },
}

/// Path, line and text of something that is said about a line.
type Remark = (String, u64, String);

fn remark(text: &str) -> Result<Remark, String> {
    let parts = text.match_indices(':').find_map(|(at, _)| {
        let (line, said) = text[at + 1..].split_once(':')?;
        let line = line.parse::<u64>().ok().filter(|line| *line > 0)?;
        Some((text[..at].to_owned(), line, said.trim().to_owned()))
    });
    let parts = parts.filter(|(path, _, said)| !path.is_empty() && !said.is_empty());
    parts.ok_or_else(|| "it has the form PATH:LINE:TEXT, such as `src/main.rs:12:why?`".to_owned())
}

impl Target {
    fn text(&self) -> String {
        match (self.number, &self.branch) {
            (Some(number), _) => format!("#{number}"),
            (None, Some(branch)) => format!("the pull request of {branch}"),
            (None, None) => "the pull request of the current branch".to_owned(),
        }
    }
}

impl Action {
    /// What it would change on the host.
    fn change(&self) -> Option<String> {
        match self {
            Self::Review { target, .. } => Some(format!("review {}", target.text())),
            Self::Comment { target, .. } => Some(format!("comment on {}", target.text())),
            Self::Close { target } => Some(format!("close {}", target.text())),
            Self::Open { .. } | Self::List { .. } | Self::Show { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Opinion {
    Approve,
    RequestChanges,
    Comment,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReviewDocument {
    author: String,
    verdict: &'static str,
    body: String,
    at: Option<String>,
}

/// Something that was said about a line; none if the line is gone.
#[derive(Debug, Serialize, JsonSchema)]
struct RemarkDocument {
    author: String,
    path: String,
    line: Option<u64>,
    body: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileDocument {
    path: String,
    status: String,
    additions: u64,
    deletions: u64,
}

/// Pull requests that were asked for; with one, its conversation too.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct PrsDocument {
    pulls: Vec<PullDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    comments: Vec<CommentDocument>,
    reviews: Vec<ReviewDocument>,
    remarks: Vec<RemarkDocument>,
    files: Vec<FileDocument>,
}

impl Document for PrsDocument {
    const COMMAND: &'static str = "pr";
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    let here = Target { number: None, branch: None };
    let change = arguments.action.as_ref().and_then(Action::change);
    if let (true, Some(what)) = (arguments.dry_run, change) {
        return Ok(would(PrsDocument::default(), &what));
    }
    match &arguments.action {
        None => open(app, &here, Extent::One),
        Some(Action::Open { target, stack }) => open(app, target, Extent::of(*stack)),
        Some(Action::List { state }) => list(&connect(app)?, *state, app.style),
        Some(Action::Show { target, stack: false }) => show(&connect(app)?, target),
        Some(Action::Show { target, stack: true }) => {
            let connected = connect(app)?;
            let pulls = pulls(&connected, target, Extent::Stack)?;
            let text: String = pulls.iter().map(pull_line).collect();
            Ok(Reply::new(documents(&pulls), text))
        }
        Some(Action::Review { target, verdict, body, remark }) => {
            let connected = connect(app)?;
            let number = number(&connected, target)?;
            let verdict = match verdict {
                Opinion::Approve => Verdict::Approve,
                Opinion::RequestChanges => Verdict::RequestChanges,
                Opinion::Comment => Verdict::Comment,
            };
            remarkable(&connected, number, remark)?;
            let says_nothing = verdict == Verdict::Comment && remark.is_empty();
            let body = if says_nothing { something(body)? } else { text_or_stdin(body)? };
            let new = NewReview { verdict, body, remarks: remark.clone() };
            let review = connected.wait(connected.forge()?.review(number, &new))?;
            let document = PrsDocument { reviews: vec![ReviewDocument::of(&review)], ..PrsDocument::default() };
            Ok(Reply::new(document, format!("{} #{number}\n", verdict.as_str())).story())
        }
        Some(Action::Comment { target, body }) => {
            let connected = connect(app)?;
            let number = number(&connected, target)?;
            let comment = connected.wait(connected.forge()?.comment(number, &something(body)?))?;
            let document = PrsDocument { comments: vec![CommentDocument::of(&comment)], ..PrsDocument::default() };
            Ok(Reply::new(document, format!("commented on #{number}\n")).story())
        }
        Some(Action::Close { target }) => {
            let connected = connect(app)?;
            let pull = pulls(&connected, target, Extent::One)?.remove(0);
            let number = pull.number;
            if pull.state != PullState::Open {
                return Err(Failure::new("not-open", format!("#{number} is {} already", pull.state.as_str())));
            }
            connected.wait(connected.forge()?.close(number))?;
            let reply = Reply::new(PrsDocument::default(), format!("closed #{number}\n")).story();
            // It is closed, whatever becomes of what is remembered of it here.
            Ok(match connected.engine.relink_changed(&connected.host, "pr", number) {
                Ok(()) => reply,
                Err(error) => reply.note(format!("`lattice log` learns of it by the next sync: {error}")),
            })
        }
    }
}

/// One pull request, or those of the whole stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    One,
    Stack,
}

impl Extent {
    fn of(stack: bool) -> Self {
        if stack { Self::Stack } else { Self::One }
    }
}

/// A link that is cached is enough to open a page; nobody is asked then.
fn open(app: &App, target: &Target, extent: Extent) -> Result<Reply, Failure> {
    let (urls, document) = match cached(app, target, extent)? {
        Some(url) => (vec![url], PrsDocument::default()),
        None => {
            let connected = connect(app)?;
            let pulls = pulls(&connected, target, extent)?;
            (pulls.iter().map(|pull| pull.url.clone()).collect(), documents(&pulls))
        }
    };
    let is_web = urls.iter().all(|url| url.starts_with("http"));
    if app.interaction == Interaction::Allowed && is_web {
        urls.iter().try_for_each(|url| prompt::browse(app, url))?;
    }
    let text: String = urls.iter().map(|url| format!("{}\n", one_line(url))).collect();
    Ok(Reply::new(document, text).with_field("urls", serde_json::json!(urls)))
}

fn cached(app: &App, target: &Target, extent: Extent) -> Result<Option<String>, Failure> {
    if target.number.is_some() || extent == Extent::Stack {
        return Ok(None);
    }
    let snapshot = app.engine()?.observe("pr", lattice_engine::WorkingCopyNeed::No)?.snapshot;
    let branch = target.branch.as_ref().or(snapshot.head.branch());
    let metadata = branch.and_then(|branch| snapshot.metadata_of(branch));
    Ok(metadata.and_then(|(metadata, _)| match &metadata.pr {
        PrState::Linked { url, .. } => Some(url.clone()),
        PrState::None {} => None,
    }))
}

/// The pull requests that are meant, lowest first.
fn pulls(connected: &Connected, target: &Target, extent: Extent) -> Result<Vec<Pull>, Failure> {
    let forge = connected.forge()?;
    if let (Some(number), Extent::One) = (target.number, extent) {
        return Ok(vec![connected.wait(forge.pull(number))?]);
    }
    let snapshot = connected.engine.observe("pr", lattice_engine::WorkingCopyNeed::No)?.snapshot;
    let branch = target.branch.as_ref().or(snapshot.head.branch());
    let branch = branch.ok_or_else(|| Failure::usage("say which: a number, or --branch <name>"))?;
    let branches = match extent {
        Extent::One => vec![branch.clone()],
        Extent::Stack => whole_stack(&snapshot, branch),
    };
    let mut found = connected.wait(forge.pulls_of(&branches))?;
    let pulls: Vec<_> = branches.iter().filter_map(|branch| found.remove(branch)).collect();
    if pulls.is_empty() {
        let what = format!("`{branch}` has no pull request");
        let is_empty = snapshot.position(branch).is_some_and(|position| position.commits.is_empty());
        return Err(Failure::new("no-pull-request", what).hint(match is_empty {
            _ if snapshot.is_trunk(branch) => "name one: a number, or --branch <name>; lattice pr list shows them",
            true => "it has no commit of its own yet; after one, lattice submit opens a pull request",
            false => "lattice submit opens one",
        }));
    }
    Ok(pulls)
}

fn number(connected: &Connected, target: &Target) -> Result<u64, Failure> {
    match target.number {
        Some(number) => Ok(number),
        None => Ok(pulls(connected, target, Extent::One)?[0].number),
    }
}

/// Only of what a pull request changes can something be said.
fn remarkable(connected: &Connected, number: u64, remarks: &[Remark]) -> Result<(), Failure> {
    if remarks.is_empty() {
        return Ok(());
    }
    let files = forge_files(connected, number)?;
    let stranger = remarks.iter().find(|(path, ..)| files.iter().all(|file| file.path != *path));
    let Some((path, ..)) = stranger else { return Ok(()) };
    let failure = Failure::new("not-changed", format!("#{number} does not change {path}, and nothing was said"));
    Err(files.iter().fold(failure, |failure, file| failure.cause(format!("it changes {}", one_line(&file.path)))))
}

fn forge_files(connected: &Connected, number: u64) -> Result<Vec<FileChange>, Failure> {
    connected.wait(connected.forge()?.files(number))
}

fn list(connected: &Connected, state: States, style: Style) -> Result<Reply, Failure> {
    let pulls = connected.wait(connected.forge()?.pulls(state.wanted()))?;
    let row = |pull: &Pull| {
        let draft = if pull.draft == Draft::Draft { ", draft" } else { "" };
        let way = format!("{} -> {}", one_line(&pull.head), one_line(&pull.base));
        let state = format!("{}{draft}", pull.state.as_str());
        vec![format!("#{}", pull.number), state, way, one_line(&pull.title)]
    };
    let text = table(&pulls.iter().map(row).collect::<Vec<_>>(), style);
    let reply = Reply::new(documents(&pulls), text);
    Ok(if pulls.is_empty() { reply.note("no pull requests") } else { reply })
}

fn show(connected: &Connected, target: &Target) -> Result<Reply, Failure> {
    let pull = pulls(connected, target, Extent::One)?.remove(0);
    let forge = connected.forge()?;
    let comments = connected.wait(forge.comments(pull.number))?;
    let reviews = connected.wait(forge.reviews(pull.number))?;
    let remarks = connected.wait(forge.review_comments(pull.number))?;
    let files = match forge_files(connected, pull.number) {
        Err(failure) if failure.name == "no-such-head" => Vec::new(),
        files => files?,
    };
    let body = printable(&overview::without_marks(&pull.body));
    let mut text = format!("{}by {}\n\n{body}\n", pull_line(&pull), one_line(&pull.author));
    for file in &files {
        text.push_str(&format!("{} {}  +{} -{}\n", file.status, one_line(&file.path), file.additions, file.deletions));
    }
    for review in &reviews {
        text.push_str(&format!("\n{} {}:\n", one_line(&review.author), review.verdict.as_str()));
        text.push_str(&indented(&printable(&review.body), "  "));
    }
    for remark in &remarks {
        let line = remark.line.map_or_else(|| " (a line that is gone)".to_owned(), |line| format!(":{line}"));
        text.push_str(&format!("\n{}{line} {}:\n", one_line(&remark.path), one_line(&remark.author)));
        text.push_str(&indented(&printable(&remark.body), "  "));
    }
    text.push_str(&conversation(&comments));
    let document = PrsDocument {
        body: Some(pull.body.clone()),
        comments: comments.iter().map(CommentDocument::of).collect(),
        reviews: reviews.iter().map(ReviewDocument::of).collect(),
        remarks: remarks.iter().map(RemarkDocument::of).collect(),
        files: files.iter().map(FileDocument::of).collect(),
        ..documents(&[pull])
    };
    Ok(Reply::new(document, text))
}

fn documents(pulls: &[Pull]) -> PrsDocument {
    PrsDocument { pulls: pulls.iter().map(PullDocument::of).collect(), ..PrsDocument::default() }
}

impl ReviewDocument {
    fn of(review: &Review) -> Self {
        Self {
            author: review.author.clone(),
            verdict: review.verdict.as_str(),
            body: review.body.clone(),
            at: review.at.clone(),
        }
    }
}

impl RemarkDocument {
    fn of(remark: &ReviewComment) -> Self {
        let ReviewComment { author, path, line, body, .. } = remark.clone();
        Self { author, path, line, body }
    }
}

impl FileDocument {
    fn of(file: &FileChange) -> Self {
        let status = file.status.to_string();
        Self { path: file.path.clone(), status, additions: file.additions, deletions: file.deletions }
    }
}
