//! Values of the host: credentials for agents, and the program that tells the user something.

use std::ffi::OsString;
use std::path::PathBuf;

use lattice_model::settings::CredentialSource;

use crate::process;

/// What is known of the host's environment.
#[derive(Debug, Clone)]
pub struct HostValues {
    pub variables: Vec<(OsString, OsString)>,
    /// Where programs are started, and relative paths begin.
    pub directory: PathBuf,
}

impl HostValues {
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(key, _)| key == name)?.1.to_str().map(str::to_owned)
    }

    /// A path as a person writes it.
    fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.variable("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            (Some(_), None) | (None, _) => self.directory.join(text),
        }
    }
}

/// The value of a credential; the text says why there is none, and never what it is.
pub fn credential(source: &CredentialSource, host: &HostValues) -> Result<String, String> {
    let value = match source {
        CredentialSource::Variable(name) => {
            host.variable(name).ok_or_else(|| format!("the variable {name} is not set"))?
        }
        CredentialSource::File(path) => {
            let path = host.path(path);
            std::fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?
        }
        CredentialSource::Command(words) => process::ask_program(words, host, &[]).map_err(|error| {
            format!("{} gave no value: {error}", words.first().map_or("the command", String::as_str))
        })?,
    };
    let value = value.trim_end_matches(['\n', '\r']);
    if value.is_empty() { Err("it is empty".to_owned()) } else { Ok(value.to_owned()) }
}

/// Has the user's own program tell the user something. `id` is the same if it has to be told again.
pub(super) fn notify(
    words: &[String],
    host: &HostValues,
    (id, sprite, message): (&str, &str, &str),
) -> Result<(), String> {
    let told = [("LATTICE_NOTICE_ID", id), ("LATTICE_SPRITE_ID", sprite), ("LATTICE_MESSAGE", message)];
    process::ask_program(words, host, &told).map(drop).map_err(|error| error.to_string())
}
