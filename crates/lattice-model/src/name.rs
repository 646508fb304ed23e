//! Validated names: branches and full ref names.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a local branch, such as `feature/login`, without `refs/heads/`.
///
/// Holds only what `git check-ref-format --branch` accepts, so it can neither be mistaken for an
/// option nor resolve to anything but `refs/heads/<name>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchName(Arc<str>);

/// A full ref name, such as `refs/heads/main`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RefName(Arc<str>);

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name cannot be empty")]
    Empty,
    #[error("`{0}` starts with a dash and would be read as an option")]
    LeadingDash(String),
    #[error("`{0}` is reserved by Git")]
    Reserved(String),
    #[error("`{name}` contains {what}, which Git does not allow in a name")]
    Forbidden { name: String, what: &'static str },
    #[error("`{0}` is not a full ref name; it must start with `refs/`")]
    NotFull(String),
}

const HEADS: &str = "refs/heads/";
const METADATA: &str = "refs/branch-metadata/";

impl BranchName {
    /// Checks `name` as Git checks the name of a branch.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        check_branch(&name)?;
        check_components(&name)?;
        Ok(Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as one word of a command that a person may paste into a shell.
    pub fn word(&self) -> String {
        shell_word(&self.0)
    }

    /// `refs/heads/<name>`.
    pub fn branch_ref(&self) -> RefName {
        RefName(format!("{HEADS}{}", self.0).into())
    }

    /// `refs/branch-metadata/<name>`.
    pub fn metadata_ref(&self) -> RefName {
        RefName(format!("{METADATA}{}", self.0).into())
    }
}

impl RefName {
    /// Checks a full ref name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        if !name.starts_with("refs/") {
            return Err(NameError::NotFull(name));
        }
        check_components(&name)?;
        Ok(Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch whose tip this ref is, if it is one.
    pub fn as_branch(&self) -> Option<BranchName> {
        self.branch().map(|name| BranchName(name.into()))
    }

    /// The branch whose metadata this ref is, if it is one.
    pub fn as_metadata_of(&self) -> Option<BranchName> {
        self.metadata_of().map(|name| BranchName(name.into()))
    }

    /// As `as_branch`, for looking only. The components of a valid ref name need no second check.
    pub fn branch(&self) -> Option<&str> {
        self.0.strip_prefix(HEADS).filter(|name| check_branch(name).is_ok())
    }

    /// As `as_metadata_of`, for looking only.
    pub fn metadata_of(&self) -> Option<&str> {
        self.0.strip_prefix(METADATA).filter(|name| check_branch(name).is_ok())
    }
}

/// The rules that hold for branches and not for other refs.
fn check_branch(name: &str) -> Result<(), NameError> {
    if name.starts_with('-') {
        return Err(NameError::LeadingDash(name.to_owned()));
    }
    if name == "HEAD" || name == "@" {
        return Err(NameError::Reserved(name.to_owned()));
    }
    Ok(())
}

/// A text as one word of a shell: Git allows names such as `$(id)` and `a;b`.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The rules of `git check-ref-format` that hold for every component.
fn check_components(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    let forbidden = |what| NameError::Forbidden { name: name.to_owned(), what };
    // A repository has thousands of names, so one pass over the bytes finds what any of them may not contain.
    let mut before = b'/';
    for byte in name.bytes() {
        match (before, byte) {
            (_, 0..0x20 | 0x7f) => return Err(forbidden("a control character")),
            (_, b' ' | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\') => {
                return Err(forbidden("a space or one of ~ ^ : ? * [ \\"));
            }
            (b'.', b'.') | (b'@', b'{') => return Err(forbidden("`..`, `@{` or a dot at the end")),
            (b'/', b'/') => return Err(forbidden("an empty component")),
            (b'/', b'.') => return Err(forbidden("a component that starts with a dot or ends with `.lock`")),
            _ => before = byte,
        }
    }
    match before {
        b'/' => Err(forbidden("an empty component")),
        b'.' => Err(forbidden("`..`, `@{` or a dot at the end")),
        _ if name.ends_with(".lock") || name.contains(".lock/") => {
            Err(forbidden("a component that starts with a dot or ends with `.lock`"))
        }
        _ => Ok(()),
    }
}

macro_rules! name_conversions {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_conversions!(BranchName);
name_conversions!(RefName);

#[cfg(test)]
mod tests;
