//! Agents as commands: those that are known, and those that a configuration adds or changes.

use std::collections::BTreeMap;

use super::{CredentialSource, KeySettings, NetworkHost};

/// How an agent is started.
///
/// In words, `{prompt}` is everything that it is told first, `{prompt_file}` a file with that, `{task}` the task alone,
/// and `{context_dir}` the folder with its context. There and in the environment, `{base_url}` is where requests get the
/// key, and `{key}` what stands for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSettings {
    pub command: Vec<String>,
    /// How it goes on after a pause; as it was started if empty.
    pub resume: Vec<String>,
    /// Files and folders of the host that it can read at the same places.
    pub mounts: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// What it may reach.
    pub network: Vec<NetworkHost>,
    /// The key of its model, which stays on the host.
    pub key: Option<KeySettings>,
}

/// What an agent with a memory of its own is told when it goes on.
const GO_ON: &str = "You were started again. Read /workspace/.lattice/resume.json and go on as your protocol says.";

/// An agent that needs no configuration.
struct Preset {
    name: &'static str,
    command: &'static [&'static str],
    resume: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    network: &'static [&'static str],
    key: Option<PresetKey>,
}

/// Where a key is on the host, where it goes, and in which header.
struct PresetKey {
    variable: &'static str,
    url: &'static str,
    header: &'static str,
}

const ANTHROPIC: PresetKey =
    PresetKey { variable: "ANTHROPIC_API_KEY", url: "https://api.anthropic.com", header: "x-api-key: {key}" };
const OPENAI: PresetKey =
    PresetKey { variable: "OPENAI_API_KEY", url: "https://api.openai.com", header: "authorization: Bearer {key}" };
const GEMINI: PresetKey = PresetKey {
    variable: "GEMINI_API_KEY",
    url: "https://generativelanguage.googleapis.com",
    header: "x-goog-api-key: {key}",
};

/// Tells codex where its model is; nothing else of it reads a base URL.
const CODEX_MODEL: &str = "model_providers.lattice={name=\"lattice\",base_url=\"{base_url}/v1\",\
    env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}";

/// The sprite is the boundary, so the agents' own sandboxes and questions are off.
const PRESETS: [Preset; 6] = [
    Preset {
        name: "claude",
        command: &["claude", "--dangerously-skip-permissions", "-p", "{prompt}"],
        resume: &["claude", "--dangerously-skip-permissions", "--continue", "-p", GO_ON],
        env: &[
            ("ANTHROPIC_BASE_URL", "{base_url}"),
            ("ANTHROPIC_API_KEY", "{key}"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        network: &[],
        key: Some(ANTHROPIC),
    },
    Preset {
        name: "codex",
        command: &[
            "codex",
            "exec",
            "-c",
            CODEX_MODEL,
            "-c",
            "model_provider=\"lattice\"",
            "--dangerously-bypass-approvals-and-sandbox",
            "{prompt}",
        ],
        resume: &[
            "codex",
            "exec",
            "-c",
            CODEX_MODEL,
            "-c",
            "model_provider=\"lattice\"",
            "--dangerously-bypass-approvals-and-sandbox",
            "resume",
            "--last",
            GO_ON,
        ],
        env: &[("OPENAI_API_KEY", "{key}")],
        network: &[],
        key: Some(OPENAI),
    },
    Preset {
        name: "aider",
        command: &["aider", "--yes-always", "--no-check-update", "--message-file", "{prompt_file}"],
        resume: &[],
        env: &[("OPENAI_API_BASE", "{base_url}/v1"), ("OPENAI_API_KEY", "{key}")],
        network: &[],
        key: Some(OPENAI),
    },
    Preset {
        name: "opencode",
        command: &["opencode", "run", "{prompt}"],
        resume: &["opencode", "run", "--continue", GO_ON],
        env: &[
            ("ANTHROPIC_API_KEY", "{key}"),
            (
                "OPENCODE_CONFIG_CONTENT",
                r#"{"provider":{"anthropic":{"options":{"baseURL":"{base_url}/v1","apiKey":"{key}"}}}}"#,
            ),
        ],
        network: &["models.dev", "registry.npmjs.org"],
        key: Some(ANTHROPIC),
    },
    Preset {
        name: "gemini",
        command: &["gemini", "--yolo", "--prompt", "{prompt}"],
        resume: &[],
        env: &[("GOOGLE_GEMINI_BASE_URL", "{base_url}"), ("GEMINI_API_KEY", "{key}")],
        network: &[],
        key: Some(GEMINI),
    },
    Preset { name: "shell", command: &["bash", "-c", "{task}"], resume: &[], env: &[], network: &[], key: None },
];

impl AgentSettings {
    /// The agent of this name that needs no configuration.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let key = |key: &PresetKey| KeySettings {
            source: CredentialSource::Variable(key.variable.to_owned()),
            url: key.url.to_owned(),
            header: key.header.to_owned(),
        };
        Some(Self {
            command: words(preset.command),
            resume: words(preset.resume),
            mounts: Vec::new(),
            env: preset.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            network: preset.network.iter().filter_map(|host| NetworkHost::new(host).ok()).collect(),
            key: preset.key.as_ref().map(key),
        })
    }

    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }
}
