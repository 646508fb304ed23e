//! Agents as commands: those that are known, and those that a configuration adds or changes.

use std::collections::BTreeMap;

/// How an agent is started.
///
/// In words, `{prompt}` is everything that it is told first, `{prompt_file}` a file with that, `{task}` the task alone,
/// and `{context_dir}` the folder with its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSettings {
    pub command: Vec<String>,
    /// How it goes on after a pause; as it was started if empty.
    pub resume: Vec<String>,
    /// Files and folders of the host that it can read at the same places.
    pub mounts: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// What an agent with a memory of its own is told when it goes on.
const GO_ON: &str = "You were started again. Read /workspace/.lattice/resume.json and go on as your protocol says.";

/// Agents that need no configuration. The sprite is the boundary, so their own sandboxes and questions are off.
const PRESETS: [(&str, &[&str], &[&str]); 6] = [
    (
        "claude",
        &["claude", "--dangerously-skip-permissions", "-p", "{prompt}"],
        &["claude", "--dangerously-skip-permissions", "--continue", "-p", GO_ON],
    ),
    (
        "codex",
        &["codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"],
        &["codex", "exec", "resume", "--last", "--dangerously-bypass-approvals-and-sandbox", GO_ON],
    ),
    ("aider", &["aider", "--yes-always", "--no-check-update", "--message-file", "{prompt_file}"], &[]),
    ("opencode", &["opencode", "run", "{prompt}"], &["opencode", "run", "--continue", GO_ON]),
    ("gemini", &["gemini", "--yolo", "--prompt", "{prompt}"], &[]),
    ("shell", &["bash", "-c", "{task}"], &[]),
];

impl AgentSettings {
    /// The agent of this name that needs no configuration.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, command, resume) = PRESETS.iter().find(|(known, ..)| *known == name)?;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Some(Self { command: words(command), resume: words(resume), ..Self::default() })
    }

    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, ..)| *name)
    }
}
