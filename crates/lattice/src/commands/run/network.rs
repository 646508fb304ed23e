//! What an agent may reach, and the key that its requests get on the host.

use lattice_model::settings::{AgentSettings, KeySettings, NetworkHost};
use lattice_sprites::action::credential;
use lattice_sprites::network::{Key, Network};
use lattice_sprites::store::Sprite;
use serde_json::{Value, json};

use super::act;
use crate::app::App;
use crate::error::Failure;

/// The hosts of a run as they are recorded.
pub(super) fn recorded_hosts(agent: &AgentSettings) -> Value {
    match agent.network.as_slice() {
        [] => json!("none"),
        hosts => hosts.iter().map(|host| json!(host.to_string())).collect(),
    }
}

/// An agent without its key would only fail later, and less clearly.
pub(super) fn check_key(app: &App, name: &str, agent: &AgentSettings) -> Result<(), Failure> {
    agent.key.as_ref().map_or(Ok(()), |key| value(app, name, key).map(drop))
}

/// What a sprite may reach now, with its key, and the values that must not be shown.
pub(super) fn network(app: &App, sprite: &Sprite) -> Result<(Network, Vec<String>), Failure> {
    let recorded = super::recorded(sprite);
    let hosts = recorded["network"].as_array().cloned().unwrap_or_default();
    let hosts = hosts.iter().filter_map(Value::as_str).filter_map(|host| NetworkHost::new(host).ok()).collect();
    let Some(url) = recorded["key"].as_str() else { return Ok((Network { hosts, key: None }, Vec::new())) };
    let agent = app.engine()?.settings().sprites.agent(&sprite.agent);
    let key = agent.and_then(|agent| agent.key).filter(|key| key.url == url).ok_or_else(|| {
        Failure::new("no-key", format!("`{}` was started with a key for {url}, which it no longer has", sprite.agent))
            .hint(format!("[agents.{}] in the configuration names its key", sprite.agent))
    })?;
    let value = value(app, &sprite.agent, &key)?;
    Ok((Network { hosts, key: Some(Key::new(&key.url, &key.header, &value)) }, vec![value]))
}

fn value(app: &App, name: &str, key: &KeySettings) -> Result<String, Failure> {
    let value = credential(&key.source, &act::values(app)).and_then(|value| match value.contains(['\r', '\n']) {
        true => Err("it has more than one line".to_owned()),
        false => Ok(value),
    });
    value.map_err(|problem| {
        Failure::new("no-key", format!("`{name}` needs a key for {}: {problem}", key.url))
            .hint(format!(
                "set it, or say where it is: [agents.{name}] key = {{ file = \"PATH\" }} in the configuration"
            ))
            .hint("--network none runs it without")
    })
}
