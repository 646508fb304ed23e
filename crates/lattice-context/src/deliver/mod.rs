//! Files for somebody else to read, all of them or none: clear, create, write, verify.

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

pub use folder::HostFolder;

/// The files of one delivery, in the order in which they are written.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    /// Below the root, made also if nothing is in them.
    pub folders: Vec<&'a str>,
    pub files: Vec<(&'a str, &'a [u8])>,
}

/// Where files are delivered to. What is written becomes visible by `publish` and not before.
pub trait Backend {
    /// Removes what an earlier delivery did not finish. Follows no link.
    fn clear(&mut self) -> io::Result<()>;
    /// Makes the root and these folders below it.
    fn create(&mut self, folders: &[&str]) -> io::Result<()>;
    fn write(&mut self, path: &str, content: &[u8]) -> io::Result<()>;
    /// All files with their sizes. What is neither file nor folder has none.
    fn list(&mut self) -> io::Result<BTreeMap<String, Option<u64>>>;
    /// Puts what was written in the place of what was delivered before.
    fn publish(&mut self) -> io::Result<()>;
}

/// A step of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Clear,
    Create,
    Write(String),
    Verify,
    Publish,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clear => f.write_str("clearing the folder"),
            Self::Create => f.write_str("making the folders"),
            Self::Write(path) => write!(f, "writing `{path}`"),
            Self::Verify => f.write_str("listing what was written"),
            Self::Publish => f.write_str("putting it in its place"),
        }
    }
}

/// Why nothing was delivered. What was there before is there still.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error("{step} failed")]
    Step { step: Step, source: io::Error },
    #[error("`{0}` was written and is not there")]
    Missing(String),
    #[error("`{0}` is there and was not written")]
    Unexpected(String),
    #[error("`{path}` has another size than what was written")]
    Differs { path: String },
}

/// Tries of one step, if it fails for a reason that may pass.
const ATTEMPTS: u32 = 4;

/// Writes trees to a backend, and tries again what fails for a moment only.
pub struct FileWriter<'a> {
    backend: &'a mut dyn Backend,
}

impl<'a> FileWriter<'a> {
    pub fn new(backend: &'a mut dyn Backend) -> Self {
        Self { backend }
    }

    /// Replaces what was delivered before by this tree. A step that fails keeps the later ones from being tried.
    pub fn replace(&mut self, tree: &Tree<'_>) -> Result<(), DeliveryError> {
        self.attempt(Step::Clear, |backend| backend.clear())?;
        self.attempt(Step::Create, |backend| backend.create(&tree.folders))?;
        for (path, content) in &tree.files {
            self.attempt(Step::Write((*path).to_owned()), |backend| backend.write(path, content))?;
        }
        let found = self.attempt(Step::Verify, |backend| backend.list())?;
        verify(tree, &found)?;
        self.attempt(Step::Publish, |backend| backend.publish())
    }

    fn attempt<T>(
        &mut self,
        step: Step,
        action: impl Fn(&mut dyn Backend) -> io::Result<T>,
    ) -> Result<T, DeliveryError> {
        for attempt in 1.. {
            match action(self.backend) {
                Err(error) if is_transient(&error) && attempt < ATTEMPTS => {
                    std::thread::sleep(Duration::from_millis(5 << attempt));
                }
                Err(source) => return Err(DeliveryError::Step { step, source }),
                Ok(done) => return Ok(done),
            }
        }
        unreachable!("bug: the last attempt returns")
    }
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | ResourceBusy | TimedOut | WouldBlock)
}

fn verify(tree: &Tree<'_>, found: &BTreeMap<String, Option<u64>>) -> Result<(), DeliveryError> {
    for (path, content) in &tree.files {
        let Some(size) = found.get(*path) else { return Err(DeliveryError::Missing((*path).to_owned())) };
        if *size != Some(content.len() as u64) {
            return Err(DeliveryError::Differs { path: (*path).to_owned() });
        }
    }
    match found.keys().find(|path| !tree.files.iter().any(|(written, _)| written == path)) {
        Some(path) => Err(DeliveryError::Unexpected(path.clone())),
        None => Ok(()),
    }
}
