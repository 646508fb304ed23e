//! Runs the hooks that Git would run.

use std::ffi::OsString;
use std::path::Path;

use super::error::GitError;
use super::process::Git;

impl Git {
    /// Runs `hook` if there is one; a refusal is an error. What it says goes to stderr, as with Git.
    pub(crate) fn run_hook(&self, hook: &'static str, arguments: &[OsString], index: &Path) -> Result<(), GitError> {
        let call = self.call("hook").args(["run", "--ignore-missing", hook, "--"]).args(arguments.iter().cloned());
        call.index(index).run_as_hook(hook)
    }
}
