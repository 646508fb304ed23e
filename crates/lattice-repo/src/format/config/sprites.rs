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
        ("notify", "command") => Some(super::words(item).map(|words| settings.notify = words)),
        _ => None,
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
