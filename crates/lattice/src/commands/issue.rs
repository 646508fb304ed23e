//! `issue`: work items of the repository's host.

use clap::{Args, Subcommand};
use lattice_forge::{Comment, Issue, IssueFilter, LabelChange, NewIssue};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::commands::hosted::{Connected, States, connect, one_line};
use crate::error::Failure;
use crate::output::table::table;
use crate::output::{Document, Reply, Style, indented, printable};
use crate::prompt;

/// Look at and change issues
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// Say what would be asked of the host, and ask for nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Open an issue
    New {
        /// One line; an editor opens if absent
        #[arg(short, long)]
        title: Option<String>,
        /// The text; `-` reads it from stdin
        #[arg(short, long, default_value = "")]
        body: String,
        /// Labels for it
        #[arg(short, long, value_delimiter = ',')]
        label: Vec<String>,
    },
    /// List issues
    List {
        /// Which ones
        #[arg(long, value_enum, default_value_t = States::Open)]
        state: States,
        /// Only those with all of these labels
        #[arg(short, long, value_delimiter = ',')]
        label: Vec<String>,
    },
    /// Show an issue with its conversation
    Show { number: u64 },
    /// Say something
    Comment {
        number: u64,
        /// The text; `-` reads it from stdin
        body: String,
    },
    /// Add or remove labels
    Label {
        number: u64,
        #[arg(long, value_delimiter = ',')]
        add: Vec<String>,
        #[arg(long, value_delimiter = ',')]
        remove: Vec<String>,
    },
    /// Close an issue
    Close { number: u64 },
}

impl Action {
    /// What it would change on the host.
    fn change(&self) -> Option<String> {
        match self {
            Self::New { title, .. } => {
                Some(format!("open an issue: {}", one_line(title.as_deref().unwrap_or("with a title from the editor"))))
            }
            Self::Comment { number, .. } => Some(format!("comment on #{number}")),
            Self::Label { number, add, remove } => {
                let signs =
                    add.iter().map(|label| format!("+{label}")).chain(remove.iter().map(|label| format!("-{label}")));
                Some(format!("label #{number}: {}", one_line(&signs.collect::<Vec<_>>().join(" "))))
            }
            Self::Close { number } => Some(format!("close #{number}")),
            Self::List { .. } | Self::Show { .. } => None,
        }
    }
}

/// The reply of a dry run.
pub(crate) fn would<D: Document + 'static>(document: D, what: &str) -> Reply {
    Reply::new(document, format!("{what}\n")).note("this was a dry run: nothing was changed")
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemDocument {
    number: u64,
    title: String,
    body: String,
    state: &'static str,
    author: String,
    labels: Vec<String>,
    created_at: String,
    updated_at: String,
    url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommentDocument {
    pub(crate) id: u64,
    pub(crate) author: String,
    pub(crate) body: String,
    pub(crate) created_at: String,
}

/// Issues: one, or those that were asked for.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct IssuesDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<ItemDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issues: Option<Vec<ItemDocument>>,
    comments: Vec<CommentDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
}

impl Document for IssuesDocument {
    const COMMAND: &'static str = "issue";
}

impl ItemDocument {
    fn of(issue: &Issue) -> Self {
        Self {
            number: issue.number,
            title: issue.title.clone(),
            body: issue.body.clone(),
            state: issue.state.as_str(),
            author: issue.author.clone(),
            labels: issue.labels.clone(),
            created_at: issue.created_at.clone(),
            updated_at: issue.updated_at.clone(),
            url: issue.url.clone(),
        }
    }
}

impl CommentDocument {
    pub(crate) fn of(comment: &Comment) -> Self {
        Self {
            id: comment.id,
            author: comment.author.clone(),
            body: comment.body.clone(),
            created_at: comment.created_at.clone(),
        }
    }
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Reply, Failure> {
    if let (true, Some(what)) = (arguments.dry_run, arguments.action.change()) {
        return Ok(would(IssuesDocument::default(), &what));
    }
    let connected = connect(app)?;
    match &arguments.action {
        Action::New { title, body, label } => new(app, &connected, title.as_deref(), body, label),
        Action::List { state, label } => list(&connected, *state, label, app.style),
        Action::Show { number } => show(&connected, *number),
        Action::Comment { number, body } => {
            let comment = connected.wait(connected.forge()?.comment(*number, &something(body)?))?;
            let document =
                IssuesDocument { comments: vec![CommentDocument::of(&comment)], ..IssuesDocument::default() };
            Ok(Reply::new(document, format!("commented on #{number}\n")).story())
        }
        Action::Label { number, add, remove } => {
            let change = LabelChange { add: add.clone(), remove: remove.clone() };
            let labels = connected.wait(connected.forge()?.label(*number, &change))?;
            let text = format!("#{number}: {}\n", one_line(&labels.join(", ")));
            Ok(Reply::new(IssuesDocument { labels: Some(labels), ..IssuesDocument::default() }, text).story())
        }
        Action::Close { number } => {
            if connected.wait(connected.forge()?.issue(*number))?.is_pull {
                return Err(Failure::new("not-an-issue", format!("#{number} is a pull request, not an issue"))
                    .hint(format!("lattice pr close {number}")));
            }
            connected.wait(connected.forge()?.close(*number))?;
            Ok(Reply::new(IssuesDocument::default(), format!("closed #{number}\n")).story())
        }
    }
}

fn new(app: &App, connected: &Connected, title: Option<&str>, body: &str, labels: &[String]) -> Result<Reply, Failure> {
    let (title, body) = match title {
        Some(title) => (title.to_owned(), text_or_stdin(body)?),
        None => {
            let file = connected.engine.draft("ISSUE");
            let text = prompt::edit(app, &file, "\n# The first line is the title. Lines with # are left out.\n")?;
            let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
            (title.trim().to_owned(), rest.trim().to_owned())
        }
    };
    if title.trim().is_empty() {
        return Err(Failure::usage("an issue needs a title").hint("--title <text>"));
    }
    let issue = connected.wait(connected.forge()?.open_issue(&NewIssue { title, body, labels: labels.to_vec() }))?;
    let text = format!("opened #{}  {}\n", issue.number, one_line(&issue.url));
    let document = IssuesDocument { issue: Some(ItemDocument::of(&issue)), ..IssuesDocument::default() };
    Ok(Reply::new(document, text).story())
}

fn list(connected: &Connected, state: States, labels: &[String], style: Style) -> Result<Reply, Failure> {
    let filter = IssueFilter { state: state.wanted(), labels: labels.to_vec() };
    let issues = connected.wait(connected.forge()?.issues(&filter))?;
    let row = |issue: &Issue| {
        let labels = if issue.labels.is_empty() { String::new() } else { format!("  [{}]", issue.labels.join(", ")) };
        let title = one_line(&issue.title) + &one_line(&labels);
        vec![format!("#{}", issue.number), issue.state.as_str().to_owned(), title]
    };
    let text = table(&issues.iter().map(row).collect::<Vec<_>>(), style);
    let document =
        IssuesDocument { issues: Some(issues.iter().map(ItemDocument::of).collect()), ..IssuesDocument::default() };
    let reply = Reply::new(document, text);
    Ok(if issues.is_empty() { reply.note("no issues") } else { reply })
}

fn show(connected: &Connected, number: u64) -> Result<Reply, Failure> {
    let forge = connected.forge()?;
    let issue = connected.wait(forge.issue(number))?;
    let comments = connected.wait(forge.comments(number))?;
    let mut text = format!(
        "#{} {}\n{}, opened by {}, {}\n",
        issue.number,
        one_line(&issue.title),
        issue.state.as_str(),
        one_line(&issue.author),
        one_line(&issue.created_at)
    );
    if !issue.labels.is_empty() {
        text.push_str(&format!("labels: {}\n", one_line(&issue.labels.join(", "))));
    }
    text.push_str(&format!("\n{}\n", printable(&issue.body)));
    text.push_str(&conversation(&comments));
    let document = IssuesDocument {
        issue: Some(ItemDocument::of(&issue)),
        comments: comments.iter().map(CommentDocument::of).collect(),
        ..IssuesDocument::default()
    };
    Ok(Reply::new(document, text))
}

/// Comments as people read them.
pub(crate) fn conversation(comments: &[Comment]) -> String {
    let one = |comment: &Comment| {
        let head = format!("\n{}, {}:\n", one_line(&comment.author), one_line(&comment.created_at));
        head + &indented(&printable(without_mark(&comment.body)), "  ")
    };
    comments.iter().map(one).collect()
}

/// A comment without the name that an agent's request has at its end, which a browser does not show either.
fn without_mark(body: &str) -> &str {
    match body.trim_end().rsplit_once("\n\n") {
        Some((said, mark)) if mark.starts_with("<!-- lattice:") && mark.ends_with("-->") => said,
        Some(_) | None => body,
    }
}

/// The same for what cannot be empty.
pub(crate) fn something(text: &str) -> Result<String, Failure> {
    let text = text_or_stdin(text)?;
    if text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to say").hint("give it a text; - reads it from stdin"));
    }
    Ok(text)
}

/// What was typed, or what stdin says for `-`.
pub(crate) fn text_or_stdin(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    prompt::everything().map_err(|error| Failure::new("io", format!("stdin cannot be read: {error}")))
}
