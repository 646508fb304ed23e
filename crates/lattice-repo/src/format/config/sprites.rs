//! The tables of the configuration file that are about sprites.

use lattice_model::settings::{CredentialSource, KeySettings, NetworkHost, Policy, SpriteSettings};
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
        "dir" => Some(match item.as_str() {
            Some(path) if path.starts_with('/') => {
                settings.dir = Some(path.to_owned());
                Ok(())
            }
            Some(_) | None => Err("it must be a path that begins with `/`".to_owned()),
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
            "network" => {
                let hosts = super::words(item)?;
                agent.network = hosts.iter().map(|host| NetworkHost::new(host)).collect::<Result<_, _>>()?;
            }
            "key" => agent.key = Some(agent_key(item, agent.key.take())?),
            _ => return Err(format!("an agent has no `{key}`")),
        }
    }
    if agent.command.is_empty() {
        return Err("it has no command".to_owned());
    }
    settings.agents.insert(name.to_owned(), agent);
    Ok(())
}

/// Where a key is, where it goes and how; what is not said is as it was.
fn agent_key(item: &Item, old: Option<KeySettings>) -> Result<KeySettings, String> {
    const FORM: &str = "`key` must be like { env = \"NAME\", url = \"https://HOST\", header = \"x-api-key: {key}\" }";
    let table = item.as_table_like().ok_or(FORM)?;
    let (mut source, mut url, mut header) =
        old.map_or((None, None, None), |old| (Some(old.source), Some(old.url), Some(old.header)));
    for (key, item) in table.iter() {
        match (key, item.as_str()) {
            ("url", Some(text)) if text.starts_with("https://") || text.starts_with("http://") => {
                url = Some(text.trim_end_matches('/').to_owned());
            }
            ("header", Some(text)) if text.contains("{key}") && text.contains(':') && !text.contains(['\r', '\n']) => {
                header = Some(text.to_owned());
            }
            ("env", Some(name)) => source = Some(CredentialSource::Variable(name.to_owned())),
            ("file", Some(path)) => source = Some(CredentialSource::File(path.to_owned())),
            ("command", None) => source = Some(CredentialSource::Command(super::words(item)?)),
            _ => return Err(FORM.to_owned()),
        }
    }
    match (source, url, header) {
        (Some(source), Some(url), Some(header)) => Ok(KeySettings { source, url, header }),
        _ => Err(FORM.to_owned()),
    }
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
