//! Options of a repository and of a user, with their defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use toml_edit::{DocumentMut, Item, Table, Value};

use crate::name::BranchName;

mod agents;
mod network;
mod sprites;

pub use agents::AgentSettings;
pub use network::{KeySettings, NetworkHost};
pub use sprites::{CredentialSource, Policy, SpriteLimits, SpriteSettings};

/// Every option, after the repository's file has overridden the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub trunk: Option<BranchName>,
    pub lock_timeout_ms: u64,
    /// How long a hook may take before it is stopped; 0 is forever.
    pub hook_timeout_ms: u64,
    /// How `create` makes a name from a message; `{slug}` stands for the message, `{date}` for the day.
    pub branch_template: String,
    pub keep_operations: u64,
    pub keep_days: u64,
    pub explain: ExplainSettings,
    pub forge: ForgeSettings,
    pub sprites: SpriteSettings,
    pub aliases: BTreeMap<String, String>,
}

/// The outside explainer; it is off without a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainSettings {
    pub command: Vec<String>,
    pub timeout_ms: u64,
    /// Whether the explainer may see diffs and file contents.
    pub include_diffs: bool,
}

/// Which remote is the host, and where GitHub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeSettings {
    /// The remote that stacks are submitted to, if one was chosen.
    pub remote: Option<String>,
    /// `auto`, `git` or `github`.
    pub kind: String,
    /// Where the list of a stack's pull requests goes: `body`, `comment` or `off`.
    pub overview: String,
    pub merge_method: String,
    pub github: GitHubSettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHubSettings {
    /// Where people look at it; its host is the one that remotes are compared with.
    pub web_url: String,
    /// Where programs ask; follows from `web_url` if absent.
    pub api_url: Option<String>,
    pub client_id: Option<String>,
    /// The name of the App in URLs.
    pub app: String,
}

impl ForgeSettings {
    /// The remote that stacks are submitted to.
    pub fn remote(&self) -> &str {
        self.remote.as_deref().unwrap_or("origin")
    }
}

impl Default for ForgeSettings {
    fn default() -> Self {
        Self {
            remote: None,
            kind: "auto".to_owned(),
            overview: "body".to_owned(),
            merge_method: "squash".to_owned(),
            github: GitHubSettings {
                web_url: "https://github.com".to_owned(),
                api_url: None,
                client_id: None,
                app: "lattice".to_owned(),
            },
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trunk: None,
            lock_timeout_ms: 30_000,
            hook_timeout_ms: 600_000,
            branch_template: "{slug}".to_owned(),
            keep_operations: 500,
            keep_days: 90,
            explain: ExplainSettings { command: Vec::new(), timeout_ms: 10_000, include_diffs: false },
            forge: ForgeSettings::default(),
            sprites: SpriteSettings::default(),
            aliases: BTreeMap::new(),
        }
    }
}

/// What an option looks like in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Branch,
    Integer,
    Text,
    Flag,
    TextList,
}

/// An option that `config` knows.
#[derive(Debug, Clone, Copy)]
pub struct KnownOption {
    pub key: &'static str,
    pub kind: OptionKind,
    pub help: &'static str,
}

/// All options, in the order in which `config list` shows them.
pub const OPTIONS: &[KnownOption] = &[
    KnownOption { key: "trunk.branch", kind: OptionKind::Branch, help: "the branch that stacks stand on" },
    KnownOption { key: "lock.timeout_ms", kind: OptionKind::Integer, help: "how long a writer waits for another" },
    KnownOption { key: "hooks.timeout_ms", kind: OptionKind::Integer, help: "how long a hook may take; 0 is forever" },
    KnownOption {
        key: "branch.template",
        kind: OptionKind::Text,
        help: "name of a branch made from a message: {slug} is the message, {date} the day",
    },
    KnownOption { key: "undo.keep_operations", kind: OptionKind::Integer, help: "operations that stay undoable" },
    KnownOption { key: "undo.keep_days", kind: OptionKind::Integer, help: "days for which they stay undoable" },
    KnownOption { key: "explain.command", kind: OptionKind::TextList, help: "program that adds prose to explanations" },
    KnownOption { key: "explain.timeout_ms", kind: OptionKind::Integer, help: "how long that program may take" },
    KnownOption { key: "explain.include_diffs", kind: OptionKind::Flag, help: "whether it may see diffs and files" },
    KnownOption { key: "forge.remote", kind: OptionKind::Text, help: "the remote that stacks are submitted to" },
    KnownOption { key: "forge.kind", kind: OptionKind::Text, help: "what kind of host it is: auto, git, github" },
    KnownOption {
        key: "submit.overview",
        kind: OptionKind::Text,
        help: "where a stack is listed that its host does not show: body, comment, off",
    },
    KnownOption { key: "merge.method", kind: OptionKind::Text, help: "how to land: merge, squash, rebase" },
    KnownOption { key: "github.web_url", kind: OptionKind::Text, help: "where GitHub is, for people" },
    KnownOption { key: "github.api_url", kind: OptionKind::Text, help: "where GitHub is, for programs" },
    KnownOption { key: "github.client_id", kind: OptionKind::Text, help: "client id of the GitHub App" },
    KnownOption { key: "actions.open_pr", kind: OptionKind::Text, help: "OPEN_PR of agents: allow, ask, deny" },
    KnownOption { key: "actions.push_to_branch", kind: OptionKind::Text, help: "PUSH_TO_BRANCH of agents: the same" },
    KnownOption { key: "actions.post_comment", kind: OptionKind::Text, help: "POST_COMMENT of agents: the same" },
    KnownOption { key: "actions.label_issue", kind: OptionKind::Text, help: "LABEL_ISSUE of agents: the same" },
    KnownOption { key: "actions.notify_user", kind: OptionKind::Text, help: "NOTIFY_USER of agents: the same" },
    KnownOption { key: "actions.fetch_credential", kind: OptionKind::Text, help: "FETCH_CREDENTIAL: the same" },
    KnownOption { key: "sprite.agent", kind: OptionKind::Text, help: "the agent that runs if none is named" },
    KnownOption {
        key: "sprite.dir",
        kind: OptionKind::Text,
        help: "the folder that sprites live in, if not in the repository's own",
    },
    KnownOption {
        key: "sprite.layers",
        kind: OptionKind::TextList,
        help: "folders that agents find in their workspace",
    },
    KnownOption { key: "sprite.memory_mb", kind: OptionKind::Integer, help: "memory of a sprite" },
    KnownOption { key: "sprite.processes", kind: OptionKind::Integer, help: "processes of a sprite" },
    KnownOption { key: "sprite.output_mb", kind: OptionKind::Integer, help: "what an agent may print" },
    KnownOption { key: "sprite.minutes", kind: OptionKind::Integer, help: "how long an agent may run at a time" },
    KnownOption { key: "notify.command", kind: OptionKind::TextList, help: "program that gets what agents tell you" },
    KnownOption { key: "github.app", kind: OptionKind::Text, help: "name of the GitHub App in URLs" },
];

/// The option with this key.
pub fn known_option(key: &str) -> Option<&'static KnownOption> {
    OPTIONS.iter().find(|option| option.key == key)
}

impl KnownOption {
    /// What holds where the option is not set; `None` where that is nothing.
    pub fn default(&self) -> Option<String> {
        let default = Settings::default();
        match self.key {
            "lock.timeout_ms" => Some(default.lock_timeout_ms.to_string()),
            "hooks.timeout_ms" => Some(default.hook_timeout_ms.to_string()),
            "branch.template" => Some(default.branch_template),
            "undo.keep_operations" => Some(default.keep_operations.to_string()),
            "undo.keep_days" => Some(default.keep_days.to_string()),
            "explain.timeout_ms" => Some(default.explain.timeout_ms.to_string()),
            "explain.include_diffs" => Some(default.explain.include_diffs.to_string()),
            "forge.remote" => Some(default.forge.remote().to_owned()),
            "forge.kind" => Some(default.forge.kind),
            "submit.overview" => Some(default.forge.overview),
            "merge.method" => Some(default.forge.merge_method),
            "github.web_url" => Some(default.forge.github.web_url),
            "github.app" => Some(default.forge.github.app),
            "sprite.memory_mb" => Some(default.sprites.limits.memory_mb.to_string()),
            "sprite.processes" => Some(default.sprites.limits.processes.to_string()),
            "sprite.output_mb" => Some(default.sprites.limits.output_mb.to_string()),
            "sprite.minutes" => Some(default.sprites.limits.minutes.to_string()),
            key => {
                let action = key.strip_prefix("actions.")?.to_ascii_uppercase();
                Some(default.sprites.policy(&action).as_str().to_owned())
            }
        }
    }
}

impl Settings {
    pub fn hook_timeout(&self) -> Option<Duration> {
        (self.hook_timeout_ms > 0).then(|| Duration::from_millis(self.hook_timeout_ms))
    }

    /// The text of a configuration file with its trunk replaced, everything else as it was.
    ///
    /// Text that is no TOML has nothing that could be kept; callers keep such a file beside the new one.
    pub fn with_trunk(content: &str, trunk: &BranchName) -> String {
        let mut document = content.parse::<DocumentMut>().unwrap_or_default();
        let slot = document.entry("trunk").or_insert_with(|| Item::Table(Table::new()));
        if !slot.is_table_like() {
            *slot = Item::Table(Table::new());
        }
        if let Some(table) = slot.as_table_like_mut() {
            let mut name = Value::from(trunk.as_str());
            if let Some(old) = table.get("branch").and_then(Item::as_value) {
                // The decoration is what stands around a value, such as a comment.
                *name.decor_mut() = old.decor().clone();
            }
            table.insert("branch", Item::Value(name));
        }
        document.to_string()
    }
}

#[cfg(test)]
mod tests;
