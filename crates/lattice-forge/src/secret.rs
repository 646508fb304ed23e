//! Secrets on disk: one file per host, readable by its owner alone, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Larger files are not read.
const SIZE_LIMIT: u64 = 64 * 1024;

/// The tokens of one host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBundle {
    pub schema_version: u32,
    pub kind: TokenKind,
    pub user: Option<String>,
    pub access_token: String,
    /// Seconds since 1970; a token without it does not expire.
    pub expires_at: Option<i64>,
    pub refresh_token: Option<String>,
    pub refresh_expires_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A user access token of the GitHub App.
    App,
    /// Any other token that the user gave.
    Personal,
}

impl std::fmt::Debug for TokenBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenBundle").field("kind", &self.kind).field("user", &self.user).finish_non_exhaustive()
    }
}

/// Whether a bundle can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    Valid,
    NeedsRefresh,
    Expired,
}

/// Seconds before its end from which a token counts as expired: a request takes time, and clocks differ.
const MARGIN: i64 = 60;

impl TokenBundle {
    pub fn validity(&self, now: i64) -> Validity {
        let over = |at: Option<i64>| at.is_some_and(|at| at - MARGIN <= now);
        match (&self.refresh_token, over(self.expires_at)) {
            (_, false) => Validity::Valid,
            (Some(_), true) if !over(self.refresh_expires_at) => Validity::NeedsRefresh,
            (Some(_) | None, true) => Validity::Expired,
        }
    }
}

/// Why secrets could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{} can be read by others; its mode must be 0600 and its owner you", .0.display())]
    Exposed(PathBuf),
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    #[error("{} could not be used", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The folder of secrets, `~/.lattice/auth`.
#[derive(Debug, Clone)]
pub struct SecretStore {
    folder: PathBuf,
}

impl SecretStore {
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join(".lattice").join("auth") }
    }

    pub fn load(&self, host: &str) -> Result<Option<TokenBundle>, SecretError> {
        let path = self.path(host);
        let failed = |source| SecretError::Io { path: path.clone(), source };
        let file = match OpenOptions::new().read(true).custom_flags(no_follow()).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let found = file.metadata().map_err(failed)?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        if !own || found.mode() & 0o077 != 0 || !found.is_file() {
            return Err(SecretError::Exposed(path));
        }
        let mut text = Vec::new();
        file.take(SIZE_LIMIT).read_to_end(&mut text).map_err(failed)?;
        serde_json::from_slice(&text).map(Some).map_err(|_| SecretError::Damaged(path))
    }

    pub fn save(&self, host: &str, bundle: &TokenBundle) -> Result<(), SecretError> {
        let text = serde_json::to_vec_pretty(bundle).expect("bug: a bundle has string keys");
        self.write(&self.path(host), &text)
    }

    pub fn remove(&self, host: &str) -> Result<Removed, SecretError> {
        let path = self.path(host);
        self.remove_leftovers(host);
        match fs::remove_file(&path) {
            Ok(()) => Ok(Removed::Yes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Removed::WasNotThere),
            Err(source) => Err(SecretError::Io { path, source }),
        }
    }

    /// Removes what a process that was killed while it wrote has left: it holds tokens too.
    fn remove_leftovers(&self, host: &str) {
        let prefix = format!("token.{}.", file_name(host));
        let left = |name: &str| name.strip_prefix(&prefix).is_some_and(|rest| rest.ends_with(".tmp"));
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(left) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The file whose lock guards refreshes for a host.
    pub fn lock_path(&self, host: &str) -> PathBuf {
        self.folder.join(format!("lock.{}", file_name(host)))
    }

    /// Opens the lock file, making folder and file if they are not there.
    pub(crate) fn lock_file(&self, host: &str) -> Result<File, SecretError> {
        let path = self.lock_path(host);
        self.make_folder()?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        opened.map_err(|source| SecretError::Io { path, source })
    }

    /// A file beside the secrets that is no secret.
    pub(crate) fn note_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> Result<(), SecretError> {
        self.make_folder()?;
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = replace(&temporary, path, content);
        written.map_err(|source| {
            let _ = fs::remove_file(&temporary);
            SecretError::Io { path: path.to_owned(), source }
        })
    }

    fn make_folder(&self) -> Result<(), SecretError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| SecretError::Io { path: self.folder.clone(), source })
    }

    fn path(&self, host: &str) -> PathBuf {
        self.folder.join(format!("token.{}.json", file_name(host)))
    }
}

/// Whether there was something to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    Yes,
    WasNotThere,
}

/// The new content is complete and on disk before it gets the name.
#[expect(clippy::disallowed_methods, reason = "secrets lie outside of repositories, and are renamed here alone")]
fn replace(temporary: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Hosts may have a port; nothing of them may leave the folder.
fn file_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || ".-:".contains(c) { c } else { '_' }).collect()
}

fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits() as i32
}
