//! What an agent may ask for, with every parameter checked.

use lattice_model::name::BranchName;
use serde_json::{Map, Value};

use crate::protocol::{KnownAction, known_action};

/// An action whose parameters are sound. Whether the sprite may ask for it is another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    OpenPr { title: String, body: String, base: BranchName, head: BranchName, draft: bool },
    PushToBranch { branch: BranchName },
    PostComment { body: String },
    LabelIssue { labels: Vec<String> },
    NotifyUser { message: String },
    FetchCredential { name: String },
}

/// Hosts refuse longer titles.
const LONGEST_TITLE: usize = 250;
/// Hosts refuse longer texts.
const LONGEST_BODY: usize = 60_000;
const LONGEST_MESSAGE: usize = 4_000;
const LONGEST_LABEL: usize = 50;
const MOST_LABELS: usize = 20;

/// Reads a request; the text says what is wrong with it.
pub fn read_action(name: &str, parameters: &Map<String, Value>) -> Result<Action, String> {
    let form = known_action(name).ok_or_else(|| format!("there is no action `{name}`"))?;
    if let Some(foreign) = parameters.keys().find(|key| !form.parameters.contains(&key.as_str())) {
        return Err(format!("{name} has no parameter `{foreign}`; it has {}", form.parameters.join(", ")));
    }
    let text = |key: &str| match parameters.get(key) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(format!("`{key}` must be text")),
        None => Err(format!("`{key}` is missing")),
    };
    let branch = |key: &str| BranchName::new(text(key)?).map_err(|error| format!("`{key}`: {error}"));
    Ok(match form.action {
        KnownAction::OpenPr => Action::OpenPr {
            title: harmless(&line("title", text("title")?, LONGEST_TITLE)?),
            body: match parameters.get("body") {
                None => String::new(),
                Some(_) => harmless(&long("body", text("body")?, LONGEST_BODY)?),
            },
            base: branch("base")?,
            head: branch("head")?,
            draft: match parameters.get("draft") {
                None => false,
                Some(Value::Bool(draft)) => *draft,
                Some(_) => return Err("`draft` must be true or false".to_owned()),
            },
        },
        KnownAction::PushToBranch => Action::PushToBranch { branch: branch("branch")? },
        KnownAction::PostComment => Action::PostComment { body: harmless(&said("body", text("body")?, LONGEST_BODY)?) },
        KnownAction::LabelIssue => Action::LabelIssue { labels: labels(parameters.get("labels"))? },
        KnownAction::NotifyUser => Action::NotifyUser { message: said("message", text("message")?, LONGEST_MESSAGE)? },
        KnownAction::FetchCredential => Action::FetchCredential { name: line("name", text("name")?, 100)? },
    })
}

/// The issue or pull request that a work item is.
pub fn work_item_number(work_item: &str) -> Option<u64> {
    work_item.strip_prefix("issue-").or_else(|| work_item.strip_prefix("pr-"))?.parse().ok()
}

impl Action {
    /// What would be done, for the person who decides.
    pub fn preview(&self, work_item: &str) -> Vec<String> {
        match self {
            Self::OpenPr { title, body, base, head, draft } => {
                let kind = if *draft { "a draft pull request" } else { "a pull request" };
                let mut lines =
                    vec![format!("land and push `{head}`"), format!("open {kind} from `{head}` to `{base}`: {title}")];
                lines.extend(body.lines().take(5).map(|line| format!("  {line}")));
                lines
            }
            Self::PushToBranch { branch } => vec![format!("land and push `{branch}`")],
            Self::PostComment { body } => vec![format!("comment on {work_item}: {body}")],
            Self::LabelIssue { labels } => vec![format!("label {work_item}: {}", labels.join(", "))],
            Self::NotifyUser { message } => vec![format!("tell you: {message}")],
            Self::FetchCredential { name } => vec![format!("give the agent the credential `{name}`")],
        }
    }

    /// Whether the sprite's commits have to be here first.
    pub fn needs_commits(&self) -> bool {
        match self {
            Self::OpenPr { .. } | Self::PushToBranch { .. } => true,
            Self::PostComment { .. }
            | Self::LabelIssue { .. }
            | Self::NotifyUser { .. }
            | Self::FetchCredential { .. } => false,
        }
    }
}

fn labels(value: Option<&Value>) -> Result<Vec<String>, String> {
    let list = value.and_then(Value::as_array).ok_or("`labels` must be a list of texts")?;
    if list.is_empty() || list.len() > MOST_LABELS {
        return Err(format!("`labels` must have 1 to {MOST_LABELS} entries"));
    }
    list.iter()
        .map(|label| line("labels", label.as_str().ok_or("`labels` must be a list of texts")?, LONGEST_LABEL))
        .collect()
}

/// One line of text without anything that a terminal would obey.
fn line(key: &str, text: &str, longest: usize) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(format!("`{key}` must be one line without control characters"));
    }
    said(key, text, longest)
}

fn said(key: &str, text: &str, longest: usize) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("`{key}` is empty"));
    }
    long(key, text, longest)
}

fn long(key: &str, text: &str, longest: usize) -> Result<String, String> {
    if text.chars().count() > longest {
        return Err(format!("`{key}` has more than {longest} characters"));
    }
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.contains(forbidden) {
        return Err(format!("`{key}` has control characters"));
    }
    Ok(text.to_owned())
}

/// Nobody is called by what an agent writes: a mark that cannot be seen comes between `@` and a name.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        shown.push(c);
        let calls = c == '@' && !before.is_alphanumeric() && letters.peek().is_some_and(|next| next.is_alphanumeric());
        if calls {
            shown.push('\u{200b}');
        }
        before = c;
    }
    shown
}
