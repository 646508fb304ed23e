//! The configuration file: TOML, edited in place so that comments survive.

mod rest;
mod sprites;

use std::collections::BTreeMap;

use lattice_model::command::create::{PLACEHOLDERS, unknown_placeholder};
use lattice_model::id::ContentDigest;
use lattice_model::name::BranchName;
use lattice_model::settings::{KnownOption, OptionKind, Settings, known_option};
use lattice_model::snapshot::{ConfigReading, ReadableRest};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

/// Larger files are not read.
pub(crate) const SIZE_LIMIT: u64 = 1024 * 1024;

/// Why an option cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigEditError {
    #[error("there is no option `{0}`")]
    UnknownKey(String),
    #[error("`{0}` is not set there")]
    NotSet(String),
    #[error("`{value}` is no value for `{key}`: {reason}")]
    BadValue { key: String, value: String, reason: String },
    #[error("the configuration file cannot be edited: {0}")]
    Unreadable(String),
}

/// Reads a file and applies it on top of `settings`.
pub(crate) fn parse(bytes: &[u8], settings: &mut Settings) -> ConfigReading {
    let digest = ContentDigest::of(bytes);
    let text = std::str::from_utf8(bytes);
    let invalid = |reason: String| {
        let rest = text.map(rest::readable).unwrap_or_default();
        ConfigReading::Invalid { digest: digest.clone(), reason, rest }
    };
    let Ok(text) = text else { return invalid("it is not text".to_owned()) };
    let document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => return invalid(place_and_reason(text, &error)),
    };
    if let Some(trunk) = document.get("trunk").and_then(Item::as_str) {
        return foreign(trunk, digest);
    }
    let mut read = settings.clone();
    let mut unknown_keys = Vec::new();
    for (table_name, item) in document.iter() {
        let Some(table) = item.as_table_like() else {
            return invalid(format!("`{table_name}` is not a table"));
        };
        for (name, item) in table.iter() {
            let key = format!("{table_name}.{name}");
            if let Err(reason) = apply(&key, item, &mut read, &mut unknown_keys) {
                return invalid(format!("`{key}`: {reason}"));
            }
        }
    }
    *settings = read;
    ConfigReading::Valid { digest, content: text.to_owned(), unknown_keys }
}

/// What is wrong and in which line, without the line itself: what a person put into it may be no one's business.
fn place_and_reason(text: &str, error: &toml_edit::TomlError) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    let message: Vec<_> = error.message().lines().map(str::trim).collect();
    format!("{}{}", line.unwrap_or_default(), message.join(", "))
}

fn foreign(trunk: &str, digest: ContentDigest) -> ConfigReading {
    match BranchName::new(trunk) {
        Ok(name) => {
            ConfigReading::Foreign { digest, trunk: trunk.to_owned(), converted: Settings::with_trunk("", &name) }
        }
        Err(error) => {
            let (reason, rest) = (format!("`trunk`: {error}"), ReadableRest::default());
            ConfigReading::Invalid { digest, reason, rest }
        }
    }
}

fn apply(key: &str, item: &Item, settings: &mut Settings, unknown: &mut Vec<String>) -> Result<(), String> {
    let text = || item.as_str().map(str::to_owned).ok_or_else(|| "it must be text".to_owned());
    let number = || {
        let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| "it must be a number, 0 or more".to_owned())
    };
    match key {
        "trunk.branch" => settings.trunk = Some(BranchName::new(text()?).map_err(|error| error.to_string())?),
        "lock.timeout_ms" => settings.lock_timeout_ms = number()?,
        "hooks.timeout_ms" => settings.hook_timeout_ms = number()?,
        "branch.template" => settings.branch_template = text()?,
        "undo.keep_operations" => settings.keep_operations = number()?,
        "undo.keep_days" => settings.keep_days = number()?,
        "explain.timeout_ms" => settings.explain.timeout_ms = number()?,
        "explain.include_diffs" => {
            settings.explain.include_diffs = item.as_bool().ok_or("it must be true or false")?;
        }
        "explain.command" => {
            settings.explain.command = words(item)?;
        }
        "forge.remote" => settings.forge.remote = Some(text()?),
        "forge.kind" => settings.forge.kind = one_of(text()?, &["auto", "git", "github"])?,
        "submit.overview" => settings.forge.overview = one_of(text()?, &["body", "comment", "off"])?,
        "merge.method" => settings.forge.merge_method = one_of(text()?, &["merge", "squash", "rebase"])?,
        "github.web_url" => settings.forge.github.web_url = text()?,
        "github.api_url" => settings.forge.github.api_url = Some(text()?),
        "github.client_id" => settings.forge.github.client_id = Some(text()?),
        "github.app" => settings.forge.github.app = text()?,
        _ => match (key.strip_prefix("alias."), sprites::apply(key, item, &mut settings.sprites)) {
            (Some(name), _) => {
                settings.aliases.insert(name.to_owned(), text()?);
            }
            (None, Some(applied)) => applied?,
            (None, None) => unknown.push(key.to_owned()),
        },
    }
    Ok(())
}

fn words(item: &Item) -> Result<Vec<String>, String> {
    let list = item.as_array().ok_or("it must be a list of text")?;
    let words: Option<Vec<_>> = list.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    Ok(words.ok_or("it must be a list of text")?)
}

fn one_of(text: String, choices: &[&str]) -> Result<String, String> {
    if choices.contains(&text.as_str()) { Ok(text) } else { Err(format!("it must be one of {}", choices.join(", "))) }
}

/// The options that a user's own file sets; one that cannot be read sets none.
pub fn user_settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    let _ = parse(text.as_bytes(), &mut settings);
    // A trunk belongs to a repository.
    settings.trunk = None;
    settings
}

/// Every option that a file sets, as text.
pub fn list_settings(content: &str) -> Result<BTreeMap<String, String>, ConfigEditError> {
    let document = document(content)?;
    let mut options = BTreeMap::new();
    for (table, item) in document.iter() {
        for (name, item) in item.as_table_like().into_iter().flat_map(|table| table.iter()) {
            list_item(format!("{table}.{name}"), item, &mut options);
        }
    }
    Ok(options)
}

/// Adds one option; of a table such as `[agents.mine]` each line is one.
fn list_item(key: String, item: &Item, options: &mut BTreeMap<String, String>) {
    match item.as_table() {
        Some(table) => table.iter().for_each(|(name, item)| list_item(format!("{key}.{name}"), item, options)),
        None => {
            options.insert(key, item.as_str().map_or_else(|| without_remarks(item), str::to_owned));
        }
    }
}

/// The file as TOML, or where it is none.
fn document(content: &str) -> Result<DocumentMut, ConfigEditError> {
    let parsed = content.parse::<DocumentMut>();
    parsed.map_err(|error| ConfigEditError::Unreadable(place_and_reason(content, &error)))
}

/// A value as TOML writes it, without what stands around it in the file.
fn without_remarks(item: &Item) -> String {
    let mut item = item.clone();
    if let Some(value) = item.as_value_mut() {
        value.decor_mut().clear();
    }
    item.to_string().trim().to_owned()
}

/// The value of one option, `None` if the file does not set it.
pub fn read_setting(content: &str, key: &str) -> Result<Option<String>, ConfigEditError> {
    if known_option(key).is_none() && !key.starts_with("alias.") {
        return Err(ConfigEditError::UnknownKey(key.to_owned()));
    }
    Ok(list_settings(content)?.remove(key))
}

/// The text of a file with one option set, everything else as it was.
pub fn edit_setting(content: &str, key: &str, text: &str) -> Result<String, ConfigEditError> {
    let mut document = document(content)?;
    let (table, name) = key.split_once('.').ok_or_else(|| ConfigEditError::UnknownKey(key.to_owned()))?;
    let mut new = if table == "alias" {
        value(text)
    } else {
        let option = known_option(key).ok_or_else(|| ConfigEditError::UnknownKey(key.to_owned()))?;
        Item::Value(typed(option, text).map_err(|reason| ConfigEditError::BadValue {
            key: key.to_owned(),
            value: text.to_owned(),
            reason,
        })?)
    };
    apply(key, &new, &mut Settings::default(), &mut Vec::new()).map_err(|reason| ConfigEditError::BadValue {
        key: key.to_owned(),
        value: text.to_owned(),
        reason,
    })?;
    let slot = document.entry(table).or_insert_with(|| Item::Table(Table::new()));
    let slot = slot.as_table_like_mut();
    let slot = slot.ok_or_else(|| ConfigEditError::Unreadable(format!("`{table}` is not a table")))?;
    if let (Some(old), Some(new)) = (slot.get(name).and_then(Item::as_value), new.as_value_mut()) {
        // A remark behind the old value is about the option.
        *new.decor_mut() = old.decor().clone();
    }
    slot.insert(name, new);
    Ok(document.to_string())
}

/// The text of a file without one option, everything else as it was.
pub fn unset_setting(content: &str, key: &str) -> Result<String, ConfigEditError> {
    let mut document = document(content)?;
    let not_set = || ConfigEditError::NotSet(key.to_owned());
    let (path, name) = key.rsplit_once('.').ok_or_else(|| ConfigEditError::UnknownKey(key.to_owned()))?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.split('.') {
        table = table.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(not_set)?;
    }
    table.remove(name).ok_or_else(not_set)?;
    Ok(document.to_string())
}

fn typed(option: &KnownOption, text: &str) -> Result<Value, String> {
    match option.kind {
        // Only what is set now is held to it: a file that was written before is still read.
        OptionKind::Text if option.key == "branch.template" => match unknown_placeholder(text) {
            Some(unknown) => Err(format!("`{unknown}` stands for nothing; there are {}", PLACEHOLDERS.join(" and "))),
            None => Ok(text.into()),
        },
        OptionKind::Text => Ok(text.into()),
        OptionKind::Branch => BranchName::new(text).map(|name| name.as_str().into()).map_err(|error| error.to_string()),
        OptionKind::Integer => text
            .parse::<u32>()
            .map(|number| i64::from(number).into())
            .map_err(|_| "a number, 0 or more, is needed".to_owned()),
        OptionKind::Flag => text.parse::<bool>().map(Value::from).map_err(|_| "true or false is needed".to_owned()),
        OptionKind::TextList => Ok(text.split_whitespace().collect::<Array>().into()),
    }
}
