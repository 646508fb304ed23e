//! `--sandbox none`: what is refused without a sandbox, and how it is said everywhere that there is none.

use lattice_model::settings::AgentSettings;
use lattice_sprites::sandbox::Isolation;
use lattice_sprites::store::Sprite;
use serde_json::Value;

use crate::error::Failure;

/// How much an agent is kept apart, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SandboxChoice {
    /// By every layer, or the agent does not run
    Strict,
    /// By nothing: the agent can do what you can do; of root, what any other user can do
    None,
}

impl From<SandboxChoice> for Isolation {
    fn from(choice: SandboxChoice) -> Self {
        match choice {
            SandboxChoice::Strict => Self::Strict,
            SandboxChoice::None => Self::None,
        }
    }
}

/// How a sprite is kept apart, as it was recorded. Only what says so by name has no sandbox.
pub(crate) fn isolation(sprite: &Sprite) -> Isolation {
    match super::recorded(sprite)["sandbox"].as_str() {
        Some("none") => Isolation::None,
        Some(_) | None => Isolation::Strict,
    }
}

/// Refuses what only a sandbox can hold: it would be promised, and not be so.
pub(super) fn check(
    names_hosts: bool,
    agent: &AgentSettings,
    steps: &[String],
    layers: &[String],
) -> Result<(), Failure> {
    let wants = [
        (
            agent.key.is_some(),
            "works with a key that it must not have",
            "name its command after --, and what it needs in the `env` of an agent of your own",
        ),
        (
            names_hosts || !agent.network.is_empty(),
            "may reach named hosts and no other",
            "leave --network out: nothing limits it",
        ),
        (
            !steps.is_empty(),
            "begins with steps of accepted proposals, which would change this machine",
            "lattice proposals reject ID, or run it in a sandbox",
        ),
        (!layers.is_empty(), "gets folders of the checkout (`sprite.layers`), read-only", "run it in a sandbox"),
    ];
    match wants.into_iter().find(|(is_wanted, ..)| *is_wanted) {
        Some((_, what, hint)) => {
            let text = format!("this agent {what}; without a sandbox that cannot be kept");
            Err(Failure::new("needs-sandbox", text).hint(hint))
        }
        None => Ok(()),
    }
}

/// The lines that a run without a sandbox begins with.
pub(super) fn warning(sprite: &Sprite) -> Option<String> {
    let rules = isolation(sprite).not_enforced().join(", ");
    // Agents of root are another user, with a sandbox or without.
    let who = if lattice_sprites::run::user() == 0 { "any other user of this machine" } else { "you" };
    (!rules.is_empty()).then(|| {
        format!(
            "warning: {} runs without a sandbox: it can read, change and send whatever {who} can\n  \
             not enforced: {rules}\n  still checked: its commits, its events, and the actions that it asks for\n",
            sprite.name
        )
    })
}

/// How a sprite is kept apart, for people, from what was recorded.
pub(crate) fn described(run: &Value) -> Option<String> {
    let rules = run["not_enforced"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let sandbox = run["sandbox"].as_str()?;
    Some(if rules.is_empty() { sandbox.to_owned() } else { format!("{sandbox}; not enforced: {}", rules.join(", ")) })
}
