//! The tables of the configuration file that are about sprites.

use lattice_model::settings::{CredentialSource, Policy, SpriteSettings};
use toml_edit::Item;

/// Applies an option if it is one about sprites; `None` if it is another.
pub(super) fn apply(key: &str, item: &Item, settings: &mut SpriteSettings) -> Option<Result<(), String>> {
    let (table, name) = key.split_once('.')?;
    match (table, name) {
        ("actions", _) => Some(policy(name, item, settings)),
        ("credentials", _) => Some(credential(item).map(|source| {
            settings.credentials.insert(name.to_owned(), source);
        })),
        ("agents", _) => Some(agent(name, item, settings)),
        ("sprite", _) => sprite(name, item, settings),
        ("notify", "command") => Some(super::words(item).map(|words| settings.notify = words)),
        _ => None,
    }
}

fn sprite(name: &str, item: &Item, settings: &mut SpriteSettings) -> Option<Result<(), String>> {
    let number = |slot: &mut u64| {
        let number = item.as_integer().and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0);
        number.map(|number| *slot = number).ok_or_else(|| "it must be a number, 1 or more".to_owned())
    };
    match name {
        "agent" => Some(match item.as_str() {
            Some(name) => {
                settings.agent = Some(name.to_owned());
                Ok(())
            }
            None => Err("it must be text".to_owned()),
        }),
        "layers" => Some(layers(item).map(|layers| settings.layers = layers)),
        "memory_mb" => Some(number(&mut settings.limits.memory_mb)),
        "processes" => Some(number(&mut settings.limits.processes)),
        "output_mb" => Some(number(&mut settings.limits.output_mb)),
        "minutes" => Some(number(&mut settings.limits.minutes)),
        _ => None,
    }
}

/// Folders below the root of the checkout, and never above it.
fn layers(item: &Item) -> Result<Vec<String>, String> {
    let layers = super::words(item)?;
    let inside = |path: &String| {
        let parts = std::path::Path::new(path).components();
        !path.is_empty() && parts.into_iter().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    match layers.iter().find(|path| !inside(path)) {
        Some(path) => Err(format!("`{path}` is no folder of the checkout")),
        None => Ok(layers),
    }
}

fn agent(name: &str, item: &Item, settings: &mut SpriteSettings) -> Result<(), String> {
    let table = item.as_table_like().ok_or("it must be a table with a command")?;
    // What is not said is as the preset of the same name has it.
    let mut agent = settings.agent(name).unwrap_or_default();
    for (key, item) in table.iter() {
        match key {
            "command" => agent.command = super::words(item)?,
            "resume" => agent.resume = super::words(item)?,
            "mounts" => agent.mounts = super::words(item)?,
            "env" => {
                let table = item.as_table_like().ok_or("`env` must be a table")?;
                let pair = |(name, item): (&str, &Item)| Some((name.to_owned(), item.as_str()?.to_owned()));
                let pairs: Option<_> = table.iter().map(pair).collect();
                agent.env = pairs.ok_or("`env` must be a table of texts")?;
            }
            _ => return Err(format!("an agent has no `{key}`")),
        }
    }
    if agent.command.is_empty() {
        return Err("it has no command".to_owned());
    }
    settings.agents.insert(name.to_owned(), agent);
    Ok(())
}

fn policy(name: &str, item: &Item, settings: &mut SpriteSettings) -> Result<(), String> {
    let action = name.to_ascii_uppercase();
    if !SpriteSettings::is_action(&action) {
        return Err("there is no such action".to_owned());
    }
    let policy = item.as_str().and_then(Policy::from_name).ok_or("it must be one of allow, ask, deny")?;
    settings.policies.insert(action, policy);
    Ok(())
}

fn credential(item: &Item) -> Result<CredentialSource, String> {
    const FORMS: &str = "it must be one of { env = \"NAME\" }, { file = \"PATH\" }, { command = [\"PROGRAM\", …] }";
    let table = item.as_table_like().ok_or(FORMS)?;
    let mut entries = table.iter();
    let (Some((kind, value)), None) = (entries.next(), entries.next()) else { return Err(FORMS.to_owned()) };
    match (kind, value.as_str()) {
        ("env", Some(name)) => Ok(CredentialSource::Variable(name.to_owned())),
        ("file", Some(path)) => Ok(CredentialSource::File(path.to_owned())),
        ("command", None) => Ok(CredentialSource::Command(super::words(value)?)),
        _ => Err(FORMS.to_owned()),
    }
}
