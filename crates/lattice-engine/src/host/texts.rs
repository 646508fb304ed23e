//! Title and body of new pull requests, from commits or the repository's own template.

use lattice_model::host::PullText;
use lattice_model::name::BranchName;
use lattice_model::snapshot::Snapshot;

use crate::{Engine, EngineError};

/// Where repositories keep the template, first match wins.
const TEMPLATES: [&str; 6] = [
    ".github/pull_request_template.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
    "pull_request_template.md",
    "PULL_REQUEST_TEMPLATE.md",
    "docs/pull_request_template.md",
    "docs/PULL_REQUEST_TEMPLATE.md",
];

/// Hosts refuse longer titles.
const TITLE_CHARS: usize = 250;

/// GitHub refuses bodies of more than 65,536 characters, and the list of the stack needs some of them.
const BODY_CHARS: usize = 60_000;

impl Engine {
    /// What a new pull request of this branch says.
    pub(super) fn pull_text(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<PullText, EngineError> {
        let position = snapshot.position(branch);
        let commits: Vec<_> = position.into_iter().flat_map(|position| position.commits.into_iter().rev()).collect();
        let messages = self.repo.messages(&commits)?;
        let parts: Vec<_> =
            messages.iter().map(|message| message.trim().split_once('\n').unwrap_or((message.trim(), ""))).collect();
        let title = parts.first().map_or(branch.as_str(), |(subject, _)| subject);
        let title: String = title.chars().filter(|c| !c.is_control()).take(TITLE_CHARS).collect();
        let title = if title.trim().is_empty() { branch.to_string() } else { title };
        if let Some(template) = self.template(snapshot, branch)? {
            return Ok(PullText { title, body: shortened(template) });
        }
        let body = match parts.as_slice() {
            [(_, body)] => body.trim().to_owned(),
            several => {
                let items =
                    several.iter().map(|(subject, body)| format!("- {subject}\n\n{}", body.trim()).trim().to_owned());
                items.collect::<Vec<_>>().join("\n")
            }
        };
        Ok(PullText { title, body: shortened(body) })
    }

    fn template(&self, snapshot: &Snapshot, branch: &BranchName) -> Result<Option<String>, EngineError> {
        let Some(tip) = snapshot.tip(branch) else { return Ok(None) };
        for path in TEMPLATES {
            if let Some(text) = self.repo.text_at(tip, path)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// What a host takes; the commits have the rest.
fn shortened(body: String) -> String {
    match body.char_indices().nth(BODY_CHARS) {
        None => body,
        Some((at, _)) => format!("{}\n\n(shortened; the commits say more)", &body[..at]),
    }
}
