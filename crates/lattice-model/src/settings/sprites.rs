//! Options of sprites: what agents may have done for them, and what they may be given.

use std::collections::BTreeMap;

use super::AgentSettings;

/// What happens when an agent asks for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It is carried out.
    Allow,
    /// A person decides.
    Ask,
    Deny,
}

/// Where the value of a credential is on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// An environment variable.
    Variable(String),
    File(String),
    /// A program that prints it.
    Command(Vec<String>),
}

/// What one sprite may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpriteLimits {
    pub memory_mb: u64,
    pub processes: u64,
    pub output_mb: u64,
    /// How long an agent may run before it ends or waits.
    pub minutes: u64,
}

impl Default for SpriteLimits {
    fn default() -> Self {
        Self { memory_mb: 16 << 10, processes: 2048, output_mb: 1 << 10, minutes: 24 * 60 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpriteSettings {
    /// What was decided for actions, by their names; the others are as [`SpriteSettings::policy`] says.
    pub policies: BTreeMap<String, Policy>,
    pub credentials: BTreeMap<String, CredentialSource>,
    /// The program that gets what agents want the user to know.
    pub notify: Vec<String>,
    /// The agent that runs if none is named.
    pub agent: Option<String>,
    pub agents: BTreeMap<String, AgentSettings>,
    /// Folders of the checkout here, such as `node_modules`, that agents find in their workspace.
    pub layers: Vec<String>,
    /// The folder that sprites live in, absolute; with the repository's own files if there is none.
    pub dir: Option<String>,
    pub limits: SpriteLimits,
}

/// Every action with what happens if nothing else was said.
const DEFAULTS: [(&str, Policy); 6] = [
    ("OPEN_PR", Policy::Ask),
    ("PUSH_TO_BRANCH", Policy::Ask),
    ("POST_COMMENT", Policy::Allow),
    ("LABEL_ISSUE", Policy::Allow),
    ("NOTIFY_USER", Policy::Allow),
    ("FETCH_CREDENTIAL", Policy::Ask),
];

impl Policy {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}

impl SpriteSettings {
    /// What happens to an action; one that is not known is denied.
    pub fn policy(&self, action: &str) -> Policy {
        let default = DEFAULTS.iter().find(|(name, _)| *name == action).map(|(_, policy)| *policy);
        match default {
            Some(default) => self.policies.get(action).copied().unwrap_or(default),
            None => Policy::Deny,
        }
    }

    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<AgentSettings> {
        self.agents.get(name).cloned().or_else(|| AgentSettings::preset(name))
    }

    /// Whether there is an action of this name.
    pub fn is_action(name: &str) -> bool {
        DEFAULTS.iter().any(|(known, _)| *known == name)
    }
}
